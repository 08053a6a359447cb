"""Starts a plan, on either engine, once it is checked."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from trident.api.run import Run
from trident.api.start_checks import check_start, warn, warn_unused
from trident.batch.attempt import Making
from trident.batch.changes import check_none_staged
from trident.batch.engine import E, Engine
from trident.batch.failures import FailurePolicy
from trident.batch.group_run import GroupRun
from trident.batch.opening import LogTerms
from trident.batch.runner import BatchRunner
from trident.batch.start_options import StartOptions
from trident.batch.states import batch_states, close_states, make_states
from trident.drpc.calls import CallQueue
from trident.drpc.request_engine import RequestEngine
from trident.drpc.request_loop import RETRIES, RequestLoop
from trident.drpc.service import LocalDRPC, SparkQueue
from trident.errors import OperationTypeError, PlanError
from trident.figures.group_monitor import GroupMonitor
from trident.job.compile import Local, compile_job
from trident.job.job import Job
from trident.log.checkpoint import hold_checkpoint
from trident.log.folders import SPARKS_LOG, STAGED, Folder
from trident.log.held import HeldCheckpoint
from trident.log.staging import StagingArea
from trident.plan.dead_letters import with_dead_letters
from trident.plan.nodes import StateNode
from trident.plan.places import describe_states
from trident.plan.plan import BatchGroup, DRPCQuery, Plan
from trident.plan.substitution import locate_states
from trident.states.state import State

_logger = logging.getLogger("trident")


def start(plan: Plan, spark: Any, options: StartOptions) -> Run:
    """Run a plan, on Spark with a session, with its states where they are now."""
    plan = replace(plan, hosted=options.hosted, on_error=options.on_error)
    plan = with_dead_letters(plan, options.dead_letters)
    check_start(plan, options)
    engine = _engine(plan, spark, options)
    warn(plan, options)
    warn_unused(plan)
    found = locate_states(plan)
    return _start(found, engine if found is plan else _engine(found, spark, options), options)


def _engine(plan: Plan, spark: Any, options: StartOptions) -> Engine[Any]:
    """Return what runs the plan: Spark with a session, else this process."""
    if spark is None:
        from trident.local.local_engine import LocalEngine

        if options.engine == "spark":
            advice = "Pass a session: start(spark, …); trident.spark.local_session() makes one."
            raise PlanError('start: engine="spark" was given without a session', "", (), advice)
        return LocalEngine(plan)
    if not hasattr(spark, "createDataFrame"):
        advice = "Write start(spark, checkpoint=…), or start(checkpoint=…) to run without Spark."
        raise OperationTypeError("start: expected a SparkSession, found", repr(spark), (), advice)
    from trident.spark.spark_engine import SparkEngine  # pyspark is optional

    return SparkEngine(plan, spark, options.engine)


def _start(plan: Plan, engine: Engine[E], options: StartOptions) -> Run:
    """Start a plan's queries, and a clock for each of its batch groups.

    If anything fails, clocks that run are stopped and all that was opened is closed.
    """
    jobs = {each: compile_job(each, Local()) for each in plan.groups if each.requests is not None}
    with ExitStack() as undo:
        drpc = LocalDRPC(plan, on_spark=on_spark(engine.session))
        undo.callback(drpc.close)
        groups = {each.id: [one.stream_id for one in each.sources] for each in plan.groups}
        given = options.spark_checkpoint
        beside = None if given is None else engine.folder(given)
        checkpoint = hold_checkpoint(options.checkpoint, beside)
        undo.callback(checkpoint.release)
        checkpoint.check_groups(groups)
        folders = {
            group: checkpoint.folder(group.id) if group.clock == "dataframe" else None
            for group in plan.groups
        }
        if options.checkpoint is None and plan.groups:
            _logger.info("no checkpoint was given: this run's log is in memory, and ends with it")
        # A group with a log of its own adopts nothing where others adopt, or have adopted.
        newest = {group: checkpoint.log(group.id).newest() for group in folders}
        adopting = {each for each, last in newest.items() if last is None or last.has_adopted}
        others = replace(options, adopt=None) if adopting else options
        clocks = [
            _clock(group, jobs.get(group), engine, checkpoint, folder, own, undo)
            for group, folder in folders.items()
            for own in [options if group in adopting else others]
        ]
        for clock in clocks:
            clock.start()
            undo.callback(clock.stop)
            if isinstance(clock, RequestLoop):
                drpc.answer_by(clock.function, clock)
        undo.pop_all()
    return Run(
        clocks,
        drpc=drpc,
        on_spark=engine.session is not None,
        on_end=checkpoint.release,
        on_close=drpc.close,
    )


def on_spark(session: Any = None) -> SparkQueue:
    """Return what makes the queues of queries on Spark, by default in the active session."""

    def queue(
        plan: Plan, query: DRPCQuery, conf: Mapping[str, Any] | None, most_waiting: int
    ) -> CallQueue:
        from trident.spark.job_queue import JobQueue  # pyspark is optional

        return JobQueue(plan, query, conf, most_waiting, session)

    return queue


def _clock(
    group: BatchGroup,
    requests_job: Job | None,
    engine: Engine[E],
    checkpoint: HeldCheckpoint,
    folder: Folder | None,
    options: StartOptions,
    undo: ExitStack,
) -> GroupRun:
    """Make the states of a group, open its log, and return its clock."""
    states = make_states(group.states)
    undo.callback(close_states, states.values())
    if requests_job is not None:
        requests = RequestEngine(group, requests_job, states)
        undo.callback(requests.close)
        # No pause: a request fails an attempt, and the next attempt is made without it.
        retries = max(options.retries, RETRIES)
        policy = FailurePolicy(retries, backoff=0.0, patience=options.patience)
        runner = _runner(group, engine, checkpoint, states, "the requests", policy, options)
        return RequestLoop(requests, runner)
    opened = engine.open(group, states)
    undo.callback(opened.close)
    policy = FailurePolicy(
        options.retries,
        options.on_failure,
        patience=options.patience,
        max_errors=options.max_errors,
    )
    source = folder.below(SPARKS_LOG).place if folder else "the spouts"
    if folder is not None and (newest := checkpoint.log(group.id).newest()) is not None:
        area = StagingArea(folder.below(STAGED))
        check_none_staged(newest, area, describe_states(group))
    runner = _runner(group, engine, checkpoint, states, source, policy, options)
    most = engine.pending(group, options.max_pending)
    return engine.clock(group, opened, runner, folder, options.trigger, most)


def _runner(
    group: BatchGroup,
    engine: Engine[E],
    checkpoint: HeldCheckpoint,
    states: Mapping[StateNode, State],
    source: str,
    policy: FailurePolicy,
    options: StartOptions,
) -> BatchRunner:
    """Make the runner of a group, and open its log."""
    runner = BatchRunner(
        checkpoint.log(group.id),
        batch_states(states),
        group=group.id,
        source=source,
        policy=policy,
        making=Making(group.timed, partitioned=group.partitioned, ageing=group.ageing),
        monitor=GroupMonitor(group.id),
    )
    streams = {each.stream_id: each.kept_schema for each in group.sources}
    if group.requests is not None:
        streams = {group.id: str(group.requests.fields)}
    sources = {each.stream_id: engine.source_of(each.source) for each in group.sources}
    terms = LogTerms(
        streams=streams,
        reads=engine.reads(group),
        clock=group.clock,
        adopt=options.adopt,
        folder_at=engine.folder,
        accept_loss=options.accept_loss,
        topology={"states": describe_states(group), "sources": sources},
        accept_change=options.accept_change,
    )
    runner.open(terms)
    return runner
