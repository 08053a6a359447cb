"""Answers queries in this process, from whole committed batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trident.drpc.calls import Call, CallQueue, WaitingCalls
from trident.drpc.errors import DRPCElsewhereError
from trident.drpc.query import Query
from trident.drpc.queued_service import MOST_WAITING, QueuedService
from trident.errors import PlanError
from trident.plan.plan import DRPCQuery, Plan

SparkQueue = Callable[[Plan, DRPCQuery, Mapping[str, Any] | None, int], CallQueue]
"""Makes the queue of a query that Spark answers."""


class LocalDRPC(QueuedService):
    """The queries of a plan, answered in this process.

    Each is compiled once. It needs the plan and its states, but no engine: it answers for a run
    on Spark as well, and for the states of a topology that isn't running at all. A call that finds
    no other caller is answered in its own thread. Calls that come together are answered
    together: each state is asked once for all of them. Where Spark answers the query, each call
    is a job instead.

    The states are made anew, for reading; operations are prepared with `conf`. `on_spark` makes the
    queue of a query that Spark answers: without it such a query is a PlanError, as is one with a
    step that its engine can't run. At most `most_waiting` calls of one function wait; more are
    refused.

    Notes
    -----
    May be called by any number of threads and event loops. Several threads run the same operations
    of a query, and each reads through states of its own. A query that meets a batch being committed
    is run again, so its operations may see a request twice.
    """

    def __init__(
        self,
        plan: Plan,
        conf: Mapping[str, Any] | None = None,
        *,
        on_spark: SparkQueue | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.plan = plan
        queries: dict[str, Query] = {}
        queues: dict[str, CallQueue] = {}
        for function, query in plan.drpc.items():
            if query.source.engine == "spark":
                make_queue = on_spark or _refuse_spark
                queues[function] = make_queue(plan, query, conf, most_waiting)
            else:
                queries[function] = Query(plan, query, conf)
        super().__init__(queries, most_waiting)
        for each in queries.values():
            each.prepare()
        self._queues |= queues | {function: _Elsewhere(function) for function in plan.updating}

    def answer_by(self, function: str, queue: CallQueue) -> None:
        """Let the run of the topology answer a function that updates a state, by its queue."""
        self._queues[function] = queue


def _refuse_spark(
    plan: Plan, query: DRPCQuery, conf: Mapping[str, Any] | None, most_waiting: int
) -> CallQueue:
    advice = "Start the topology with a session, or leave engine='spark' out."
    raise PlanError("newDRPCStream: no Spark is here for the query", query.function, (), advice)


class _Elsewhere(CallQueue):
    """The queue of a function that updates a state, if the run is in another process."""

    def __init__(self, function: str) -> None:
        self._function = function
        self._waiting = WaitingCalls(function, 0)

    def put(self, call: Call) -> None:
        raise DRPCElsewhereError(self._function)

    def leave(self, call: Call) -> None: ...

    def close(self, seconds: float) -> None: ...
