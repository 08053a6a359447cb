"""Calls of one function that come together are answered together, by threads for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from time import monotonic, thread_time
from typing import Protocol

from trident.drpc.calls import Answer, Call, CallQueue, WaitingCalls
from trident.drpc.errors import DRPCClosedError, DRPCInternalError

LONG = 0.05
"""Seconds. When a tick takes longer the next one begins beside it, with fewer calls."""
MOST_TOGETHER = 128
"""Calls in a tick."""
_SHORT = 1_000
"""Characters: longer arguments may be many tuples."""
_AT_ONCE = 0.001
"""Seconds of a processor that an event loop may spend on a call."""
_WARY = 1_000
"""How many calls workers answer after an event loop has spent longer on one."""
_SURE = LONG / MOST_TOGETHER
MOST_TICKS = 8
"""Ticks of one function that run at the same time."""

Job = Callable[[], None]


class Answers(Protocol):
    """Answers the calls of one name, in any thread; `Query` does."""

    function: str
    """What errors call it."""

    @property
    def never_waits(self) -> bool:
        """Whether no step of it can wait for anything, so that an event loop may answer."""

    @property
    def reads(self) -> bool:
        """Whether it reads states, so that calls gain by being answered together."""

    def answer(self, args: str) -> str:
        """Answer one request, or raise its failure."""

    def answer_together(self, requests: Sequence[str]) -> Sequence[Answer]:
        """Return the answer to each request, or its failure."""

    def close(self) -> None:
        """Let go of what it reads; a thread that still answers is not disturbed."""


class Gathering(CallQueue):
    """The queue of one function, and the ticks that empty it.

    A tick answers all calls that wait when it begins; later ones wait for the next tick. So more
    callers do not mean more looks at the states.
    """

    def __init__(self, query: Answers, workers: Workers, most_waiting: int) -> None:
        self._query = query
        self._workers = workers
        self._lock = Lock()
        self._changed = Condition(self._lock)
        self._waiting = WaitingCalls(query.function, most_waiting)
        self._ticks = self._beside = self._wary = 0
        self._last = 0.0
        self._together = MOST_TOGETHER

    def answer_alone(self, args: str) -> str | None:
        """Answer a call in this thread; None where it is better answered with others.

        That is where another one is being answered, and they could share what is read; and where
        the answer before took so long that a call might miss its time.
        """
        if self._together == 1:
            return None
        if not self._query.reads:
            self._begin_beside()
            try:
                return self._query.answer(args)
            finally:
                self._end_beside()
        with self._lock:
            if self._ticks or self._waiting or self._waiting.closed:
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
                if self._waiting or self._waiting.closed:
                    self._begin()
                    self._changed.notify_all()

    def may_answer_here(self, args: str) -> bool:
        """Whether a call can be answered in the thread of an event loop, and hold it up no longer
        than anything else does: no step can wait, and none took long lately."""
        if not self._query.never_waits or len(args) > _SHORT:
            return False
        if self._wary:
            self._wary -= 1
            return False
        return True

    def answer_here(self, requests: Sequence[str]) -> Sequence[Answer]:
        """Answer some calls together in this thread, beside all others."""
        try:
            self._begin_beside()
        except DRPCClosedError:
            return [DRPCClosedError(self._query.function) for _ in requests]
        began = thread_time()
        try:
            return self._answers(requests)
        finally:
            if thread_time() - began > _AT_ONCE * len(requests):
                self._wary = _WARY
            self._end_beside()

    def _begin_beside(self) -> None:
        """Count an answer that is made outside of ticks, for which the close has to wait."""
        with self._lock:
            if self._waiting.closed:
                raise DRPCClosedError(self._query.function)
            self._beside += 1

    def _end_beside(self) -> None:
        with self._lock:
            self._beside -= 1
            self._changed.notify_all()

    def put(self, call: Call) -> None:
        with self._lock:
            self._waiting.add(call)
            self._begin()

    def leave(self, call: Call) -> None:
        with self._lock:
            self._waiting.remove(call)

    def hurry(self) -> None:
        """Begin a tick beside one that takes long; called by whoever has waited for long."""
        with self._lock:
            self._begin()

    def close(self, seconds: float) -> None:
        """Take no more calls, wait `seconds` at most for the answers to those that have come, and
        refuse the rest."""
        with self._lock:
            self._waiting.closed = True
            self._changed.wait_for(
                lambda: not (self._ticks or self._beside or self._waiting), seconds
            )
            remaining = self._waiting.take_all()
        for call in remaining:
            call.end(DRPCClosedError(self._query.function))

    def _begin(self) -> None:
        """Begin a tick if calls wait and none runs, or the last took long; holds the lock."""
        if not self._waiting or self._ticks >= MOST_TICKS:
            return
        now = monotonic()
        if not self._ticks or now - self._last > LONG:
            try:
                self._workers.start(self._run_ticks)
            except RuntimeError:
                return  # the system has no more threads; callers that wait soon call hurry()
            self._ticks += 1
            self._last = now

    def _run_ticks(self) -> None:
        """Run ticks until nobody waits, in a worker."""
        while calls := self._take():
            began = monotonic()
            answers = self._answers([call.args for call in calls])
            self._learn(len(calls), monotonic() - began)
            for call, answer in zip(calls, answers, strict=True):
                call.end(answer)

    def _answers(self, requests: Sequence[str]) -> Sequence[Answer]:
        try:
            return self._query.answer_together(requests)
        except BaseException as error:  # such as SystemExit, of which only the caller can learn
            if len(requests) > 1:
                return [answer for args in requests for answer in self._answers([args])]
            [args] = requests
            failure = DRPCInternalError(self._query.function, args, repr(error))
            failure.__cause__ = error
            return [failure]

    def _take(self) -> list[Call]:
        """Return the calls of the next tick; an empty list ends the ticks of a worker."""
        with self._lock:
            calls = self._waiting.take(self._together)
            self._last = monotonic()
            if not calls:
                self._ticks -= 1
                self._changed.notify_all()
            return calls

    def _learn(self, calls: int, took: float) -> None:
        """Make the next tick as large as can be answered before another one should begin."""
        share = max(took / calls, _SURE)
        self._together = max(1, int(LONG / share))


class LoopTicks:
    """Answers calls in the thread of one event loop.

    The first call that comes in a turn of the loop is answered at once. Those that come in the same
    turn are answered together in the next.
    """

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self._begun = False
        self._waiting: list[tuple[str, asyncio.Future[Answer]]] = []

    async def answer(self, args: str) -> Answer:
        """Return the answer to a call, or its failure."""
        if not self._begun:
            self._begun = True
            asyncio.get_running_loop().call_soon(self._tick)
            [answer] = self._gathering.answer_here([args])
            return answer
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((args, future))
        return await future

    def _tick(self) -> None:
        calls, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
        self._begun = bool(calls)
        if not calls:
            return
        asyncio.get_running_loop().call_soon(self._tick)
        answers = self._gathering.answer_here([args for args, _ in calls])
        for (_, future), answer in zip(calls, answers, strict=True):
            if not future.done():  # its task may have been cancelled
                future.set_result(answer)


class Workers:
    """As many threads as jobs run at one time; idle ones are kept for the next job.

    A job never raises. The threads don't keep the process alive: what they do changes nothing.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0
        self._threads = 0

    def start(self, job: Job) -> None:
        """Run a job, soon.

        Raises RuntimeError where the system has no more threads; nothing will run the job.
        """
        with self._lock:
            idle = self._idle > 0
            if idle:
                self._idle -= 1
            else:
                self._threads += 1
        if not idle:
            try:
                Thread(target=self._work, name="trident-drpc", daemon=True).start()
            except RuntimeError:
                with self._lock:
                    self._threads -= 1
                raise
        self._jobs.put(job)

    def close(self) -> None:
        """End the threads, each after the job that it runs."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._idle += 1
        with self._lock:
            self._threads -= 1
