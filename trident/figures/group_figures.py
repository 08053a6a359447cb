"""Sums over all batches of a group since its start, in constant memory."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from threading import Lock
from time import time
from typing import Any

from trident.batch.events import AttemptFailed, GroupEnded
from trident.batch.progress import BatchProgress
from trident.figures.run_figures import iso

WINDOW = 10.0
"""The last seconds over which tuples per second are counted."""
_ERRORS = 20
_SUMS = ("tuples", "keys_read", "keys_written", "cache_hits", "late")


class GroupFigures:
    """The figures of one group; any thread may add to them, and read them."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._lock = Lock()
        self._txid: int | None = None
        self._engine = ""
        self._batches = self._dead_letters = 0
        self._sums = dict.fromkeys(_SUMS, 0)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failures: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._errors: deque[dict[str, Any]] = deque(maxlen=_ERRORS)
        # For each of the last seconds when its first batch was finished, and the tuples before it.
        self._marks: deque[tuple[float, int]] = deque(maxlen=int(WINDOW) + 1)

    def begin(self, txid: int | None) -> None:
        """Learn the last batch that earlier runs have committed, if any."""
        self._txid = txid

    def add(self, progress: BatchProgress) -> None:
        with self._lock:
            self._txid = progress.txid
            if not progress.attempts:
                return  # a replay, which was counted before, perhaps by an earlier run
            self._mark(progress.at)
            self._engine = progress.engine or self._engine
            self._batches += 1
            for name in _SUMS:
                self._sums[name] += getattr(progress, name)
            self._dead_letters += progress.dead_letter is not None
            if progress.bad_tuples:
                self._bad.update(progress.bad_tuples)
            for step, took in progress.seconds.items():
                self._seconds[step] += took

    def corrected(self, tuples: int) -> None:
        """Count `tuples` more of a batch that was added: its source knew their number late."""
        with self._lock:
            self._sums["tuples"] += tuples

    def failed(self, attempt: AttemptFailed) -> None:
        with self._lock:
            self._failures[attempt.reason] += 1
            self._keep(attempt, attempt.txid, attempt.attempt, attempt.frame)

    def ended(self, end: GroupEnded, frame: str | None) -> None:
        """Keep what the group failed with, unless its last attempt failed with the same."""
        with self._lock:
            last = self._errors[-1] if self._errors else {}
            same = last.get("reason") == end.reason and last["message"] in (end.message or "")
            if not same:
                self._keep(end, (self._txid or 0) + 1, 0, frame)

    @property
    def txid(self) -> int | None:
        """The last committed batch; None before the first."""
        with self._lock:
            return self._txid

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values, as of one moment."""
        with self._lock:
            return {
                "engine": self._engine,
                "txid": self._txid,
                "batches": self._batches,
                "attempts": self._batches + sum(self._failures.values()),
                **self._sums,
                "tuples_per_second": self._tuples_per_second(),
                "seconds": dict(self._seconds),
                "dead_letters": self._dead_letters,
                "bad_tuples": dict(self._bad),
                "failures": dict(self._failures),
                "errors": list(self._errors),
            }

    # All below is called with the lock.

    def _mark(self, at: float) -> None:
        """Note when a second begins, and the number of tuples before it."""
        if self._marks and at < self._marks[-1][0]:  # the clock was set back
            self._marks.clear()
        if not self._marks or at >= self._marks[-1][0] + 1.0:
            self._marks.append((at, self._sums["tuples"]))

    def _tuples_per_second(self) -> float:
        now = time()
        since = max(now - WINDOW, self._started)
        for at, before in self._marks:
            if at >= since:
                return float((self._sums["tuples"] - before) / max(now - since, 1.0))
        return 0.0

    def _keep(
        self, event: AttemptFailed | GroupEnded, txid: int, attempt: int, frame: str | None
    ) -> None:
        self._errors.append(
            {
                "at": iso(event.at),
                "txid": txid,
                "attempt": attempt,
                "reason": event.reason,
                "message": event.message,
                "frame": frame,
            }
        )
