"""What follows a failed attempt: another one, later, or none.

While a store or the log's disk is away a batch waits, as long as `patience` allows. Any other
failure uses up a retry."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from trident.batch.errors import (
    BatchFailedError,
    BatchInterruptedError,
    FailurePolicyError,
    OutageError,
)
from trident.batch.start_options import OnFailure
from trident.log.errors import LogUnavailableError
from trident.states.errors import FailedException, UnavailableError
from trident.states.values import Token

T = TypeVar("T")

_logger = logging.getLogger("trident")

_LONGEST_BACKOFF = 10.0
# A versioned store tells 4,096 attempts of a batch apart: with these pauses they last five hours.
_LONGEST_PAUSE = 5.0
_SECONDS_A_LINE = 10.0


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """How a run deals with failed batches; `StartOptions` has checked the values.

    After the last of the `retries`, ``"stop"`` keeps the batch for the next start;
    ``"dead-letter"`` commits it without updating any state and goes on, for opaque maps only.
    `backoff` is doubled for each further retry, 10 s at most. A batch waits up to `patience`
    seconds for a store, or the log's disk, that is away: this is no failure of the batch. A share
    of bad tuples above `max_errors` stops the run; None allows any.

    Examples
    --------
    >>> [FailurePolicy().pause(failures) for failures in (1, 2, 3, 20)]
    [0.1, 0.2, 0.4, 10.0]
    """

    retries: int = 3
    on_failure: OnFailure = "stop"
    backoff: float = 0.1
    patience: float = 600.0
    max_errors: float | None = None

    def check(self, inexact: Sequence[str]) -> None:
        """Raise FailurePolicyError if some states are `inexact`, and the policy needs opaque
        ones."""
        if self.on_failure == "dead-letter" and inexact:
            raise FailurePolicyError(
                f"on_failure is 'dead-letter', but {', '.join(inexact)} is no opaque map",
                "What a given-up batch has written can be undone in opaque maps only: make it "
                "opaque, or use on_failure='stop'.",
            )

    def pause(self, failures: int) -> float:
        """Return how many seconds to wait after the last of `failures`."""
        doublings = min(failures - 1, 1000)  # more would overflow a float
        return min(_LONGEST_BACKOFF, self.backoff * 2.0**doublings)


@dataclass(frozen=True, slots=True)
class Patience:
    """Waits for a group's stores and its log's disk; in any thread.

    Setting `stopping` ends every wait.
    """

    group: str
    policy: FailurePolicy
    stopping: threading.Event

    def do(self, call: Callable[[], T], txid: int, what: str = "") -> T:
        """Return what `call` returns, tried again while a store or the log's disk is away."""
        outage = Outage(self, txid, what)
        while True:
            try:
                done = call()
                break
            except (FailedException, LogUnavailableError) as failure:
                outage.wait(failure)
        outage.end()
        return done

    def pause(self, seconds: float, txid: int, failure: Exception) -> None:
        """Wait; raise BatchInterruptedError if the run is stopped meanwhile."""
        if self.stopping.wait(seconds):
            raise BatchInterruptedError(self.group, txid) from failure


class Outage:
    """The time in which a store or the log's disk is away and a batch waits; it is logged."""

    def __init__(self, patience: Patience, txid: int, what: str = "") -> None:
        self._txid = txid
        self._patience = patience
        self._what = what
        self._pauses = 0
        self._began = self._tried = self._logged = 0.0
        self._failure: Exception | None = None

    @property
    def _name(self) -> str:
        return f"{self._what}batch {self._txid} of {self._patience.group}"

    def wait(self, failure: Exception) -> None:
        """Pause before another try; raise OutageError once the patience is used up."""
        policy, now = self._patience.policy, monotonic()
        if not self._pauses:
            self._began = self._tried = self._logged = now
        waited = self._tried - self._began
        if waited >= policy.patience:
            raise OutageError(self._name, waited, str(failure)) from failure
        if not self._pauses:
            _logger.warning("%s waits: %s", self._name, failure)
        elif now - self._logged >= _SECONDS_A_LINE:
            self._logged = now
            _logger.warning("%s has waited %.1f s: %s", self._name, now - self._began, failure)
        self._failure = failure
        self._pauses += 1
        pause = min(policy.pause(self._pauses), _LONGEST_PAUSE)
        remaining = self._began + policy.patience - now
        pause = min(pause, remaining) if remaining > 0 else pause
        self._patience.pause(pause, self._txid, failure)
        self._tried = monotonic()

    def end(self) -> None:
        """Log that a try has succeeded, if any has failed."""
        if self._pauses:
            seconds = self._tried - self._began
            _logger.warning("%s goes on, after %.1f s of: %s", self._name, seconds, self._failure)


class Retries:
    """The attempts of one batch; it is `droppable` if all states are opaque."""

    def __init__(self, patience: Patience, txid: int, droppable: bool) -> None:
        self.attempts = 0
        """How many attempts were made."""
        self.dead_letter: str | None = None
        """Why the next attempt is the batch's last, which drops it."""
        self._patience = patience
        self._droppable = droppable
        self._failures = 0
        self._outage = Outage(patience, txid)

    def wait(self, token: Token, failure: Exception) -> None:
        """Return when the next attempt may be made; raise if there is none, and the batch is
        kept."""
        if isinstance(failure, UnavailableError):
            self._outage.wait(failure)
            return
        if not isinstance(failure, FailedException):
            raise failure
        self._failures += 1
        policy, group = self._patience.policy, self._patience.group
        if self._failures > policy.retries or self.dead_letter is not None:
            self._give_up(token, failure)
            return
        _logger.warning(
            "attempt %d of batch %d of %s failed and is retried: %s",
            *(token.attempt, token.txid, group, failure),
        )
        self._patience.pause(policy.pause(self._failures), token.txid, failure)

    def end(self) -> None:
        """End them, as one has committed."""
        self._outage.end()

    def _give_up(self, token: Token, failure: FailedException) -> None:
        policy, group = self._patience.policy, self._patience.group
        if self.dead_letter is not None or policy.on_failure == "stop":
            text = str(failure) or type(failure).__name__
            advice = "Remove the cause, or allow more with retries="
            if self._droppable:
                advice += ", or go on without it with on_failure='dead-letter'"
            raise BatchFailedError(
                group, token.txid, self._failures, text, f"{advice}."
            ) from failure
        self.dead_letter = str(failure)
        _logger.error(
            "batch %d of %s is dead-lettered after %d attempts: %s",
            *(token.txid, group, self._failures, failure),
        )
