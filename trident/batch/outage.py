"""What becomes of an attempt that has failed: the batch waits, as long as patience allows, for a
store or a disk that is away; else it waits for another attempt, or is given up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from trident.batch.errors import BatchFailedError, BatchInterruptedError, OutageError
from trident.batch.failure_policy import FailurePolicy
from trident.log.errors import LogUnavailableError
from trident.states.errors import FailedException, UnavailableError
from trident.states.values import Token

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


class Retries:
    """The attempts of one batch, which is `droppable` where all states are opaque."""

    def __init__(self, patience: Patience, txid: int, droppable: bool) -> None:
        self.attempts = 0
        """How many attempts were made."""
        self.dead_letter: str | None = None
        """Why the next attempt is the batch's last, which drops it."""
        self._group = patience.group
        self._policy = patience.policy
        self._stopping = patience.stopping
        self._droppable = droppable
        self._failures = 0
        self._outage = Outage(patience, txid)

    def wait(self, token: Token, failure: Exception) -> None:
        """Return when the next attempt may be made; raise where there is none, and the batch is
        kept."""
        if isinstance(failure, UnavailableError):
            self._outage.wait(failure)
        elif isinstance(failure, FailedException):
            self._failures += 1
            if self._failures > self._policy.retries or self.dead_letter is not None:
                self._give_up(token, failure)
            else:
                _logger.warning(
                    "attempt %d of batch %d of %s failed and is retried: %s",
                    *(token.attempt, token.txid, self._group, failure),
                )
                if self._stopping.wait(self._policy.pause(self._failures)):
                    raise BatchInterruptedError(self._group, token.txid) from failure
        else:
            raise failure

    def over(self) -> None:
        """End them, as one has committed."""
        self._outage.over()

    def _give_up(self, token: Token, failure: FailedException) -> None:
        if self.dead_letter is not None or self._policy.on_failure == "stop":
            text = str(failure) or type(failure).__name__
            advice = "Remove the cause, or allow more with retries="
            if self._droppable:
                advice += ", or go on without it with on_failure='dead-letter'"
            raise BatchFailedError(
                self._group, token.txid, self._failures, text, f"{advice}."
            ) from failure
        self.dead_letter = str(failure)
        _logger.error(
            "batch %d of %s is dead-lettered after %d attempts: %s",
            *(token.txid, self._group, self._failures, failure),
        )
