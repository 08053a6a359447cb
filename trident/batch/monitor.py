"""What is told of what happens in a batch group; whoever wants to know hands one in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trident.batch.listening import Listening
from trident.batch.progress import BatchProgress
from trident.states.values import Token


class Monitor:
    """Told by a group's runner and clock of what happens. This one does nothing with it."""

    @property
    def told_here(self) -> bool:
        """Whether this thread is telling a listener: who waits for the group here waits forever."""
        return False

    def listen(self, listening: Listening) -> None:
        """Tell `listening` of the start, in this thread, and then of what follows."""

    def figures(self) -> Mapping[str, Any]:
        """Return what was done since the start, as JSON values."""
        return {}

    def started(
        self, due: Token, *, recovered: bool, under_way: bool, committed: int | None
    ) -> None:
        """Learn that the log is open, whether it was `recovered`, and whether the batch was then
        `under_way` of which the attempt `due` is made next."""

    def attempt_failed(self, token: Token, error: Exception, seconds: float) -> None:
        """Learn that an attempt has failed, where its error is caught."""

    def add(self, progress: BatchProgress) -> None:
        """Count a finished batch."""

    def corrected(self, tuples: int) -> None:
        """Count tuples of a batch that was added before their number was known."""

    def finished(self, progress: BatchProgress) -> None:
        """Learn of a finished batch that was added."""

    def warn_of_late(self, progress: BatchProgress) -> None:
        """Warn where many tuples of a batch came too late; again when their number is known."""

    def ended(self, failure: BaseException | None) -> None:
        """Learn that no batch follows, where its failure is caught."""
