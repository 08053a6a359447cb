"""Waits for a store or a disk that is away, with growing pauses, as long as patience allows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from trident.batch.errors import BatchInterruptedError, OutageError
from trident.batch.failure_policy import FailurePolicy
from trident.log.errors import LogUnavailableError
from trident.states.errors import FailedException

T = TypeVar("T")

_logger = logging.getLogger("trident")

# A versioned store tells 4,096 attempts of a batch apart: with these pauses they last five hours.
_LONGEST_PAUSE = 5.0
_SECONDS_A_LINE = 10.0


class Outage:
    """The time in which a store or the log's disk is away and a batch waits; the logger is
    warned."""

    def __init__(self, patience: Patience, txid: int, what: str = "") -> None:
        self._txid = txid
        self._patience = patience
        self._what = f"{what}batch {txid} of {patience.group}"
        self._pauses = 0
        self._began = self._tried = self._told = 0.0
        self._failure: Exception | None = None

    def wait(self, failure: Exception) -> None:
        """Pause before another try; raise where the policy's patience is over, or the run is
        stopped."""
        policy, now = self._patience.policy, monotonic()
        if not self._pauses:
            self._began = self._tried = self._told = now
        seconds = self._tried - self._began
        if seconds >= policy.patience:
            raise OutageError(self._what, seconds, str(failure)) from failure
        if not self._pauses:
            _logger.warning("%s waits: %s", self._what, failure)
        elif now - self._told >= _SECONDS_A_LINE:
            self._told = now
            _logger.warning("%s has waited %.1f s: %s", self._what, now - self._began, failure)
        self._failure = failure
        self._pauses += 1
        pause = min(policy.pause(self._pauses), _LONGEST_PAUSE)
        left = self._began + policy.patience - now
        if self._patience.stopping.wait(min(pause, left) if left > 0 else pause):
            raise BatchInterruptedError(self._patience.group, self._txid) from failure
        self._tried = monotonic()

    def over(self) -> None:
        """End it, as a try has succeeded."""
        if self._pauses:
            seconds = self._tried - self._began
            _logger.warning("%s goes on, after %.1f s of: %s", self._what, seconds, self._failure)


@dataclass(frozen=True, slots=True)
class Patience:
    """Does what can't fail, however long a store or the log's disk is away; in any thread."""

    group: str
    policy: FailurePolicy
    stopping: threading.Event

    def do(self, call: Callable[[], T], txid: int, what: str = "") -> T:
        """Return what `call` returns, tried again while a store or the log's disk is away."""
        outage = None
        while True:
            try:
                done = call()
                break
            except (FailedException, LogUnavailableError) as failure:
                if outage is None:
                    outage = Outage(self, txid, what)
                outage.wait(failure)
        if outage is not None:
            outage.over()
        return done
