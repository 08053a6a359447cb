"""The page of measurements: only what is between its marks is written."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.sizes.cases import SHORT, Case, Timed
from benchmarks.sizes.pages import BEGIN, END, Report, plotted, with_report
from benchmarks.sizes.steady import Cost, Held

PAGE = f"# Performance\n\n{BEGIN}\nold\n{END}\n\nBy hand.\n"


def timed(contender: str, words: int, seconds: float, store: str = "SQLite") -> Timed:
    return Timed(Case(contender, store, words), [seconds] * 4, 4 * seconds)


def report(*found: Timed) -> Report:
    costs = [Cost(100_000, 1e-6)]
    held = [Held("local", 1_000, 100_000_000, 2_000, 3_000, 20)]
    return Report(SHORT, "a machine", list(found), costs, held, [], ["Redis: it is away"])


def test_what_is_written_by_hand_stays() -> None:
    page = with_report(PAGE, report(timed("local", 100, 0.001)))
    assert page.startswith(f"# Performance\n\n{BEGIN}\n")
    assert page.endswith(f"{END}\n\nBy hand.\n")
    assert "old" not in page


def test_a_report_is_replaced_by_the_next() -> None:
    once = with_report(PAGE, report(timed("local", 100, 0.001)))
    assert with_report(once, report(timed("local", 100, 0.001))) == once


@pytest.mark.parametrize("page", ["", BEGIN, f"{END}\n{BEGIN}", f"{PAGE}{BEGIN}\n"])
def test_a_page_without_its_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        with_report(page, report())


def test_the_middle_run_is_shown_and_the_best_of_each_size_is_bold() -> None:
    found = [
        timed("local", 100, 0.001),
        timed("local", 100, 0.002),
        timed("local", 100, 0.0008),
        timed("bytewax", 100, 0.002),
        timed("bytewax", 10_000, 0.02),
    ]
    page = with_report(PAGE, report(*found))
    assert "| local   | **100 k ±38%** |               |" in page
    assert "| bytewax |       50 k ±0% | **500 k ±0%** |" in page


def test_what_was_not_measured_is_told() -> None:
    assert "- Redis: it is away" in with_report(PAGE, report())


def test_a_store_that_was_not_measured_has_no_panel() -> None:
    picture = plotted(report(timed("local", 100, 0.1), timed("local", 1_000, 0.2)))
    texts = [each.text for each in ElementTree.fromstring(picture).iter() if each.text]
    assert "SQLite" in texts
    assert "Redis" not in texts


def test_every_line_of_a_picture_is_in_its_legend() -> None:
    found = [timed(name, 100, 0.1) for name in ("local", "mixed")]
    texts = [each.text for each in ElementTree.fromstring(plotted(report(*found))).iter()]
    assert texts.count("local") == texts.count("mixed") == 1
