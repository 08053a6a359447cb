"""How many calls of a query there were, and how long they took, in constant memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from threading import Lock
from time import monotonic
from typing import Any

from trident.batch.events import QueryEnded
from trident.batch.listening import Listeners
from trident.drpc.errors import DRPCClosedError, DRPCQueueFullError, DRPCUsageError

BOUNDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
"""Seconds, in which calls are counted by how long they took."""
_RECENT = 1000
_REFUSED = (DRPCClosedError, DRPCQueueFullError, DRPCUsageError)


class QueryFigures:
    """The figures of one function; any thread adds to them, and reads them."""

    def __init__(self, function: str, listeners: Listeners) -> None:
        self._lock = Lock()
        self._listeners = listeners
        self._function = function
        self._calls = self._failed = 0
        self._seconds = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def add(self, seconds: float, error: type[BaseException] | None = None) -> None:
        """Count a call, and tell the listeners, in the caller's thread.

        `error` is the class of what the caller got in place of an answer.
        """
        with self._lock:
            self._calls += 1
            self._failed += error is not None
            if error is None or not issubclass(error, _REFUSED):  # which takes no time
                self._seconds += seconds
                self._counts[bisect_left(BOUNDS, seconds)] += 1
                self._recent.append(seconds)
        if self._listeners.all:
            name = None if error is None else error.__name__
            self._listeners.tell(QueryEnded(self._function, seconds, name))

    def to_dict(self, waiting: int) -> dict[str, Any]:
        """Return the figures as JSON values.

        They are the function, its calls and how many of them failed; the median and the 99th
        percentile of the last 1,000; and since the start the seconds of all, and how many took at
        most as long as each of some times.
        """
        with self._lock:
            recent, counts = list(self._recent), list(self._counts)
            calls, failed, seconds = self._calls, self._failed, self._seconds
        recent.sort()
        within, below = {}, 0
        for bound, count in zip(BOUNDS, counts, strict=False):
            below += count
            within[f"{bound:g}"] = below
        return {
            "function": self._function,
            "calls": calls,
            "failed": failed,
            "waiting": waiting,
            "p50": _quantile(recent, 0.5),
            "p99": _quantile(recent, 0.99),
            "seconds": seconds,
            "within": within,
            "timed": sum(counts),
        }


class CountedCall:
    """Counts the call that its block makes; a class, as a generator would take twice as long."""

    __slots__ = ("_began", "_figures")

    def __init__(self, figures: QueryFigures) -> None:
        self._figures = figures

    def __enter__(self) -> None:
        self._began = monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._figures.add(monotonic() - self._began, kind)


def _quantile(ordered: list[float], share: float) -> float | None:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else None
