"""Starts a plan, on either engine, where what must hold before does."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from trident.api.run import Run
from trident.batch.attempt import Making
from trident.batch.engine import E, Engine
from trident.batch.failure_policy import FailurePolicy
from trident.batch.group_run import GroupRun
from trident.batch.open_states import batch_states, close_states, make_states
from trident.batch.runner import BatchRunner
from trident.batch.start_options import StartOptions
from trident.drpc.calls import CallQueue
from trident.drpc.request_engine import RequestEngine
from trident.drpc.request_loop import RETRIES, RequestLoop
from trident.drpc.service import LocalDRPC, SparkQueue
from trident.errors import GuaranteeWarning, PlanError, UsageError
from trident.figures.group_monitor import GroupMonitor
from trident.job.compile import Local, compile_job
from trident.job.job import Job
from trident.job.passes import partitions_asked
from trident.log.checkpoint import FolderAt, open_checkpoint
from trident.log.folders import SPARKS_LOG, Folder
from trident.log.held import HeldCheckpoint
from trident.operations.builtin import Debug, Negate
from trident.operations.callables import Native
from trident.operations.interfaces import Consumer
from trident.operations.kept_answers import KeptAnswers
from trident.plan.guarantee import guarantee
from trident.plan.nodes import Node, OutputMode, StateNode
from trident.plan.places import described_states
from trident.plan.plan import BatchGroup, DRPCQuery, Plan
from trident.plan.query_checks import check_made, check_made_updatable
from trident.spouts.classic import ICommitterTransactionalSpout
from trident.spouts.interfaces import ICommitterTridentSpout
from trident.states.state import State
from trident.states.values import StateType
from trident.tuples.fields import Fields

_logger = logging.getLogger("trident")
_COMMITTERS = (ICommitterTridentSpout, ICommitterTransactionalSpout)
"""Spouts that do something themselves when a batch is committed."""


def start(plan: Plan, engine: Engine[E], options: StartOptions) -> Run:
    """Run a plan: its queries, and a clock for each of its batch groups.

    Where anything fails, clocks that run are stopped and all that was opened is closed.
    """
    jobs = {each: compile_job(each, Local()) for each in plan.groups if each.requests is not None}
    with ExitStack() as undo:
        drpc = LocalDRPC(plan, on_spark=on_spark(engine.session))
        undo.callback(drpc.close)
        groups = [group.id for group in plan.groups]
        given = options.spark_checkpoint
        beside = None if given is None else engine.folder(given)
        checkpoint = open_checkpoint(options.checkpoint, groups, beside)
        undo.callback(checkpoint.release)
        folders = {
            group: checkpoint.folder(group.id) if group.clock == "dataframe" else None
            for group in plan.groups
        }
        if options.checkpoint is None and plan.groups:
            _logger.info("no checkpoint was given: this run's log is in memory, gone with it")
        clocks = [
            _requests(group, jobs[group], engine, checkpoint, options, undo)
            if group in jobs
            else _clock(group, engine, checkpoint, folder, options, undo)
            for group, folder in folders.items()
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
        from trident.spark.job_queue import job_queue  # pyspark is optional

        return job_queue(plan, query, conf, most_waiting, session)

    return queue


def _requests(
    group: BatchGroup,
    job: Job,
    engine: Engine[E],
    checkpoint: HeldCheckpoint,
    options: StartOptions,
    undo: ExitStack,
) -> GroupRun:
    """Make the states of a group of requests, open its log, and return its clock."""
    assert group.requests is not None
    states = make_states(group.states)
    undo.callback(close_states, states.values())
    requests = RequestEngine(group, job, states)
    undo.callback(requests.close)
    # No pause: what fails an attempt is one of its requests, and the next one is without it.
    policy = FailurePolicy(max(options.retries, RETRIES), backoff=0.0, patience=options.patience)
    runner = _runner(group, checkpoint, states, "the requests", policy)
    _open(runner, group, options, engine.folder, {group.id: str(group.requests.fields)})
    return RequestLoop(requests, runner)


def _clock(
    group: BatchGroup,
    engine: Engine[E],
    checkpoint: HeldCheckpoint,
    folder: Folder | None,
    options: StartOptions,
    undo: ExitStack,
) -> GroupRun:
    """Do the same for a group of streams, by the engine."""
    states = make_states(group.states)
    undo.callback(close_states, states.values())
    opened = engine.open(group, states)
    undo.callback(opened.close)
    policy = FailurePolicy(options.retries, options.on_failure, patience=options.patience)
    source = folder.below(SPARKS_LOG).place if folder else "the spouts"
    runner = _runner(group, checkpoint, states, source, policy)
    streams = {each.stream_id: _schema(each.fields, each.output_mode) for each in group.sources}
    sources = {each.stream_id: engine.source_of(each.source) for each in group.sources}
    _open(runner, group, options, engine.folder, streams, sources, engine.reads(group))
    most = engine.pending(group, options.max_pending)
    return engine.clock(group, opened, runner, folder, options.trigger, most)


def _runner(
    group: BatchGroup,
    checkpoint: HeldCheckpoint,
    states: Mapping[StateNode, State],
    source: str,
    policy: FailurePolicy,
) -> BatchRunner:
    return BatchRunner(
        checkpoint.log(group.id),
        batch_states(states),
        group=group.id,
        source=source,
        policy=policy,
        making=Making(group.timed, partitioned=group.partitioned),
        monitor=GroupMonitor(group.id),
    )


def _open(
    runner: BatchRunner,
    group: BatchGroup,
    options: StartOptions,
    folder_at: FolderAt,
    streams: Mapping[str, str],
    sources: Mapping[str, str] = MappingProxyType({}),
    reads: Mapping[str, str] = MappingProxyType({}),
) -> None:
    runner.open(
        streams=streams,
        reads=reads,
        clock=group.clock,
        adopt=options.adopt,
        folder_at=folder_at,
        accept_loss=options.accept_loss,
        topology={"states": described_states(group), "sources": dict(sources)},
        accept_change=options.accept_change,
    )


def _schema(fields: Fields, output_mode: OutputMode) -> str:
    """A stream's schema as the log keeps it, with its output mode unless that is the default."""
    kinds = fields.types.items()
    text = ", ".join(f"{name} {kind}" if kind else name for name, kind in kinds)
    return text if output_mode == "append" else f"{text}; {output_mode}"


