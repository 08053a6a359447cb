"""Sums over all batches of a group since its start, in constant memory."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from operator import attrgetter, itemgetter
from threading import Lock
from time import time
from typing import Any

from trident.batch.events import AttemptFailed, GroupEnded
from trident.batch.progress import BatchProgress
from trident.figures.run_figures import iso

WINDOW = 10.0
"""Over how many of the last seconds tuples per second are counted."""
_ERRORS = 20
_AT_ONCE = 64
_SUMS = ("tuples", "keys_read", "keys_written", "cache_hits", "late")
_SUMMED = {name: attrgetter(name) for name in _SUMS}


class GroupFigures:
    """The figures of one group; any thread may add to them, and read them.

    A batch is only noted, which takes a tenth of a microsecond, and summed up with others when
    there are some, or when somebody asks.
    """

    def __init__(self, started: float) -> None:
        self._started = started
        self._noted: deque[BatchProgress] = deque()
        self._lock = Lock()
        self._txid: int | None = None
        self._engine = ""
        self._batches = self._dead_letters = 0
        self._sums = dict.fromkeys(_SUMS, 0)
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._failures: Counter[str] = Counter()
        self._bad: Counter[str] = Counter()
        self._errors: deque[dict[str, Any]] = deque(maxlen=_ERRORS)
        # When the first batch of each of the last seconds was finished, and the tuples before it.
        self._marks: deque[tuple[float, int]] = deque(maxlen=int(WINDOW) + 1)

    def begin(self, txid: int | None) -> None:
        """Learn the last batch that earlier runs have committed; None where there is none."""
        self._txid = txid

    def add(self, progress: BatchProgress) -> None:
        self._noted.append(progress)
        if len(self._noted) >= _AT_ONCE:
            with self._lock:
                self._sum_up()

    def corrected(self, tuples: int) -> None:
        """Count `tuples` more of a batch that was added: its source told late how many it had."""
        with self._lock:
            self._sums["tuples"] += tuples

    def failed(self, attempt: AttemptFailed) -> None:
        with self._lock:
            self._failures[attempt.reason] += 1
            self._keep(attempt, attempt.txid, attempt.attempt, attempt.frame)

    def ended(self, end: GroupEnded, frame: str | None) -> None:
        """Keep what the group failed with, unless that is what its last attempt did."""
        with self._lock:
            self._sum_up()
            last = self._errors[-1] if self._errors else {}
            same = last.get("reason") == end.reason and last["message"] in (end.message or "")
            if not same:
                self._keep(end, (self._txid or 0) + 1, 0, frame)

    @property
    def txid(self) -> int | None:
        """The last committed batch; None before the first."""
        with self._lock:
            self._sum_up()
            return self._txid

    def told(self) -> dict[str, Any]:
        """Return the figures as JSON values, as of one moment."""
        with self._lock:
            self._sum_up()
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

    def _sum_up(self) -> None:
        noted = [self._noted.popleft() for _ in range(len(self._noted))]
        if not noted:
            return
        self._txid = noted[-1].txid
        # Others were only passed over: they are counted already, perhaps by an earlier run.
        done = [progress for progress in noted if progress.attempts]
        if not done:
            return
        self._mark(done)
        self._engine = done[-1].engine or self._engine
        self._batches += len(done)
        for name, summed in _SUMMED.items():
            self._sums[name] += sum(map(summed, done))
        self._dead_letters += sum([progress.dead_letter is not None for progress in done])
        for progress in done:
            if progress.bad_tuples:
                self._bad.update(progress.bad_tuples)
        self._add_seconds([progress.seconds for progress in done])

    def _add_seconds(self, taken: Sequence[Mapping[str, float]]) -> None:
        added = [taken]
        if any(seconds.keys() != taken[0].keys() for seconds in taken):
            added = [[seconds] for seconds in taken]
        for alike in added:
            for step in alike[0]:
                self._seconds[step] += sum(map(itemgetter(step), alike))

    def _mark(self, done: Sequence[BatchProgress]) -> None:
        """Note when seconds begin, and the tuples until then."""
        last = self._marks[-1][0] if self._marks else 0.0
        if done[-1].at < last:  # the clock was set back
            self._marks.clear()
            last = 0.0
        due = last + 1.0
        if done[-1].at < due:
            return
        tuples = self._sums["tuples"]
        for progress in done:
            if progress.at >= due:
                self._marks.append((progress.at, tuples))
                due = progress.at + 1.0
            tuples += progress.tuples

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
        told = {"at": iso(event.at), "txid": txid, "attempt": attempt, "reason": event.reason}
        self._errors.append({**told, "message": event.message, "frame": frame})
