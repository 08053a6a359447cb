"""Answers queries in this process, from whole committed batches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from trident.drpc.calls import Answer, LoopCall, LoopEnds, ThreadCall
from trident.drpc.errors import (
    DRPCClosedError,
    DRPCExecutionError,
    DRPCTimeoutError,
    DRPCUsageError,
    UnknownFunctionError,
)
from trident.drpc.gathering import LONG, Gathering
from trident.drpc.query import Query
from trident.drpc.workers import Workers
from trident.plan.plan import Plan

TIMEOUT = 5.0
"""Seconds that a call waits where nobody says how many."""
MOST_WAITING = 1_000
"""Calls that the queue of a function takes."""


class LocalDRPC:
    """The queries of a plan, answered in this process.

    Each is compiled once. It needs the plan and its states, but no engine: it answers for a run
    on Spark as well, and for the states of a topology that isn't running at all. A call that finds
    nobody else asking is answered in its own thread. Calls that come together are answered
    together: each state is asked once for all of them.

    Parameters
    ----------
    plan : Plan
        The plan; its states are made anew, for reading.
    conf : mapping, optional
        What operations are prepared with.
    most_waiting : int
        How many calls of one function wait at most; more are refused.

    Raises
    ------
    PlanError
        For a query with a step that runs on Spark only.

    Notes
    -----
    May be called by any number of threads and event loops. Several threads run the same operations
    of a query, and each reads through states of its own. A query that meets a batch being committed
    is run again, so its operations may see a request twice.

    Examples
    --------
    >>> from trident import Sum, TridentTopology
    >>> topology = TridentTopology()
    >>> _ = (topology.newDRPCStream("add")
    ...     .each("args", lambda args: map(int, args.split()), "n")
    ...     .aggregate("n", Sum(), "sum"))
    >>> with LocalDRPC(topology.plan()) as drpc:
    ...     drpc.execute("add", "2 3")
    '[[5]]'
    """

    def __init__(
        self,
        plan: Plan,
        conf: Mapping[str, Any] | None = None,
        *,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._closed = False
        self._workers = Workers()
        self._queries = {
            function: Query(plan, query, conf) for function, query in plan.drpc.items()
        }
        self._gatherings = {
            function: Gathering(query, self._workers, most_waiting)
            for function, query in self._queries.items()
        }
        # Each is kept by the calls that need it, so that no loop outlives its last call here.
        self._loops: WeakValueDictionary[asyncio.AbstractEventLoop, LoopEnds] = (
            WeakValueDictionary()
        )
        for query in self._queries.values():
            query.prepare()

    @property
    def functions(self) -> Sequence[str]:
        """The functions that there are."""
        return tuple(self._queries)

    def waiting(self, function: str) -> int:
        """How many calls of a function are in its queue."""
        return self._gathering(function).waiting

    def execute(self, function: str, args: str, timeout: float | None = None) -> str:
        """Answer one request.

        Parameters
        ----------
        function : str
            The name given to ``newDRPCStream``.
        args : str
            The arguments, the only value of the query's only tuple.
        timeout : float, optional
            Seconds, 5 by default. Where it is given another thread answers, so that the call ends
            in time whatever a step does. Otherwise a call that nobody else competes with is
            answered in its own thread, which no time-out can interrupt, unless the answer before
            took 50 ms or more.

        Returns
        -------
        str
            JSON, as Storm's: a list of the tuples of the step that was declared last, each a list
            of its values; ``[]`` where there is none. What JSON has no form for is written as
            ``str`` shows it.

        Raises
        ------
        UnknownFunctionError
            When the topology has no such function.
        DRPCExecutionError
            When the query failed; its cause is what an operation or a state raised.
        DRPCTimeoutError
            When there was no answer in time.
        DRPCQueueFullError
            When too many calls wait.
        DRPCClosedError
            When the run has been stopped.
        """
        gathering = self._gathering(function)
        args = _text(function, args)
        if timeout is None:
            answer = gathering.alone(args)
            if answer is not None:
                return answer
        call = ThreadCall(args)
        gathering.put(call)
        try:
            return _returned(self._awaited(function, gathering, call, _seconds(timeout)))
        finally:
            gathering.leave(call)

    async def execute_async(
        self, function: str, args: str, timeout: float | None = None
    ) -> str:
        """Answer one request without blocking the event loop; a task that is cancelled leaves the
        queue.

        The parameters and errors are those of :meth:`execute`; another thread answers always.

        Examples
        --------
        >>> import asyncio
        >>> from trident import TridentTopology
        >>> topology = TridentTopology()
        >>> _ = topology.newDRPCStream("upper").map(str.upper, "text")
        >>> with LocalDRPC(topology.plan()) as drpc:
        ...     asyncio.run(drpc.execute_async("upper", "a"))
        '[["A"]]'
        """
        gathering = self._gathering(function)
        seconds = _seconds(timeout)
        loop = asyncio.get_running_loop()
        ends = self._loops.get(loop)
        if ends is None:
            ends = self._loops[loop] = LoopEnds(loop)
        call = LoopCall(_text(function, args), ends)
        timer: asyncio.TimerHandle
        gathering.put(call)

        def still_there() -> None:
            nonlocal timer
            elapsed = monotonic() - call.began
            if elapsed < seconds:
                gathering.hurry()
                timer = loop.call_later(min(LONG, seconds - elapsed), still_there)
                return
            gathering.leave(call)
            if not call.future.done():
                error = DRPCTimeoutError(function, elapsed, gathering.waiting)
                call.future.set_exception(error)

        timer = loop.call_later(min(LONG, seconds), still_there)
        try:
            return await call.future
        finally:
            timer.cancel()
            gathering.leave(call)

    def close(self, drain: float = TIMEOUT) -> None:
        """Take no more calls, answer those that wait, and close the states; may be repeated.

        Parameters
        ----------
        drain : float
            How many seconds to wait for answers at most; calls that are left end with
            `DRPCClosedError`.
        """
        if self._closed:
            return
        self._closed = True
        until = monotonic() + drain
        for gathering in self._gatherings.values():
            gathering.close(max(0.0, until - monotonic()))
        self._workers.close()
        for query in self._queries.values():
            query.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _gathering(self, function: str) -> Gathering:
        if self._closed:
            raise DRPCClosedError(function)
        try:
            return self._gatherings[function]
        except (KeyError, TypeError):
            raise UnknownFunctionError(function, self.functions) from None

    def _awaited(
        self, function: str, gathering: Gathering, call: ThreadCall, seconds: float
    ) -> Answer:
        """The answer to a call of this thread."""
        while (left := call.began + seconds - monotonic()) > 0:
            answer = call.wait(min(left, LONG))
            if answer is not None:
                return answer
            gathering.hurry()
        gathering.leave(call)
        return DRPCTimeoutError(function, monotonic() - call.began, gathering.waiting)


def _seconds(timeout: float | None) -> float:
    if timeout is None:
        return TIMEOUT
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not number or not 0 < timeout < float("inf"):
        raise DRPCUsageError("execute: the timeout is a number of seconds, found", repr(timeout))
    return timeout


def _text(function: str, args: object) -> str:
    """The arguments as plain text, whatever their class is shown as."""
    if type(args) is str:
        return args
    if not isinstance(args, str):
        error = TypeError(f"the arguments of a query are a str, found {type(args).__name__}")
        raise DRPCExecutionError(function, repr(args), str(error)) from error
    return "".join((args,))


def _returned(answer: Answer) -> str:
    if isinstance(answer, Exception):
        raise answer
    return answer