def check_start(plan: Plan, options: StartOptions) -> None:
    """Refuse what can't run, whichever engine it is started on."""
    if not plan.groups and not plan.drpc:
        advice = "Declare a stream with newStream() or newDRPCStream() first."
        raise PlanError("start: the topology is empty", "", (), advice)
    check_losses(plan, options.accept_loss)
    check_changes(plan, options.accept_change)
    if options.on_failure == "dead-letter":
        check_dead_letter(plan)
    check_requests(plan, options)
    for part in plan.parts:
        _, refused = partitions_asked(part.steps)
        if refused:
            raise refused[0]
    check_states(plan)


def check_requests(plan: Plan, options: StartOptions) -> None:
    """Answers are kept of functions that update a state; these wait for requests until the stop."""
    for node in plan.updates:
        if isinstance(node.updater, KeptAnswers) and plan.group_of(node) is None:
            what = "start: answers= is for a DRPC stream that updates a state; not so is that of"
            advice = "Leave it out: a query changes nothing, so it may be repeated."
            raise PlanError(what, node.state.name, (), advice)
    for function in plan.updating:
        if options.trigger == "available":
            what = "start: trigger='available' ends where sources have nothing more, but requests "
            advice = "Leave trigger= out, and stop the run by stop()."
            raise PlanError(f"{what}come at any time to", function, (), advice)


def check_losses(plan: Plan, losses: Mapping[str, int]) -> None:
    """Every state in ``accept_loss`` is one that this plan updates."""
    known = [node.state.name for node in plan.updates]
    for name in losses:
        if name not in known:
            raise PlanError("start: accept_loss names no state", str(name), known)


