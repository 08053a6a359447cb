"""States that a batch on Spark asks and updates in the driver's process."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from threading import Lock

from trident.batch.begun_states import BegunStates
from trident.batch.computed import DeferredUpdate
from trident.job.job import LookUp, Update
from trident.kernels.task import Task
from trident.spark.query_kernel import view_of
from trident.spark.stage import prepared
from trident.spark.update_stage import update_state
from trident.states.state import State
from trident.tuples.block import NOTHING, Block


class StatesHere:
    """Asks the states of batches."""

    def __init__(self, states: Mapping[str, State]) -> None:
        self._states = states
        self._asking = Lock()  # a state is used by one thread at a time

    def ask(self, look_up: LookUp, inputs: Block, task: Task) -> Block:
        """Add to inputs what states answer."""
        with ExitStack() as cleaning:
            cleaning.enter_context(self._asking)
            views = [
                view_of(self._states[state.name], task, updated=updated)
                for state, updated in zip(look_up.states, look_up.updated, strict=True)
            ]
            for query in look_up.row.queries:
                cleaning.enter_context(prepared(query.step, query.operation, task))
            return look_up.row.apply(views, inputs, task)


class Written:
    """Updates states at once; their commit writes what they keep."""

    def __init__(self, begun: BegunStates) -> None:
        self._begun = begun

    def write(self, update: Update, block: Block, task: Task) -> Block:
        """Update a state; give the new values that are kept."""
        if not update.kernel.acts_on(block):
            return NOTHING  # the state has no part in the batch
        return update_state(update.kernel, self._begun.begin(update.state.name), block, task)


class Noted:
    """Notes updates, which are made when the batch is written."""

    def __init__(self) -> None:
        self.updates: list[DeferredUpdate] = []

    def write(self, update: Update, block: Block, task: Task) -> Block:
        """Note an update; no step may take its new values."""
        if update.kernel.acts_on(block):
            self.updates.append(DeferredUpdate(update, block))
        return NOTHING
