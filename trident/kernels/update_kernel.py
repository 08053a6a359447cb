"""The kernel of a state update: runs the updater, or for combiners the state's bulk methods.

Tuples for windows are handed on as columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.backends.rows.state import RowsState
from trident.kernels import column_forms
from trident.kernels.kernel import made_tuples
from trident.kernels.keys import encoded_keys, group_keys, key_fields
from trident.kernels.task import StepName, Task
from trident.kernels.type_check import TypeCheckKernel
from trident.operations.emitted import ListCollector, Row
from trident.operations.interfaces import CombinerAggregator, StateUpdater, operation_name
from trident.operations.origins import ORIGIN
from trident.operations.state_updaters import (
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    WindowTableUpdater,
)
from trident.states.keys import encode_key
from trident.states.map_state import MapState
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.tuples.block import NOTHING, Block, block_of
from trident.tuples.fields import Fields
from trident.windows.expiry import Expiry
from trident.windows.window_contents import pane_key
from trident.windows.window_updater import WindowTuples, WindowUpdater

_ORIGIN = Fields.typed([(ORIGIN, "string")])


@dataclass(frozen=True)
class UpdateKernel:
    """Updates a state that has begun; returns the new values of the `kept` fields, if any."""

    step: StepName
    operation: StateUpdater[Any]
    inputs: Fields
    outputs: tuple[str, ...]
    check: TypeCheckKernel | None
    kept: tuple[str, ...] | None
    expiry: Expiry | None = None

    def acts_on(self, block: Block) -> bool:
        """Whether the updater is called for a block: it has tuples, or the updater acts on none."""
        return block.length > 0 or self.operation.acts_on_nothing

    def apply(self, state: State, block: Block, task: Task) -> Block:
        """Update a state that has begun the batch, where it `acts_on` the tuples; return the kept
        new values."""
        updater = self.operation
        with task.at(self.step):
            if self.expiry is not None and isinstance(state, StoredMap):
                self._date(self.expiry, state, block)
            if type(updater) is MapCombinerAggStateUpdater and isinstance(state, MapState):
                made = self._combine(updater, state, block)
            elif isinstance(state, RowsState):
                made = self._append_rows(state, block)
            elif isinstance(updater, WindowUpdater):
                assert isinstance(state, StoredMap)  # as the plan has checked
                made = self._update_windows(updater, state, block, task)
            else:
                made = self._update_tuples(state, block)
        if self.check is not None:
            made = self.check.apply(made, task)
        return NOTHING if self.kept is None else made.only(self.kept)

    def _combine(self, updater: MapCombinerAggStateUpdater, state: MapState, block: Block) -> Block:
        group = updater.group.names
        keys, partials = encoded_keys(block, group), block.values(updater.value)
        if self.kept is None and self.expiry is None:
            state.multiFold(keys, partials, updater.aggregator)
            return NOTHING
        values = state.multiCombine(keys, partials, updater.aggregator)
        if self.kept is None:
            return NOTHING
        columns = dict(zip(self.outputs, [*map(block.values, group), values], strict=True))
        return Block(columns, block.length)

    def _date(self, expiry: Expiry, state: StoredMap, block: Block) -> None:
        if expiry.field is None:
            expiry.date(state, (), ())
            return
        updater, names = self.operation, self.inputs.names
        keys: Sequence[bytes] = ()
        if isinstance(updater, MapCombinerAggStateUpdater | MapReducerAggStateUpdater):
            keys = encoded_keys(block, updater.group.names)
        elif isinstance(updater, WindowTableUpdater):
            keys = encoded_keys(block, (*names[:-3], *names[-2:]))
        expiry.date(state, keys, block.values(expiry.field))

    def _update_windows(
        self, updater: WindowUpdater, state: StoredMap, block: Block, task: Task
    ) -> Block:
        collector = ListCollector(operation_name(updater), len(self.outputs))
        updater.update(state, window_tuples(updater, block, self.step, task), collector)
        return block_of(self.outputs, collector.rows)

    def _append_rows(self, state: RowsState, block: Block) -> Block:
        from trident.kernels.arrow_kernel import record_batch  # who writes rows has pyarrow

        has_origins = ORIGIN in block.names
        state.append(record_batch(block, self.inputs + _ORIGIN if has_origins else self.inputs))
        return NOTHING

    def _update_tuples(self, state: State, block: Block) -> Block:
        collector = ListCollector(operation_name(self.operation), len(self.outputs))
        tuples = made_tuples(self.operation, self.inputs, block)
        self.operation.updateState(state, tuples, collector)
        return block_of(self.outputs, collector.rows)


def window_tuples(updater: WindowUpdater, block: Block, step: StepName, task: Task) -> WindowTuples:
    """The tuples of a block, as an updater of windows takes them."""
    aggregator, names = updater.aggregator, updater.inputs.names
    group, field = updater.group.names, updater.time_field
    keys = group_keys(block, group) if group else ()

    def fold(labels: Sequence[Hashable]) -> Mapping[Any, Any]:
        if not isinstance(aggregator, CombinerAggregator):
            rows: dict[Hashable, list[Row]] = {}
            for label, row in zip(labels, block.tuples(names), strict=True):
                rows.setdefault(label, []).append(row)
            return rows
        totals = column_forms.no_totals(aggregator)
        if column_forms.take_in(aggregator, totals, labels, block, names):
            return totals
        combine = aggregator.combine
        pending = iter(made_tuples(aggregator, updater.inputs, block))
        with task.at(step, names, block, pending):
            for label, row in zip(labels, pending, strict=True):
                value = aggregator.init(row)
                totals[label] = combine(totals[label], value) if label in totals else value
        return totals

    times = block.values(field) if field else ()
    has_origins = bool(updater.streams) and ORIGIN in block.names  # not in what 0.1 has staged
    origins = block.values(ORIGIN) if has_origins else ()
    return WindowTuples(block.length, keys, _pane_key_of, times, origins, fold)


def _pane_key_of(key: Hashable) -> Row:
    return pane_key(key if type(key) is bytes else encode_key(key_fields(key)))
