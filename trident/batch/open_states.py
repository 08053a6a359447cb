"""The states of a batch group or query, as objects in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from trident.batch.states import BatchState
from trident.plan.nodes import StateNode
from trident.states.state import State


def make_states(
    nodes: Iterable[StateNode], conf: Mapping[str, Any] | None = None
) -> dict[StateNode, State]:
    """Make each state in this process, as its only partition; the caller closes them."""
    made: dict[StateNode, State] = {}
    try:
        for node in nodes:
            made[node] = node.state.factory.makeState(conf or {}, None, 0, 1)
    except BaseException:
        close_states(made.values())
        raise
    return made


def close_states(states: Iterable[State]) -> None:
    """Close all of them, even if one raises."""
    with ExitStack() as closing:
        for state in states:
            closing.callback(state.close)


def batch_states(states: Mapping[StateNode, State]) -> dict[str, BatchState]:
    """The states that a group updates, as the batch runner sees them, by their names in the log."""
    return {
        node.state.kept_name: BatchState(state, node.keeps_one_value, node.expiry is not None)
        for node, state in states.items()
        if node.updates is not None
    }
