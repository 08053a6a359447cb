"""When a group whose sources are quiet runs a batch without tuples, so that windows can end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic

_LATER = 0.01
"""Seconds by which such a batch is later: the clock that tells its time is another one."""


class IdleTimes:
    """The times at which batches are due that are to find the sources quiet, once each.

    `seconds` are counted from the last tuples.
    """

    def __init__(self, seconds: Iterable[float]) -> None:
        self._seconds = sorted(set(seconds))
        self.begin()

    def begin(self) -> None:
        """Reckon from now on."""
        now = monotonic() + _LATER
        self._due = deque(now + seconds for seconds in self._seconds)

    def is_due(self) -> bool:
        """Whether a batch is due; each is told of once."""
        if not self._due or monotonic() < self._due[0]:
            return False
        self._due.popleft()
        return True

    @property
    def wait(self) -> float | None:
        """Seconds until one is due; None where none will be."""
        return max(0.0, self._due[0] - monotonic()) if self._due else None
