"""Starting a plan on Spark."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from pyspark.sql import SparkSession

from trident.batch.adoption import Adopt
from trident.batch.failures import OnFailure
from trident.batch.loop import SpoutLoop
from trident.batch.runner import BatchRunner
from trident.drpc.service import LocalDRPC
from trident.groups import batch_states, make_states, schemas, state_nodes
from trident.log.checkpoint import Checkpoint, TemporaryCheckpoint, open_checkpoint
from trident.plan.plan import BatchGroup, Plan
from trident.run import Run
from trident.spark.compile import check_steps
from trident.spark.engine import SparkGroupEngine
from trident.spark.errors import SparkSessionError
from trident.spark.group import GroupPlan
from trident.spark.names import check_names
from trident.spark.paths import read_paths
from trident.spark.pickling import check_pickling
from trident.spark.settings import set_up
from trident.spark.streaming import StreamingRun
from trident.spark.streams import check_output_mode
from trident.spark.types import check_types
from trident.spark.workers import check_workers
from trident.trigger import Trigger

_logger = logging.getLogger("trident")


def start(
    plan: Plan,
    spark: SparkSession,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    trigger: Trigger = None,
    retries: int = 3,
    on_failure: OnFailure = "stop",
    patience: float = 600.0,
    adopt: Adopt | None = None,
    accept_loss: Mapping[str, int] = MappingProxyType({}),
) -> Run:
    """Run a plan on Spark: Structured Streaming or a thread for each group, queries here.

    Parameters
    ----------
    plan : Plan
        The plan.
    spark : SparkSession
        A classic session; left as it is, except that queries and jobs run on it.
    checkpoint, trigger, retries, on_failure, patience, adopt, accept_loss
        See `TridentTopology.start`.

    Raises
    ------
    SparkSessionError
        For a Spark Connect session, or one that was stopped.
    WorkerError
        For workers that can't run this program's operations.
    FieldError
        For a field whose type Spark needs to know.
    """
    _check_session(spark)
    check_workers(spark)
    with ExitStack() as undo:
        drpc = LocalDRPC(plan)
        undo.callback(drpc.close)
        held = open_checkpoint(checkpoint, [group.id for group in plan.groups])
        undo.callback(held.release)
        if checkpoint is None and plan.groups:
            _logger.info("no checkpoint was given: this run's log is in memory, gone with it")
        runs = []
        for group in plan.groups:
            run = _open(
                *(plan, group, spark, held, trigger, retries, on_failure, patience),
                *(adopt, accept_loss, undo),
            )
            runs.append(run)
        for run in runs:
            run.start()
            undo.callback(run.stop)
        undo.pop_all()
    return Run(runs, drpc=drpc, on_end=held.release, on_close=drpc.close)


def _open(
    plan: Plan,
    group: BatchGroup,
    spark: SparkSession,
    held: Checkpoint | TemporaryCheckpoint,
    trigger: Trigger,
    retries: int,
    on_failure: OnFailure,
    patience: float,
    adopt: Adopt | None,
    accept_loss: Mapping[str, int],
    undo: ExitStack,
) -> StreamingRun | SpoutLoop:
    shuffles = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    check_steps(group.nodes)
    prepared = GroupPlan(plan, group, min(shuffles, spark.sparkContext.defaultParallelism))
    check_names(prepared, spark)
    check_pickling(prepared)
    check_types(prepared)
    if group.clock == "dataframe":
        check_output_mode(prepared)
    session = spark if group.clock == "dataframe" else own_session(spark, prepared.partitions)
    states = make_states(state_nodes(group.nodes))
    engine = SparkGroupEngine(prepared, session, states)
    undo.callback(engine.close)
    runner = BatchRunner(
        held.log(group.id),
        batch_states(states),
        group=group.id,
        source=str(held.folder(group.id) / "spark"),
        retries=retries,
        on_failure=on_failure,
        patience=patience,
    )
    runner.open(
        streams=schemas(group),
        reads=read_paths(group),
        clock=group.clock,
        adopt=adopt,
        accept_loss=accept_loss,
    )
    if group.clock == "dataframe":
        return StreamingRun(prepared, engine, runner, held.folder(group.id) / "spark", trigger)
    spouts = {source.stream_id: source.source for source in group.sources}
    return SpoutLoop(spouts, engine, runner, trigger=trigger)


def own_session(spark: SparkSession, partitions: int) -> SparkSession:
    """A session with the user's settings, in which those for small jobs can be made."""
    session = spark.newSession()
    ours: dict[str, Any] = dict(session.conf.getAll)
    for name, value in spark.conf.getAll.items():
        if ours.get(name) != value and session.conf.isModifiable(name):
            session.conf.set(name, value)
    set_up(session, partitions)
    return session


def _check_session(spark: Any) -> None:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise SparkSessionError(
            "start() was given a Spark Connect session",
            "Use a classic one, such as SparkSession.builder.master(…) or local_session() makes.",
        )
    if spark.sparkContext._jsc is None:
        raise SparkSessionError("start() was given a session that was stopped", "Make a new one.")
