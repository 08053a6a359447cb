"""Figures as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NONE = "-"
"""Where there is no figure."""
_LONGEST = 500
_PARTS_OF_RUN = ("compute", "write", "spark")
"""What engines tell of the step ``run``."""


def whole(number: int | None) -> str:
    """A whole number.

    Examples
    --------
    >>> whole(1234567), whole(None)
    ('1,234,567', '-')
    """
    return NONE if number is None else f"{number:,}"


def batch_id(txid: int | None) -> str:
    """The id of a batch, which is no amount.

    Examples
    --------
    >>> batch_id(1234567)
    '1234567'
    """
    return NONE if txid is None else str(txid)


def rate(number: float) -> str:
    """So many a second.

    Examples
    --------
    >>> rate(12345.6), rate(3.21), rate(0)
    ('12,346', '3.2', '0')
    """
    return f"{number:,.0f}" if number >= 10 or not number else f"{number:.1f}"


def duration(seconds: float | None) -> str:
    """How long something took.

    Examples
    --------
    >>> duration(0.00012), duration(0.0123), duration(3.456), duration(1234.5), duration(None)
    ('120 µs', '12.3 ms', '3.46 s', '1,234 s', '-')
    """
    if seconds is None:
        return NONE
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    found, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    return f"{found:,.{0 if found >= 100 else 1 if found >= 10 else 2}f} {unit}"


def steps_of(seconds: Mapping[str, float]) -> dict[str, float]:
    """The steps of a batch, without those that are a part of another one.

    Examples
    --------
    >>> steps_of({"run": 0.5, "commit": 0.1, "compute": 0.4, "write": 0.1})
    {'run': 0.5, 'commit': 0.1}
    """
    return {step: took for step, took in seconds.items() if step not in _PARTS_OF_RUN}


def in_order(seconds: Mapping[str, float]) -> list[str]:
    """The steps in their order, each before those that are a part of it.

    Examples
    --------
    >>> in_order({"run": 0.5, "commit": 0.1, "compute": 0.4, "write": 0.1})
    ['run', 'compute', 'write', 'commit']
    """
    steps = list(seconds)
    parts = _PARTS_OF_RUN if "run" in seconds else ()
    return sorted(steps, key=lambda step: steps.index("run" if step in parts else step))


def step_name(step: str) -> str:
    """What a step is called, beside those that it is a part of.

    Examples
    --------
    >>> step_name("commit"), step_name("compute")
    ('commit', 'run: compute')
    """
    return f"run: {step}" if step in _PARTS_OF_RUN else step


def moment(iso: str | None) -> str:
    """A time, to the second, in UTC as it came.

    Examples
    --------
    >>> moment("2026-11-22T20:01:02.345678+00:00")
    '2026-11-22 20:01:02 UTC'
    """
    if not iso:
        return NONE
    zone = " UTC" if iso.endswith(("Z", "+00:00")) else ""
    return f"{iso[:19].replace('T', ' ')}{zone}"


def lag(told: Mapping[str, Any] | None) -> str:
    """How far a group is behind its sources.

    Examples
    --------
    >>> lag({"tuples": 1200, "detail": "2 partitions"}), lag({"tuples": None, "detail": "asking"})
    ('1,200 tuples (2 partitions)', 'asking')
    >>> lag({"tuples": 0, "detail": "", "held_back": 7})
    '0 tuples, and 7 behind open transactions'
    """
    if told is None:
        return NONE
    tuples, detail = told.get("tuples"), told.get("detail") or ""
    if tuples is None:
        return detail or NONE
    held = told.get("held_back")
    behind = f", and {whole(held)} behind open transactions" if held else ""
    return f"{whole(tuples)} tuple{'s' * (tuples != 1)}{behind}{f' ({detail})' if detail else ''}"


def shortened(text: object, longest: int = _LONGEST) -> str:
    """The beginning of a text that may be long.

    Examples
    --------
    >>> shortened("abcdef", 4), shortened(None)
    ('abc…', '-')
    """
    if text is None:
        return NONE
    found = str(text)
    return found if len(found) <= longest else f"{found[: longest - 1]}…"
