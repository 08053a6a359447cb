"""A state update as a closure: the updater, or for combiners the state's own bulk form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trident.local.batch import Batch, Rows, blame
from trident.local.selection import tuple_maker
from trident.local.steps import Step
from trident.operations import StateUpdater
from trident.plan.nodes import StateUpdateNode
from trident.rows import ListCollector, operation_name
from trident.state_updaters import MapCombinerAggStateUpdater
from trident.states.keys import encode_keys
from trident.states.map_state import MapState
from trident.states.state import State

Update = Callable[[State, Rows, Batch], Rows]
"""From the begun state and a partition's tuples to the new values."""


def update_step(node: StateUpdateNode, updater: StateUpdater[Any], *, new_values: bool) -> Step:
    """Write a partition's tuples to the state; the updater isn't called where there are none.

    Parameters
    ----------
    node : StateUpdateNode
        The step.
    updater : StateUpdater
        The partition's own.
    new_values : bool
        Whether anything takes the new values; without it none are made where the state can do
        without.
    """
    bulk = None
    if type(updater) is MapCombinerAggStateUpdater:
        bulk = _combined(updater, new_values)
    one_by_one = _updated(node, updater)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        if not rows:
            return []
        try:
            state = batch.updated(node)
            if bulk is not None and isinstance(state, MapState):
                return bulk(state, rows)
            return one_by_one(state, rows)
        except Exception as error:
            blame(error, node, batch, partition)

    return run


def _combined(
    updater: MapCombinerAggStateUpdater, new_values: bool
) -> Callable[[MapState, Rows], Rows]:
    combiner = updater.combiner

    def run(state: MapState, rows: Rows) -> Rows:
        keys = [row[:-1] for row in rows]
        partials = [row[-1] for row in rows]
        if not new_values:
            state.multiFold(encode_keys(keys), partials, combiner)
            return []
        values = state.multiCombine(encode_keys(keys), partials, combiner)
        return [(*key, value) for key, value in zip(keys, values, strict=True)]

    return run


def _updated(node: StateUpdateNode, updater: StateUpdater[Any]) -> Callable[[Any, Rows], Rows]:
    name, width = operation_name(updater), len(node.outputs)
    make = tuple_maker(updater, node.parent.fields, node.inputs)

    def run(state: Any, rows: Rows) -> Rows:
        collector = ListCollector(name, width)
        updater.updateState(state, list(map(make, rows)), collector)
        return collector.rows

    return run
