"""When batches begin."""

from __future__ import annotations

from typing import Literal

from trident.errors import PlanError

Trigger = float | Literal["available"] | None
"""Seconds from one batch's start to the next one's at least; all there is, then end; or as fast
as batches are ready, which 0 seconds are too."""


def check_trigger(trigger: object) -> None:
    """Raise PlanError where `trigger` is none.

    Examples
    --------
    >>> check_trigger(0.5)
    >>> check_trigger("availble")
    Traceback (most recent call last):
    ...
    trident.errors.PlanError: start: trigger= is 'availble'; there are: available.
    Did you mean 'available'? Or give seconds (0 or more), or None for as fast as possible.
    """
    number = isinstance(trigger, int | float) and not isinstance(trigger, bool)
    if trigger in (None, "available") or (number and 0 <= trigger < float("inf")):  # type: ignore[operator]
        return
    advice = "Or give seconds (0 or more), or None for as fast as possible."
    raise PlanError("start: trigger= is", str(trigger), ["available"], advice)
