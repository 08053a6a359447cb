"""What a batch group reports while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trident.batch.listening import Listening
from trident.batch.progress import BatchProgress
from trident.states.values import Token


class Monitor:
    """Takes the reports of a group's runner and clock. This one does nothing with them."""

    @property
    def calls_listener(self) -> bool:
        """Whether this thread is calling a listener: waiting here for the group would never end."""
        return False

    def listen(self, listening: Listening) -> None:
        """Report the start to `listening`, in this thread, and then all that follows."""

    def figures(self) -> Mapping[str, Any]:
        """Return what was done since the start, as JSON values."""
        return {}

    def started(
        self, due: Token, *, recovered: bool, under_way: bool, committed: int | None
    ) -> None:
        """The log is open, new or `recovered`; the attempt `due` follows, perhaps of a batch that
        an earlier run had `under_way`."""

    def attempt_failed(self, token: Token, error: Exception, seconds: float) -> None:
        """An attempt has failed; called where its error is caught."""

    def finished(self, progress: BatchProgress) -> None:
        """A batch is finished."""

    def corrected(self, progress: BatchProgress, more: int) -> None:
        """A finished batch had `more` tuples than its progress said, which is corrected here."""

    def ended(self, failure: BaseException | None) -> None:
        """No batch follows; called where the failure is caught."""
