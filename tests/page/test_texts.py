"""Figures as people read them."""

from __future__ import annotations

from trident.page.content import (
    batch_id,
    duration,
    in_order,
    lag,
    moment,
    rate,
    shorten,
    step_name,
    steps_of,
    whole,
)

SECONDS = {"run": 0.5, "commit": 0.1, "compute": 0.4, "write": 0.1}


def test_an_amount_has_its_thousands_apart_and_the_id_of_a_batch_has_not() -> None:
    assert (whole(1234567), whole(None), batch_id(1234567)) == ("1,234,567", "-", "1234567")


def test_a_rate_is_whole_from_ten_on() -> None:
    assert (rate(12345.6), rate(3.21), rate(0)) == ("12,346", "3.2", "0")


def test_a_duration_has_three_digits_and_its_unit() -> None:
    shown = [duration(each) for each in (0.00012, 0.0123, 3.456, 1234.5, None)]
    assert shown == ["120 µs", "12.3 ms", "3.46 s", "1,234 s", "-"]


def test_what_engines_tell_of_a_step_is_a_part_of_it() -> None:
    assert steps_of(SECONDS) == {"run": 0.5, "commit": 0.1}
    assert in_order(SECONDS) == ["run", "compute", "write", "commit"]
    assert (step_name("commit"), step_name("compute")) == ("commit", "run: compute")


def test_a_time_is_shown_to_the_second() -> None:
    assert moment("2026-11-22T20:01:02.345678+00:00") == "2026-11-22 20:01:02 UTC"


def test_a_lag_tells_what_is_known() -> None:
    assert lag({"tuples": 1200, "detail": "2 partitions"}) == "1,200 tuples (2 partitions)"
    assert lag({"tuples": None, "detail": "asking"}) == "asking"
    held = lag({"tuples": 0, "detail": "", "held_back": 7})
    assert held == "0 tuples, and 7 behind open transactions"


def test_a_long_text_is_cut() -> None:
    assert (shorten("abcdef", 4), shorten(None)) == ("abc…", "-")
