"""Calls of one function that come together are answered together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Condition, Lock
from time import monotonic

from trident.drpc.calls import Answer, Call
from trident.drpc.errors import DRPCClosedError, DRPCInternalError, DRPCQueueFullError
from trident.drpc.query import Query
from trident.drpc.workers import Workers

LONG = 0.05
"""Seconds. A tick that takes longer holds nobody up: the next begins beside it, of fewer calls."""
MOST_TOGETHER = 128
"""Calls in a tick."""
_SURE = LONG / MOST_TOGETHER
MOST_TICKS = 8
"""Ticks of one function that run at the same time."""
MOST_BYTES = 64 * 2**20
"""What the arguments of all calls in a queue may take."""


class Gathering:
    """The queue of one function, and the ticks that empty it.

    A tick answers all calls that wait when it begins; those that come meanwhile are of the next.
    So the more callers there are the more are answered by one look at the states.

    Parameters
    ----------
    query : Query
        What answers.
    workers : Workers
        Who runs ticks.
    most_waiting : int
        How many calls the queue takes.
    """

    def __init__(self, query: Query, workers: Workers, most_waiting: int) -> None:
        self._query = query
        self._workers = workers
        self._most_waiting = most_waiting
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._waiting: dict[Call, None] = {}
        self._bytes = 0
        self._ticks = 0
        self._last = 0.0
        self._together = MOST_TOGETHER
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many calls are in the queue."""
        return len(self._waiting)

    def alone(self, args: str) -> str | None:
        """Answer a call in this thread; None where it is better answered with others.

        That is where another one is being answered, and they could share what is read; and where
        the answer before took so long that a call might miss its time.

        Raises
        ------
        DRPCError
            When the query failed.
        """
        if self._together == 1:
            return None
        if not self._query.reads:
            return self._query.answer(args)
        with self._lock:
            if self._ticks or self._waiting or self._closed:
                return None
            self._ticks = 1
            self._last = began = monotonic()
        try:
            return self._query.answer(args)
        finally:
            took = monotonic() - began
            if took > _SURE:
                self._learn(1, took)
            with self._lock:
                self._ticks -= 1
                if self._waiting or self._closed:
                    self._begin()
                    self._changed.notify_all()

    def put(self, call: Call) -> None:
        """Put a call into the queue.

        Raises
        ------
        DRPCQueueFullError
            When the queue takes no more.
        DRPCClosedError
            When nothing is answered any more.
        """
        size = len(call.args)
        with self._lock:
            if self._closed:
                raise DRPCClosedError(self._query.function)
            if len(self._waiting) >= self._most_waiting or self._bytes + size > MOST_BYTES:
                raise DRPCQueueFullError(self._query.function, len(self._waiting))
            self._waiting[call] = None
            self._bytes += size
            self._begin()

    def leave(self, call: Call) -> None:
        """Take a call out of the queue, where it still is."""
        with self._lock:
            self._remove(call)

    def hurry(self) -> None:
        """Called by whoever has waited for long: begin a tick beside one that takes long."""
        with self._lock:
            self._begin()

    def close(self, seconds: float) -> None:
        """Take no more calls, wait `seconds` at most for the answers to those that are there, and
        refuse what is left."""
        with self._lock:
            self._closed = True
            self._changed.wait_for(lambda: not self._ticks and not self._waiting, seconds)
            left = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
        for call in left:
            call.end(DRPCClosedError(self._query.function))

    def _begin(self) -> None:
        """Begin a tick where there is cause, holding the lock."""
        if not self._waiting or self._ticks >= MOST_TICKS:
            return
        now = monotonic()
        if not self._ticks or now - self._last > LONG:
            self._ticks += 1
            self._last = now
            self._workers.start(self._run_ticks)

    def _run_ticks(self) -> None:
        """Run ticks until nobody waits, in a worker."""
        while calls := self._taken():
            began = monotonic()
            answers = self._answers(calls)
            self._learn(len(calls), monotonic() - began)
            for call, answer in zip(calls, answers, strict=True):
                call.end(answer)

    def _answers(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """The answers to the calls of a tick."""
        try:
            return self._query.answer_together([call.args for call in calls])
        except BaseException as error:  # such as SystemExit; nobody but the caller could be told
            if len(calls) > 1:
                return [answer for call in calls for answer in self._answers([call])]
            [call] = calls
            failure = DRPCInternalError(self._query.function, call.args, repr(error))
            failure.__cause__ = error
            return [failure]

    def _taken(self) -> list[Call]:
        """The calls of the next tick; none ends the ticks of a worker."""
        with self._lock:
            calls = list(islice(self._waiting, self._together))
            for call in calls:
                self._remove(call)
            self._last = monotonic()
            if not calls:
                self._ticks -= 1
                self._changed.notify_all()
            return calls

    def _learn(self, calls: int, took: float) -> None:
        """Make the next tick of as many calls as it can answer before the next should begin."""
        share = max(took / calls, _SURE)
        self._together = max(1, int(LONG / share))

    def _remove(self, call: Call) -> None:
        if call in self._waiting:
            del self._waiting[call]
            self._bytes -= len(call.args)


