"""Stops a run in which too many tuples are bad."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from trident.batch.errors import TooManyBadTuplesError
from trident.operations.counters import bad_tuples, tried_tuples

_LATELY = 1_000
"""The share is that of so many of the last tuples, so that one bad tuple at the begin stops
nothing."""


class BadShare:
    """The share of bad tuples among the last that steps with ``on_error=`` were given.

    None is too large where `most` is None.
    """

    def __init__(self, group: str, most: float | None) -> None:
        self._group = group
        self._most = most
        self._batches: deque[tuple[int, int]] = deque()
        self._bad = self._tried = 0

    def check(self, txid: int, counts: Mapping[str, int]) -> None:
        """Raise TooManyBadTuplesError where a batch, which has counted this, must not commit."""
        if self._most is None or not (bad := sum(bad_tuples(counts).values())):
            return
        bad, tried = self._bad + bad, self._tried + tried_tuples(counts)
        if bad > self._most * max(tried, _LATELY):
            raise TooManyBadTuplesError(self._group, txid, bad, tried, self._most)

    def committed(self, counts: Mapping[str, int]) -> None:
        """Learn what a batch has counted that has committed."""
        if self._most is None:
            return
        batch = sum(bad_tuples(counts).values()), tried_tuples(counts)
        self._batches.append(batch)
        self._bad, self._tried = self._bad + batch[0], self._tried + batch[1]
        while self._tried - self._batches[0][1] >= _LATELY:
            bad, tried = self._batches.popleft()
            self._bad, self._tried = self._bad - bad, self._tried - tried
