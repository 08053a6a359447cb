"""What the log keeps of a group's states: what has to stay for what they hold to mean the same."""

from __future__ import annotations

from typing import Any

from trident.operations.annotations import identified
from trident.operations.row_writer import RowWriter
from trident.operations.state_updaters import AggregatingUpdater
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
    updater = node.updater
    if isinstance(updater, RowWriter):
        return {"by": updater.label}
    by = updater.aggregator if isinstance(updater, AggregatingUpdater) else updater
    found: dict[str, Any] = {"by": identified(by)}
    if node.group:
        found["key"] = dict(node.fields.select(node.group).types)
    if isinstance(updater, WindowUpdater):
        found["window"] = updater.shape
    return found
