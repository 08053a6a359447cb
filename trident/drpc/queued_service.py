"""Answers calls by name, in this process: in the caller's thread, or from a queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from trident.batch.events import QueryEnded
from trident.batch.listening import Listeners, Listening
from trident.drpc.calls import Call, CallQueue, LoopEnds, check_request_id, check_seconds
from trident.drpc.errors import (
    DRPCClosedError,
    DRPCExecutionError,
    DRPCTimeoutError,
    UnknownFunctionError,
)
from trident.drpc.gathering import LONG, Answers, Gathering, LoopTicks, Workers
from trident.drpc.query_figures import CountedCall, QueryFigures
from trident.states.tracebacks import Briefly

TIMEOUT = 5.0
"""Seconds that a call waits by default."""
MOST_WAITING = 1_000
"""Calls that the queue of a function takes."""


class QueuedService:
    """Answers calls by name, in this process; each name has a queue of its own.

    A call that finds no other caller is answered in its own thread. Calls that come together are
    answered together.
    """

    def __init__(self, queries: Mapping[str, Answers], most_waiting: int) -> None:
        self._closed = False
        self._workers = Workers()
        self._queries = queries
        self._listeners = Listeners()
        self._figures: dict[str, QueryFigures] = {}
        self._queues: dict[str, CallQueue] = {
            function: Gathering(query, self._workers, most_waiting)
            for function, query in queries.items()
        }
        # Calls keep the LoopEnds that they need, so that no loop outlives its last call here.
        self._loop_ends: WeakValueDictionary[asyncio.AbstractEventLoop, LoopEnds] = (
            WeakValueDictionary()
        )
        self._loop_ticks: WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[Gathering, LoopTicks]
        ] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(functions={list(self.functions)})"

    @property
    def functions(self) -> Sequence[str]:
        """The functions that there are."""
        return tuple(self._queues)

    def waiting(self, function: str) -> int:
        """How many calls of a function are in its queue."""
        return self._queue_of(function).waiting

    def figures(self) -> list[dict[str, Any]]:
        """Return how many calls of each function there were, and how long they took.

        JSON values; ``docs/monitoring.md`` explains each.
        """
        return [
            self._figures_of(function).to_dict(queue.waiting)
            for function, queue in self._queues.items()
        ]

    def listen(self, callback: Callable[[QueryEnded], object]) -> Listening:
        """Have `callback` called with a `QueryEnded` at the end of each call.

        It is called in the thread, and the task if any, of the caller, which waits for it. An error
        of the callback is logged and has no other effect. Returns what ends it by ``stop()``.
        """
        return self._listeners.add(callback)

    def execute(
        self,
        function: str,
        args: str,
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Answer one request.

        Parameters
        ----------
        function : str
            The name given to ``newDRPCStream``.
        args : str
            The arguments, the only value of the query's only tuple.
        timeout : float, optional
            Seconds, 5 by default. If it is given another thread answers, so that the call ends
            in time whatever a step does. Otherwise a call without competitors is answered in its
            own thread, which no time-out can interrupt, unless the answer before took 50 ms or
            more.
        request_id : str, optional
            The identity of the request. If the function updates a state, a request that comes again
            with its id within ten minutes gets the same answer and changes nothing.

        Returns
        -------
        str
            JSON, as Storm's: a list of the tuples of the step that was declared last, each a list
            of its values; ``[]`` without tuples. Values that JSON has no form for are written as
            ``str`` shows them.

        Raises
        ------
        UnknownFunctionError
            When the topology has no such function.
        DRPCExecutionError
            When the query failed; its cause is what an operation or a state raised.
        DRPCTimeoutError
            When no answer came in time.
        DRPCQueueFullError
            When too many calls wait.
        DRPCClosedError
            When the run has been stopped.
        DRPCElsewhereError
            When the function updates a state, and the run is in another process.
        MalformedRequestError
            When the id is invalid, or was given to other arguments before.
        """
        with Briefly():
            return self._execute(function, args, timeout, request_id)

    def _execute(
        self, function: str, args: str, timeout: float | None, request_id: str | None
    ) -> str:
        queue = self._queue_of(function)
        args = _text(function, args)
        check_request_id(request_id)
        with CountedCall(self._figures_of(function)):
            if timeout is None:
                answer = queue.answer_alone(args)
                if answer is not None:
                    return answer
            call = Call(args, request_id)
            queue.put(call)
            try:
                return self._wait_for(function, queue, call, _seconds(timeout))
            finally:
                queue.leave(call)

    async def execute_async(
        self,
        function: str,
        args: str,
        timeout: float | None = None,
        *,
        request_id: str | None = None,
    ) -> str:
        """Answer one request without blocking the event loop; a task that is cancelled leaves the
        queue.

        The parameters and errors are those of :meth:`execute`. Another thread answers, unless no
        step can wait: if all states are in memory, and all operations are of this library.
        """
        queue = self._queue_of(function)
        args, seconds = _text(function, args), _seconds(timeout)
        check_request_id(request_id)
        with CountedCall(self._figures_of(function)):
            if isinstance(queue, Gathering) and queue.may_answer_here(args):
                answer = await self._ticks_of(queue).answer(args)
                if isinstance(answer, Exception):
                    raise answer
                return answer
            return await self._wait_in_task(function, queue, Call(args, request_id), seconds)

    async def _wait_in_task(
        self, function: str, queue: CallQueue, call: Call, seconds: float
    ) -> str:
        loop = asyncio.get_running_loop()
        ends = self._loop_ends.get(loop)
        if ends is None:
            ends = self._loop_ends[loop] = LoopEnds(loop)
        timer: asyncio.TimerHandle
        queue.put(call)

        def check_time() -> None:
            nonlocal timer
            elapsed = monotonic() - call.began
            if elapsed < seconds:
                queue.hurry()
                timer = loop.call_later(min(LONG, seconds - elapsed), check_time)
                return
            queue.leave(call)
            call.end(DRPCTimeoutError(function, elapsed, queue.waiting))

        timer = loop.call_later(min(LONG, seconds), check_time)
        try:
            return await ends.future_of(call)
        finally:
            timer.cancel()
            queue.leave(call)

    def close(self, drain: float = TIMEOUT) -> None:
        """Take no more calls, answer those that wait, and close the states; may be repeated.

        Calls without an answer after `drain` seconds end with `DRPCClosedError`.
        """
        if self._closed:
            return
        self._closed = True
        until = monotonic() + drain
        for queue in self._queues.values():
            queue.close(max(0.0, until - monotonic()))
        self._workers.close()
        for query in self._queries.values():
            query.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, function: str, query: Answers, most_waiting: int) -> None:
        """Answer one more name; called by one thread at a time."""
        queue = Gathering(query, self._workers, most_waiting)
        self._queues = {**self._queues, function: queue}  # other threads may iterate over the old

    def _figures_of(self, function: str) -> QueryFigures:
        return self._figures.get(function) or self._figures.setdefault(
            function, QueryFigures(function, self._listeners)
        )

    def _ticks_of(self, queue: Gathering) -> LoopTicks:
        """Return the ticks of a queue in the running event loop."""
        ticks = self._loop_ticks.setdefault(asyncio.get_running_loop(), {})
        if queue not in ticks:
            ticks[queue] = LoopTicks(queue)
        return ticks[queue]

    def _queue_of(self, function: str) -> CallQueue:
        if self._closed:
            raise DRPCClosedError(function)
        try:
            return self._queues[function]
        except (KeyError, TypeError):
            raise UnknownFunctionError(function, self.functions) from None

    def _wait_for(self, function: str, queue: CallQueue, call: Call, seconds: float) -> str:
        """Return the answer to a call of this thread."""
        while (remaining := call.began + seconds - monotonic()) > 0:
            with suppress(TimeoutError):
                call.exception(min(remaining, LONG))
            if call.done():
                return call.result()
            queue.hurry()
        queue.leave(call)
        raise DRPCTimeoutError(function, monotonic() - call.began, queue.waiting)


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return TIMEOUT
    check_seconds("execute", timeout)
    return timeout


def _text(function: str, args: object) -> str:
    """Return the arguments as a plain str, also those of a subclass."""
    if type(args) is str:
        return args
    if not isinstance(args, str):
        error = TypeError(f"the arguments of a query are a str, found {type(args).__name__}")
        raise DRPCExecutionError(function, repr(args), str(error)) from error
    return "".join((args,))
