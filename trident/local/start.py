"""Starting a plan on the local engine."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack
from types import MappingProxyType

from trident.batch.adoption import Adopt
from trident.batch.failures import OnFailure
from trident.batch.loop import SpoutLoop
from trident.batch.runner import BatchRunner
from trident.drpc.service import LocalDRPC
from trident.groups import batch_states, make_states, schemas, state_nodes
from trident.local.engine import LocalGroupEngine
from trident.log.checkpoint import Checkpoint, TemporaryCheckpoint, open_checkpoint
from trident.plan.plan import BatchGroup, Plan
from trident.run import Run
from trident.trigger import Trigger

_logger = logging.getLogger("trident")


def start(
    plan: Plan,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    trigger: Trigger = None,
    retries: int = 3,
    on_failure: OnFailure = "stop",
    patience: float = 600.0,
    adopt: Adopt | None = None,
    accept_loss: Mapping[str, int] = MappingProxyType({}),
) -> Run:
    """Run a plan in this process: a thread for each batch group, queries in their callers'.

    Parameters
    ----------
    plan : Plan
        The plan.
    checkpoint, trigger, retries, on_failure, patience, adopt, accept_loss
        See `TridentTopology.start`.

    Raises
    ------
    PlanError
        For a step that runs on Spark only.
    """
    with ExitStack() as undo:
        drpc = LocalDRPC(plan)
        undo.callback(drpc.close)
        held = open_checkpoint(checkpoint, [group.id for group in plan.groups])
        undo.callback(held.release)
        if checkpoint is None and plan.groups:
            _logger.info("no checkpoint was given: this run's log is in memory, gone with it")
        loops = []
        for group in plan.groups:
            engine, runner = _open(
                *(group, held, retries, on_failure, patience, adopt, accept_loss, undo)
            )
            spouts = {source.stream_id: source.source for source in group.sources}
            loops.append(SpoutLoop(spouts, engine, runner, trigger=trigger))
        undo.pop_all()
    for loop in loops:
        loop.start()
    return Run(loops, drpc=drpc, on_end=held.release, on_close=drpc.close)


def _open(
    group: BatchGroup,
    held: Checkpoint | TemporaryCheckpoint,
    retries: int,
    on_failure: OnFailure,
    patience: float,
    adopt: Adopt | None,
    accept_loss: Mapping[str, int],
    undo: ExitStack,
) -> tuple[LocalGroupEngine, BatchRunner]:
    states = make_states(state_nodes(group.nodes))
    engine = LocalGroupEngine(group, states)
    undo.callback(engine.close)
    runner = BatchRunner(
        held.log(group.id),
        batch_states(states),
        group=group.id,
        retries=retries,
        on_failure=on_failure,
        patience=patience,
    )
    runner.open(streams=schemas(group), clock="spout", adopt=adopt, accept_loss=accept_loss)
    return engine, runner
