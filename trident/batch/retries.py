"""What becomes of a batch whose attempt has failed: it waits for another, or is given up."""

from __future__ import annotations

import logging

from trident.batch.errors import BatchFailedError, BatchInterruptedError
from trident.batch.outage import Outage, Patience
from trident.states.errors import FailedException, UnavailableError
from trident.states.values import Token

_logger = logging.getLogger("trident")


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
