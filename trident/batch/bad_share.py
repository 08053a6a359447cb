"""Stops a run in which too many tuples are bad."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Lock

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
        self._last = 0, 0, 0
        self._kept = 0
        self._lock = Lock()

    def check(self, txid: int, counts: Mapping[str, int]) -> None:
        """Raise TooManyBadTuplesError where a batch, which has counted this, must not commit.

        The last batch may come again, of which another attempt has counted this.
        """
        if self._most is None:
            return
        with self._lock:
            if txid <= self._kept:
                return
            bad, tried = self._note(txid, counts)
            all_bad, all_tried = self._bad + bad, self._tried + tried
        if bad and all_bad > self._most * max(all_tried, _LATELY):
            raise TooManyBadTuplesError(self._group, txid, all_bad, all_tried, self._most)

    def keep(self, txid: int, counts: Mapping[str, int]) -> None:
        """Count a batch that is staged. It is not checked again, as nothing can mend it."""
        with self._lock:
            self._note(txid, counts)
            self._kept = txid

    def _note(self, txid: int, counts: Mapping[str, int]) -> tuple[int, int]:
        """Take a batch, or another attempt of it, for the last one."""
        last, bad, tried = self._last
        if txid > last and tried:
            self._pass(bad, tried)
        bad, tried = sum(bad_tuples(counts).values()), tried_tuples(counts)
        self._last = txid, bad, tried
        return bad, tried

    def _pass(self, bad: int, tried: int) -> None:
        """Add a batch of which no other attempt comes."""
        self._batches.append((bad, tried))
        self._bad, self._tried = self._bad + bad, self._tried + tried
        while self._tried - self._batches[0][1] >= _LATELY:
            bad, tried = self._batches.popleft()
            self._bad, self._tried = self._bad - bad, self._tried - tried
