"""``python -m trident run`` and ``explain``."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from tests.cli import counted
from trident import TridentTopology
from trident.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 30.0


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(counted.PLACE, f"sqlite:{tmp_path}/counts.db")
    return tmp_path


def test_a_signal_ends_a_run_after_its_batch_and_the_next_goes_on(place: Path) -> None:
    command = [sys.executable, "-m", "trident", "run", "tests.cli.counted:endless", "--json"]
    command += ["--checkpoint", str(place / "log"), "--trigger", "0.001"]
    last = 0
    for end in (signal.SIGTERM, signal.SIGINT):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told = [json.loads(process.stdout.readline()) for _ in range(5)]
            process.send_signal(end)
            told += map(json.loads, process.stdout)
            assert process.wait(PATIENCE) == 0
        assert [each["txid"] for each in told] == [*range(last + 1, last + 1 + len(told))]
        last = told[-1]["txid"]
    assert main(["state", "get", "tests.cli.counted:endless/count", "dog"]) == 0


def test_a_run_answers_queries_too(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "trident", "run", "tests.cli.counted:endless", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("serving count: ").strip()
        assert process.stdout.readline() == "running words; Ctrl-C stops\n"
        # A run remembers its last batches, and has done more before its server was there.
        assert re.match(r"words: batch \d+, 1 tuples, ", process.stdout.readline())
        with urlopen(f"{address}drpc/count/dog", timeout=PATIENCE) as answer:
            assert json.loads(answer.read())[0][0] >= 1
        process.send_signal(signal.SIGINT)
        *_, stopping, ended = process.stdout.read().splitlines()
        assert stopping == "stopping after the batch under way"
        assert ended.startswith("words: stopped after batch ")
        assert process.wait(PATIENCE) == 0


def test_a_run_ends_with_its_topology_and_another_says_that_it_goes_on(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "tests.cli.counted:topology", "--trigger", "available"]
    assert main([*run, "--checkpoint", str(place / "log")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "running words; Ctrl-C stops"
    assert lines[1].startswith("words: batch 1, ")
    assert lines[-1] == "words: stopped after batch 3"
    assert main([*run, "--checkpoint", str(place / "log")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["words goes on after batch 3", "words: stopped"]


def test_a_run_takes_the_session_that_is_there(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--spark", "--engine", "spark", "--trigger", "available", "--json"]
    assert main(["run", "tests.cli.counted:topology", *words]) == 0
    told = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [each["engine"] for each in told] == ["spark"] * 3


def test_a_failure_is_told_and_is_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "tests.cli.counted:failing"]) == 1
    assert "no length of dog" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--trigger", "availble"], "Did you mean 'available'?"),
        (["--max-pending", "0"], "max_pending is a whole number from 1"),
        (["--accept-loss", "count"], "--accept-loss is not state=txid: 'count'"),
        (["--accept-loss", "cuont=5"], "accept_loss names no state 'cuont'"),
        (["--accept-change", "count"], "--accept-change is not name=what it is now: 'count'"),
        (["--accept-change", "cuont=Sum"], "accept_change names no state or stream 'cuont'"),
        (["--adopt-checkpoint", "old"], "without a checkpoint nothing can be adopted"),
        (["--adopt-states", "a1", "--checkpoint", "log"], "is not log-id=committed or"),
        (
            ["--adopt-storm", "0", "--checkpoint", "log"],
            "the last txid that Storm committed, from 1, found '0'",
        ),
        (["--adopt-spark-checkpoint", "old"], "without --adopt-checkpoint"),
        (["--adopt-spark-checkpoint", ""], "without --adopt-checkpoint"),
        (["--engine", "spark"], "without a session"),
        (["--port", "70000"], "a number from 0 to 65535"),
    ],
)
def test_run_refuses_what_it_cannot_use(
    words: list[str],
    problem: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    assert main(["run", "tests.cli.counted:topology", *words]) == 2
    assert problem in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--adopt-checkpoint {place}/old", "adopt={place}/old: there is no log of the group"),
        (
            "--adopt-checkpoint {place}/old --adopt-spark-checkpoint {place}/more",
            "adopt={place}/old: there is no log of the group",
        ),
        ("--adopt-states a1=burn", "the log id a1: no state has this log id"),
        ("--adopt-storm 17", "Adopt.from_storm(17): no entries are in"),
    ],
)
def test_what_is_adopted_is_told_by_options(
    words: str, problem: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--checkpoint", str(place / "log"), *words.format(place=place).split()]
    assert main(["run", "tests.cli.counted:topology", *options]) == 1
    assert problem.format(place=place) in capsys.readouterr().err


FORMS = ("explain", "to_mermaid", "to_dict", "to_svg")


@pytest.mark.parametrize("form", [form for form in FORMS if hasattr(TridentTopology, form)])
def test_explain_prints_what_the_topology_returns(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topology = counted.topology()
    option = [] if form == "explain" else [form.replace("to_", "--").replace("dict", "json")]
    assert main(["explain", "tests.cli.counted:topology", *option]) == 0
    printed = capsys.readouterr().out
    expected = getattr(topology, form)()
    if form == "to_dict":
        assert json.loads(printed) == expected
    else:
        assert printed.strip() == expected.strip()


@pytest.mark.parametrize(
    ("output", "status", "said"),
    [
        ("/dev/full", 1, "No space left on device. Make room for what is written, or write it"),
        ("&-", 0, ""),
    ],
)
def test_an_output_that_takes_nothing_is_no_traceback(output: str, status: int, said: str) -> None:
    command = f'"$0" -m trident explain tests.cli.counted:topology >{output}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], stderr=subprocess.PIPE, text=True, timeout=PATIENCE
    )
    assert done.returncode == status
    assert len(done.stderr.splitlines()) == bool(said)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("module", "attribute", "said"),
    [
        ("1 / 0", "topology", "ZeroDivisionError: division by zero. It was raised in {file}, line"),
        ("def f(:", "topology", "SyntaxError: invalid syntax (broken.py, line 1)."),
        ("import nosuch", "topology", "No module named 'nosuch'. It was raised in {file}, line 1."),
        ("def f():\n    raise ValueError('a\\nb')", "f", ": ValueError: a b. It was raised in"),
        ("def f(a):\n    pass", "f", "f returns no topology: TypeError: f() missing 1 required"),
        ("raise ValueError('redis://a:s3cret@b')", "topology", "ValueError: redis://***@b"),
    ],
)
def test_what_a_module_raises_is_one_line_that_says_where(
    module: str,
    attribute: str,
    said: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = place / "broken.py"
    file.write_text(module)
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    assert main(["explain", f"broken:{attribute}"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert said.format(file=file) in line
    assert "s3cret" not in line
