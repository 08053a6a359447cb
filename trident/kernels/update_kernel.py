"""The kernel of a state update: runs the updater, or for combiners the state's bulk methods.

Tuples for windows are handed on as columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trident.kernels.kernel import made_tuples
from trident.kernels.keys import encoded_keys
from trident.kernels.task import StepName, Task
from trident.kernels.type_check import TypeCheckKernel
from trident.kernels.window_tuples import window_tuples
from trident.operations.emitted import ListCollector
from trident.operations.interfaces import StateUpdater, operation_name
from trident.operations.state_updaters import MapCombinerAggStateUpdater
from trident.states.map_state import MapState
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.tuples.block import NOTHING, Block, block_of
from trident.tuples.fields import Fields
from trident.windows.window_updater import WindowUpdater


@dataclass(frozen=True)
class UpdateKernel:
    """Updates a state with the tuples of one partition.

    It is no `Kernel`, as it is handed the state, which has begun the batch.

    `kept` are the new values that a later step reads; None where no step takes any: then none are
    made where the state can do without.
    """

    step: StepName
    operation: StateUpdater[Any]
    inputs: Fields
    outputs: tuple[str, ...]
    check: TypeCheckKernel | None
    kept: tuple[str, ...] | None

    def acts_on(self, block: Block) -> bool:
        """Whether the tuples of a partition update the state, or that there are none does."""
        return block.length > 0 or self.operation.acts_on_nothing

    def apply(self, state: State, block: Block, task: Task) -> Block:
        """Update a state that has begun the batch, where it `acts_on` the tuples; return the kept
        new values."""
        updater = self.operation
        with task.at(self.step):
            if type(updater) is MapCombinerAggStateUpdater and isinstance(state, MapState):
                made = self._combine(updater, state, block)
            elif isinstance(updater, WindowUpdater) and isinstance(state, StoredMap):
                made = self._update_windows(updater, state, block, task)
            else:
                made = self._update_tuples(state, block)
        if self.check is not None:
            made = self.check.apply(made, task)
        return NOTHING if self.kept is None else made.only(self.kept)

    def _combine(
        self, updater: MapCombinerAggStateUpdater, state: MapState, block: Block
    ) -> Block:
        group = updater.group.names
        keys, partials = encoded_keys(block, group), block.values(updater.value)
        if self.kept is None:
            state.multiFold(keys, partials, updater.combiner)
            return NOTHING
        values = state.multiCombine(keys, partials, updater.combiner)
        columns = dict(zip(self.outputs, [*map(block.values, group), values], strict=True))
        return Block(columns, block.length)

    def _update_windows(
        self, updater: WindowUpdater, state: StoredMap, block: Block, task: Task
    ) -> Block:
        collector = ListCollector(operation_name(updater), len(self.outputs))
        updater.update(state, window_tuples(updater, block, self.step, task), collector)
        return block_of(self.outputs, collector.rows)

    def _update_tuples(self, state: State, block: Block) -> Block:
        collector = ListCollector(operation_name(self.operation), len(self.outputs))
        tuples = made_tuples(self.operation, self.inputs, block)
        self.operation.updateState(state, tuples, collector)
        return block_of(self.outputs, collector.rows)
