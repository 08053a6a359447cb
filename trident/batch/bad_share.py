"""Stops a run in which too many tuples are bad."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Lock

from trident.batch.errors import TooManyBadTuplesError
from trident.operations.counters import bad_tuples, tried_tuples

_LATELY = 1_000
"""How many of the last tuples count: a single bad tuple at the beginning stops no run."""


class BadShare:
    """The share of bad tuples among the last ones that steps with ``on_error=`` were given.

    With a `most` of None no share is too large.
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
        """Raise TooManyBadTuplesError if a batch with these counts must not commit.

        The last batch may come again, with the counts of another attempt.
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
        """Count a batch that is staged. It is not checked again, as it can't change any more."""
        with self._lock:
            self._note(txid, counts)
            self._kept = txid

    def _note(self, txid: int, counts: Mapping[str, int]) -> tuple[int, int]:
        """Take a batch, or another attempt of it, for the last one."""
        last, bad, tried = self._last
        if txid > last and tried:
            self._add(bad, tried)
        bad, tried = sum(bad_tuples(counts).values()), tried_tuples(counts)
        self._last = txid, bad, tried
        return bad, tried

    def _add(self, bad: int, tried: int) -> None:
        """Add a batch that has no other attempt."""
        self._batches.append((bad, tried))
        self._bad, self._tried = self._bad + bad, self._tried + tried
        while self._tried - self._batches[0][1] >= _LATELY:
            bad, tried = self._batches.popleft()
            self._bad, self._tried = self._bad - bad, self._tried - tried