def check_changes(plan: Plan, changes: Mapping[str, str]) -> None:
    """Every name in ``accept_change`` is that of a state that this plan updates, or of a stream."""
    streams = [each.stream_id for group in plan.groups for each in group.sources]
    known = [*(node.state.name for node in plan.updates), *streams]
    for name in changes:
        if name not in known:
            raise PlanError("start: accept_change names no state or stream", str(name), known)


def check_states(plan: Plan) -> None:
    """Every state can be where its factory puts it, as far as is known without connecting, and has
    the methods that its queries and updates call."""
    for state in plan.states:
        try:
            state.state.factory.check_place()
        except UsageError as error:
            what, *rest = error.args
            raise PlanError(f"start: state {state.state.name!r}: {what}", *rest) from None
    for query in plan.look_ups:
        check_made(query)
    for update in plan.updates:
        check_made_updatable(update)


def check_dead_letter(plan: Plan) -> None:
    """Refuse dead letters unless all states are opaque maps: in others, what a given-up batch has
    written would stay."""
    for node in plan.updates:
        if node.state.factory.kind is not StateType.OPAQUE:
            what = 'start: on_failure="dead-letter" needs opaque maps; not so is the state'
            advice = 'Use on_failure="stop", or keep the state in an opaque map.'
            raise PlanError(what, node.state.name, (), advice)


def warn(plan: Plan, options: StartOptions) -> None:
    """Warn of states that can't be exact, or are lost before their checkpoint."""
    warn_inexact(plan, options.max_pending)
    if options.checkpoint is not None:
        warn_forgetful(plan)


def warn_inexact(plan: Plan, max_pending: int = 1) -> None:
    """Warn of states that can't be exact, and say what would be."""
    for node in plan.updates:
        found = guarantee(plan, node, max_pending)
        if not found.exact:
            text = f"state {node.state.name!r} is {found.level}: {found.why}. {found.advice}"
            warnings.warn(GuaranteeWarning(text), stacklevel=4)


def warn_forgetful(plan: Plan) -> None:
    """Warn of states that are lost with this process, while the checkpoint stays."""
    for node in plan.updates:
        kind = node.state.factory.map_type
        if kind is not None and not kind.lasts:
            text = (
                f"state {node.state.name!r} is in memory and ends with this process, but the "
                "checkpoint keeps what is counted: the next process can't start from it. Keep "
                "the state in a store that lasts, such as 'sqlite:counts.db', or start "
                "without a checkpoint."
            )
            warnings.warn(GuaranteeWarning(text), stacklevel=4)


def tell_unused(plan: Plan) -> None:
    """Log a warning for each stream of whose tuples nothing is kept or shown.

    An operation of the user's may do that by itself, so only streams without any are told of.
    """
    for group in plan.groups:
        for source in group.sources:
            used = _downstream(plan, source)
            acts = isinstance(source.source, _COMMITTERS) or any(map(_may_act, used))
            if group.requests is None and not acts:
                _logger.warning(
                    "stream %r, declared at %s, ends in %s: nothing keeps or shows what comes out "
                    "of it. Add persistentAggregate(…) or peek(…) to the stream that this gives; "
                    "a call leaves the one it is called on as it is.",
                    source.stream_id,
                    source.origin,
                    used[-1].call_text,
                )


def _downstream(plan: Plan, source: Node) -> list[Node]:
    """A step and all that follow it, in order of creation."""
    found = {source}
    for node in plan.nodes:
        if found.intersection(node.parents):
            found.add(node)
    return [node for node in plan.nodes if node in found]


def _may_act(node: Node) -> bool:
    """Whether a step may do anything but make tuples."""
    if node.updates is not None:
        return True
    operation = node.facts.operation
    while isinstance(operation, Negate):
        operation = operation.filter
    home = type(operation).__module__
    pure = home in ("trident.operations.builtin", "trident.operations.kept_tuples")
    if operation is None or isinstance(operation, Native):
        return False
    return isinstance(operation, Debug | Consumer) or not pure
