"""What the log keeps of a group's states: what has to stay for what they hold to mean the same."""

from __future__ import annotations

from typing import Any

from trident.operations.annotations import identified
from trident.operations.state_updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from trident.plan.nodes import StateUpdateNode
from trident.plan.plan import BatchGroup
from trident.windows.window_updater import WindowUpdater


def described_states(group: BatchGroup) -> dict[str, dict[str, Any]]:
    """Each state that a group updates, by name, as JSON values.

    ``by`` is the class that aggregates or updates; ``key`` the types of its fields by name, None
    where one is unknown; ``window`` is for windows.
    """
    return {node.state.name: _described(node) for node in group.updates}


def _described(node: StateUpdateNode) -> dict[str, Any]:
    found: dict[str, Any] = {"by": identified(_operation(node.updater))}
    if node.group:
        found["key"] = dict(node.fields.select(node.group).types)
    if isinstance(node.updater, WindowUpdater):
        found["window"] = node.updater.shape
    return found


def _operation(updater: object) -> object:
    """What the user gave: an aggregator, or the updater itself."""
    match updater:
        case WindowUpdater():
            return updater.aggregator
        case CombinerAggStateUpdater() | MapCombinerAggStateUpdater():
            return updater.combiner
        case ReducerAggStateUpdater() | MapReducerAggStateUpdater():
            return updater.reducer
    return updater
