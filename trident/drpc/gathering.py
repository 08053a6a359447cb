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
from trident.drpc.query_figures import QueryFigures

LONG = 0.05
"""Seconds. A tick that takes longer holds nobody up: the next begins beside it, of fewer calls."""
MOST_TOGETHER = 128
"""Calls in a tick."""
_SHORT = 1_000
"""Characters: longer arguments may be many tuples."""
_AT_ONCE = 0.001
"""Seconds of a processor that an event loop may spend on a call."""
_WARY = 1_000
"""Calls that workers answer after some that took longer."""
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

    def prepare(self) -> None:
        """Called once, before the first answer."""

    def answer(self, args: str) -> str:
        """Answer one request, or raise its failure."""

    def answer_together(self, requests: Sequence[str]) -> Sequence[Answer]:
        """Answer some requests, of each its answer or its failure."""

    def close(self) -> None:
        """Let go of what it reads; a thread that still answers is not disturbed."""


class Gathering(CallQueue):
    """The queue of one function, and the ticks that empty it.

    A tick answers all calls that wait when it begins; those that come meanwhile are of the next. So
    the more callers there are the more are answered by one look at the states.

    `figures` counts calls that are answered in the caller's thread.
    """

    def __init__(
        self, query: Answers, workers: Workers, most_waiting: int, figures: QueryFigures
    ) -> None:
        self._query = query
        self._figures = figures
        self._workers = workers
        self._lock = figures.lock  # one is taken for both
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
            with self._figures.call():
                return self._by_itself(args)
        with self._lock:
            if self._ticks or self._waiting or self._waiting.closed:
                return None
            self._ticks = 1
            self._last = began = monotonic()
        failed: type[BaseException] | None = None
        try:
            return self._query.answer(args)
        except BaseException as error:
            failed = type(error)
            raise
        finally:
            took = monotonic() - began
            if took > _SURE:
                self._learn(1, took)
            with self._lock:
                self._figures.count(took, failed)
                self._ticks -= 1
                if self._waiting or self._waiting.closed:
                    self._begin()
                    self._changed.notify_all()
            if self._figures.listeners.all:
                self._figures.tell(took, failed)

    def answers_here(self, args: str) -> bool:
        """Whether a call can be answered in the thread of an event loop, and hold it up for no
        longer than anything else: no step can wait for anything, or has taken long of late."""
        if not self._query.never_waits or len(args) > _SHORT:
            return False
        if self._wary:
            self._wary -= 1
            return False
        return True

    def answer_here(self, requests: Sequence[str]) -> Sequence[Answer]:
        """Answer some calls together in this thread, beside whatever else is answered."""
        with self._lock:
            if self._waiting.closed:
                return [DRPCClosedError(self._query.function) for _ in requests]
            self._beside += 1
        began = thread_time()
        try:
            return self._answers(requests)
        finally:
            if thread_time() - began > _AT_ONCE * len(requests):
                self._wary = _WARY
            with self._lock:
                self._beside -= 1
                self._changed.notify_all()

    def _by_itself(self, args: str) -> str:
        """Answer a call beside whatever else is answered, in this thread."""
        with self._lock:
            if self._waiting.closed:
                raise DRPCClosedError(self._query.function)
            self._beside += 1
        try:
            return self._query.answer(args)
        finally:
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
        """Called by whoever has waited for long: begin a tick beside one that takes long."""
        with self._lock:
            self._begin()

    def close(self, seconds: float) -> None:
        """Take no more calls, wait `seconds` at most for the answers to those that are there, and
        refuse what is left."""
        with self._lock:
            self._waiting.closed = True
            self._changed.wait_for(
                lambda: not (self._ticks or self._beside or self._waiting), seconds
            )
            left = self._waiting.take_all()
        for call in left:
            call.end(DRPCClosedError(self._query.function))

    def _begin(self) -> None:
        """Begin a tick where there is cause, holding the lock."""
        if not self._waiting or self._ticks >= MOST_TICKS:
            return
        now = monotonic()
        if not self._ticks or now - self._last > LONG:
            try:
                self._workers.start(self._run_ticks)
            except RuntimeError:
                return  # no thread is to be had: who waits hurries, so it is tried again soon
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
        except BaseException as error:  # such as SystemExit; nobody but the caller could be told
            if len(requests) > 1:
                return [answer for args in requests for answer in self._answers([args])]
            [args] = requests
            failure = DRPCInternalError(self._query.function, args, repr(error))
            failure.__cause__ = error
            return [failure]

    def _take(self) -> list[Call]:
        """The calls of the next tick; none ends the ticks of a worker."""
        with self._lock:
            calls = self._waiting.take(self._together)
            self._last = monotonic()
            if not calls:
                self._ticks -= 1
                self._changed.notify_all()
            return calls

    def _learn(self, calls: int, took: float) -> None:
        """Make the next tick of as many calls as it can answer before the next should begin."""
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
        """The answer to a call, or what it failed with."""
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
    """As many threads as there are jobs at one time; idle ones are kept for the next job.

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
