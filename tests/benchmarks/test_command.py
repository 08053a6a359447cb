"""A run of the sizes: what can't be measured is told, and Ctrl-C keeps what was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.sizes import command
from benchmarks.sizes.cases import OURS, SHORT, Case, Timed
from benchmarks.sizes.contenders import CONTENDERS
from benchmarks.sizes.setting import Setting

EFFORT = replace(SHORT, sizes=(100,), keys=())

Measure = Callable[[Setting, Case], Timed]


def fast(setting: Setting, case: Case) -> Timed:
    return Timed(case, [0.1, 0.2], 0.3)


def absent(setting: Setting, case: Case) -> Timed:
    raise ModuleNotFoundError("No module named 'bytewax'")


def interrupted(setting: Setting, case: Case) -> Timed:
    raise KeyboardInterrupt


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with closing(Setting(tmp_path, EFFORT)) as made:
        yield made


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> dict[str, Measure]:
    """Who counts each case, none of which takes any time."""
    contenders: dict[str, Measure] = dict.fromkeys(CONTENDERS, fast)
    monkeypatch.setattr(command, "CONTENDERS", contenders)
    monkeypatch.setattr(command, "costs", lambda setting: [])
    monkeypatch.setattr(command, "held", lambda setting: [])
    return contenders


def test_every_case_is_run_so_many_times(setting: Setting, counting: dict[str, Measure]) -> None:
    report = command._report(setting, [])
    assert [each.case for each in report.measured] == list(EFFORT.cases())
    assert {len(each.runs) for each in report.measured} == {EFFORT.runs}


def test_what_is_not_installed_is_left_out_and_told(
    setting: Setting, counting: dict[str, Measure]
) -> None:
    counting["bytewax"] = absent
    report = command._report(setting, [])
    told = [reason for reason in report.left_out if reason.startswith("bytewax; SQLite; 100 words")]
    assert [reason.rpartition(": ")[2] for reason in told] == ["No module named 'bytewax'"]
    assert "bytewax" not in {each.case.contender for each in report.measured}


def test_a_run_that_is_broken_off_keeps_what_it_has(
    setting: Setting, counting: dict[str, Measure]
) -> None:
    counting["bytewax"] = interrupted
    report = command._report(setting, [])
    assert [each.case.contender for each in report.measured] == list(OURS)
    assert report.left_out[-1].startswith("what comes after Spark, DataFrame; memory; 100 words")


def test_words_choose_cases(setting: Setting, counting: dict[str, Measure]) -> None:
    measured = command._report(setting, ["Redis", "local"]).measured
    assert {each.case.store for each in measured if each.case.contender != "local"} == {"Redis"}
    assert {each.case.store for each in measured if each.case.contender == "local"} == {
        *("memory", "SQLite", "Redis")
    }
