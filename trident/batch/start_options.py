"""The options of a start, checked in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from trident.batch.adopt import ADOPT_FORMS, Adopt
from trident.errors import PlanError
from trident.plan.nodes import OnError

OnFailure = Literal["stop", "dead-letter"]
EngineChoice = Literal["auto", "spark"]
"""Which engine runs batches with a session: the one that is expected to be faster, or Spark."""
Trigger = float | Literal["available"] | None
"""The least number of seconds between the starts of two batches; or ``"available"``, which runs all
that is available and ends. None, and 0 seconds, begin the next batch when one is done."""


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """The options of `TridentTopology.start`, which documents them; a wrong one is a PlanError."""

    checkpoint: str | os.PathLike[str] | None = field(default=None, repr=False)  # with its password
    trigger: Trigger = None
    retries: int = 3
    on_failure: OnFailure = "stop"
    patience: float = 600.0
    adopt: Adopt | None = None
    accept_loss: Mapping[str, int] = field(default_factory=dict)
    accept_change: Mapping[str, str] = field(default_factory=dict)
    engine: EngineChoice = "auto"
    max_pending: int = 1
    spark_checkpoint: str | os.PathLike[str] | None = field(default=None, repr=False)
    hosted: Literal["driver"] | None = None
    on_error: OnError = "fail"
    max_errors: float | None = None
    dead_letters: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_checkpoint(self.checkpoint, self.spark_checkpoint, self.adopt)
        _check_trigger(self.trigger)
        if type(self.retries) is not int or self.retries < 0:
            what = "start: retries are a whole number from 0, found"
            raise PlanError(what, repr(self.retries))
        if self.on_failure not in get_args(OnFailure):
            raise PlanError("start: unknown on_failure", str(self.on_failure), get_args(OnFailure))
        if type(self.patience) not in (int, float) or not self.patience >= 0:  # nor is NaN
            what = "start: patience is a number of seconds from 0, found"
            raise PlanError(what, repr(self.patience))
        _check_losses(self.accept_loss)
        _check_changes(self.accept_change)
        if type(self.max_pending) is not int or self.max_pending < 1:
            what = "start: max_pending is a whole number from 1, found"
            raise PlanError(what, repr(self.max_pending))
        if self.engine not in get_args(EngineChoice):
            raise PlanError("start: unknown engine", str(self.engine), get_args(EngineChoice))
        if self.on_error not in get_args(OnError):
            raise PlanError("start: unknown on_error", str(self.on_error), get_args(OnError))
        share = self.max_errors
        if share is not None and (type(share) not in (int, float) or not 0 <= share <= 1):
            what = "start: max_errors is a share from 0 to 1, found"
            raise PlanError(what, repr(share), (), "As in max_errors=0.01, for one tuple of 100.")
        if self.hosted not in (None, "driver"):
            advice = "Leave it out to host each state as it says itself."
            raise PlanError("start: hosted= is", str(self.hosted), ["driver"], advice)


def _check_checkpoint(checkpoint: Any, spark_checkpoint: Any, adopt: Any) -> None:
    for name, given in {"checkpoint": checkpoint, "spark_checkpoint": spark_checkpoint}.items():
        if given is not None and not (isinstance(given, str | os.PathLike) and given):
            what = f"start: the {name} is the path of a folder or a URL, found"
            raise PlanError(what, repr(given))
    if spark_checkpoint is not None and checkpoint is None:
        advice = "Give checkpoint= as well: a folder, and no other is needed, or a URL."
        raise PlanError("start: a spark_checkpoint without a checkpoint", "", (), advice)
    if adopt is not None and not isinstance(adopt, Adopt):
        what = "start: adopt= takes what an Adopt is made by, found"
        # Only its type, as it may hold a password.
        raise PlanError(what, type(adopt).__name__, (), f"Give one of: {ADOPT_FORMS}.")
    if adopt is not None and checkpoint is None:
        advice = "Give checkpoint=, or the state would belong to a log that ends with this run."
        raise PlanError("start: without a checkpoint nothing can be adopted", "", (), advice)


def _check_trigger(trigger: Any) -> None:
    number = isinstance(trigger, int | float) and not isinstance(trigger, bool)
    if trigger in (None, "available") or (number and 0 <= trigger < float("inf")):
        return
    advice = "Or give seconds (0 or more), or None for as fast as possible."
    raise PlanError("start: trigger= is", str(trigger), ["available"], advice)


def _check_losses(losses: Any) -> None:
    if not isinstance(losses, Mapping):
        what = "start: accept_loss takes {state: batch}, as the error says it; found"
        raise PlanError(what, repr(losses))
    for name, txid in losses.items():
        if type(txid) is not int or txid < 1:
            what = f"start: accept_loss takes the number of a batch for {name!r}, found"
            raise PlanError(what, repr(txid))


def _check_changes(changes: Any) -> None:
    if not isinstance(changes, Mapping) or not all(type(each) is str for each in changes.values()):
        what = "start: accept_change takes {name: what it is now}, as the error says it; found"
        raise PlanError(what, repr(changes))
