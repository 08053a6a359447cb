"""The calls of a function that Spark answers: each by jobs of its own, some side by side."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Condition, Thread
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from trident.drpc.calls import Answer, Call, CallQueue, WaitingCalls
from trident.drpc.errors import DRPCClosedError, DRPCInternalError
from trident.plan.plan import DRPCQuery, Plan
from trident.spark.spark_query import SparkQuery

MOST_JOBS = 4
"""Requests to a function that run at the same time: Spark gives the first all the cores that it can
use, and what is left to those after it."""


class JobQueue(CallQueue):
    """The queue of one function, and its threads; a call that leaves is cancelled in Spark too."""

    def __init__(
        self,
        plan: Plan,
        query: DRPCQuery,
        conf: Mapping[str, Any] | None,
        most_waiting: int,
        session: SparkSession | None = None,
    ) -> None:
        self._query = SparkQuery(plan, query, conf or {}, session)
        self._changed = Condition()
        self._waiting = WaitingCalls(query.function, most_waiting)
        self._jobs: dict[Call, str] = {}
        self._threads = 0

    def put(self, call: Call) -> None:
        with self._changed:
            self._waiting.add(call)
            self._begin()

    def leave(self, call: Call) -> None:
        """Take a call out of the queue, or cancel it; one that has its answer is in neither."""
        with self._changed:
            self._waiting.remove(call)
            job = self._jobs.get(call)
        if job is not None:
            self._cancel(job)

    def hurry(self) -> None:
        """Try again to start a thread; called by a caller that has waited for long."""
        with self._changed:
            self._begin()

    def close(self, seconds: float) -> None:
        """Take no more calls, wait `seconds` at most for the answers to those that are here, and
        cancel what is left."""
        with self._changed:
            self._waiting.closed = True
            self._changed.wait_for(lambda: not (self._jobs or self._waiting), seconds)
            remaining, jobs = self._waiting.take_all(), dict(self._jobs)
        for call in (*remaining, *jobs):
            call.end(DRPCClosedError(self._query.function))
        for job in jobs.values():
            self._cancel(job)
        self._query.close()

    def _begin(self) -> None:
        """Start one more thread if calls wait; the caller holds the lock."""
        if self._waiting and self._threads < MOST_JOBS:
            try:
                Thread(target=self._work, name="trident-drpc-spark", daemon=True).start()
            except RuntimeError:
                return  # the system has none: who waits hurries, so it is tried again soon
            self._threads += 1

    def _work(self) -> None:
        """Answer calls until none waits."""
        while True:
            with self._changed:
                calls = self._waiting.take(1)
                if not calls:
                    self._threads -= 1
                    return
                [call] = calls
                job = self._jobs[call] = uuid4().hex
            answer = self._answer(call, job)
            with self._changed:
                del self._jobs[call]
                self._changed.notify_all()
            call.end(answer)

    def _answer(self, call: Call, job: str) -> Answer:
        try:
            return self._query.answer(call.args, job)
        except Exception as error:
            return error
        except BaseException as error:  # such as SystemExit, which only the caller can learn of
            failure = DRPCInternalError(self._query.function, call.args, repr(error))
            failure.__cause__ = error
            return failure

    def _cancel(self, job: str) -> None:
        """Cancel a job, in a thread: an event loop that asks for it must not wait for the JVM."""
        Thread(target=self._query.cancel, args=(job,), daemon=True).start()
