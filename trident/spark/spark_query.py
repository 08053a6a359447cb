"""A query of a plan that Spark answers, each request by jobs of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

from py4j.clientserver import ClientServer
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from trident.drpc.errors import DRPCError, DRPCInternalError
from trident.drpc.query import StateSets, answer_json, failure_of
from trident.errors import PlanError
from trident.job.compile import Spark, compile_job
from trident.job.job import LookUp, Source
from trident.kernels.task import Task
from trident.local.operation_copies import OperationCopies
from trident.operations.emitted import Row
from trident.plan.plan import DRPCQuery, Plan
from trident.spark.access import partitions_of
from trident.spark.checks import check_names, check_pickling, most_partitions
from trident.spark.error_transfer import error_to_show
from trident.spark.errors import SparkSessionError
from trident.spark.flow import InputFrame
from trident.spark.job_run import JobRun
from trident.spark.local_frame import local_frame
from trident.spark.quiet import TASKS, Quiet
from trident.spark.schemas import Schemas, select_columns
from trident.spark.session import check_session
from trident.spark.settings import own_session
from trident.spark.stage import StageContext
from trident.spark.versions import cancel_jobs, is_connect, plan_in_session
from trident.spark.workers import check_workers
from trident.states.errors import FailedException
from trident.tuples.block import Block

_logger = logging.getLogger("trident")


class SparkQuery:
    """Answers requests to one function by Spark jobs, in any thread; refuses what it can't at
    once."""

    def __init__(
        self,
        plan: Plan,
        query: DRPCQuery,
        conf: Mapping[str, Any],
        session: SparkSession | None,
    ) -> None:
        self.function = query.function
        self._query = query
        session = _session_of(query, session)
        check_session(session, f"newDRPCStream({query.function!r}, engine='spark') has")
        if is_connect(session):
            raise SparkSessionError(
                f"newDRPCStream({query.function!r}, engine='spark') has a Spark Connect session",
                "Leave engine= out: then this process answers the query; or use a classic session.",
            )
        check_workers(session)
        self._partitions = most_partitions(query, session)
        target = Spark(self._partitions, requests=True)
        self._job = compile_job(query, target)
        check_names(query.nodes, session)
        check_pickling(self._job)
        self._session = own_session(session, self._partitions)
        self._context = session.sparkContext
        self._schemas = Schemas(self._session)
        self._frames = {
            node.stream_id: self._static(node.frame, self._job.source(node.stream_id))
            for node in query.frames
        }
        self._states = StateSets(plan, query, conf)
        self._operations = OperationCopies()
        for step in self._job.steps:
            if isinstance(step, LookUp):
                for asked in step.row.queries:
                    self._operations.of(asked, 1)
        self._operations.prepare(conf)  # those in tasks are prepared there
        self._numbers = count(1)

    def close(self) -> None:
        """Close the idle states, and clean the operations up."""
        self._states.close()
        self._operations.cleanup()

    def answer(self, args: str, job: str) -> str:
        """Answer one request; by `job`, never the same again, :meth:`cancel` knows it."""
        context = StageContext(next(self._numbers))
        try:
            with self._named(job):
                return answer_json(self._rows(args, context))
        except Exception as error:
            raise self._failure(args, error, context) from error

    def cancel(self, job: str) -> None:
        """Cancel what a request runs in Spark, and all that it begins from now on."""
        if self._names_jobs:
            try:
                cancel_jobs(self._context, job)
            except Exception:  # such as of a session that was stopped, and its jobs with it
                _logger.debug("a request to %r was not cancelled", self.function, exc_info=True)

    @property
    def _names_jobs(self) -> bool:
        """Whether a thread has one of the JVM's to itself, so that no job of a batch runs by its
        name: unless ``PYSPARK_PIN_THREAD`` is false."""
        return isinstance(self._context._gateway, ClientServer)

    def _rows(self, args: str, context: StageContext) -> list[Row]:
        source, task = self._job.source(self.function), context.task()
        schema = self._schemas.of(dict.fromkeys(source.columns.names, "string"))
        block = Block({"args": [args]}, 1)
        request = local_frame(self._session, schema, block, source.name, task)
        inputs = {self.function: InputFrame(request, 1), **self._frames}
        run = JobRun(
            self._job,
            self._partitions,
            context,
            inputs,
            self._schemas,
            self._session,
            self._asked,
        )
        try:
            run.run()
            return list(run.result().tuples(self._query.result.fields.names))
        finally:
            run.release()

    def _asked(self, look_up: LookUp, inputs: Block, task: Task) -> Block:
        """Add to inputs what states answer, all as of one moment."""
        names = [state.name for state in look_up.states]
        return self._states.read(
            lambda views: look_up.row.apply([views[name] for name in names], inputs, task)
        )

    @contextmanager
    def _named(self, job: str) -> Iterator[None]:
        """Name what this thread runs in Spark, and keep Spark from logging how it fails."""
        stopped = f"the query {self.function!r} can't be answered any more: it has"
        check_session(self._session, stopped, "Start the topology again, on a new one.")
        if self._names_jobs:
            self._context.setJobGroup(job, f"query {self.function}", interruptOnCancel=False)
        quiet = Quiet(self._session, *TASKS)
        try:
            quiet.on()
            yield
        finally:
            quiet.off()

    def _failure(self, args: str, error: Exception, context: StageContext) -> DRPCError:
        shown = error_to_show(error, context.seal, "request")
        of_step = shown is error or context.seal.read(str(error)) is not None
        if isinstance(shown, FailedException) and not of_step:  # and no other attempt follows
            return DRPCInternalError(self.function, args, str(shown))
        return failure_of(self.function, args, shown if isinstance(shown, Exception) else error)

    def _static(self, frame: DataFrame, source: Source) -> InputFrame:
        """The columns that are needed of a DataFrame, in this query's own session, which plans it
        by its settings."""
        ours = select_columns(plan_in_session(self._session, frame), source.columns.names)
        # Of files Spark doesn't say how many; more than one, so nothing takes them for gathered.
        return InputFrame(ours, partitions_of(ours) or max(2, self._partitions))


def _session_of(query: DRPCQuery, given: SparkSession | None) -> SparkSession:
    """Return the session of a query's DataFrames, else the given one, else the active one."""
    for node in query.frames:
        session: SparkSession = node.frame.sparkSession
        return session
    if given is None and SparkContext._active_spark_context is None:
        what = f"newDRPCStream({query.function!r}, engine='spark'): there is no session"
        advice = "Make one first: trident.spark.local_session(), or SparkSession.builder."
        raise PlanError(what, "", (), advice)
    return given or SparkSession.active()
