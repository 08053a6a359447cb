"""The states of a batch group or query, as objects in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from trident.batch.states import BatchState
from trident.operations.state_updaters import CombinerAggStateUpdater, ReducerAggStateUpdater
from trident.plan.nodes import Node, StateNode, StateQueryNode, StateUpdateNode
from trident.states.control import ControlRecord
from trident.states.cut import Cut
from trident.states.reading import CommittedReads
from trident.states.state import State
from trident.states.stored_map import StoredMap
from trident.states.table.cache import CachedMap
from trident.states.table.counted import CountedMap
from trident.states.table.layered import layers

SINGLE = CombinerAggStateUpdater | ReducerAggStateUpdater


def state_nodes(nodes: Iterable[Node]) -> tuple[StateNode, ...]:
    """The states that steps update or query, as the plan declares them, in order of creation."""
    found: set[StateNode] = set()
    for node in nodes:
        if isinstance(node, StateNode):
            found.add(node)
        elif isinstance(node, StateQueryNode):
            found.add(node.state)
    return tuple(sorted(found, key=lambda node: node.id))


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
    """Close all of them, also where one raises."""
    with ExitStack() as closing:
        for state in states:
            closing.callback(state.close)


def batch_states(states: Mapping[StateNode, State]) -> dict[str, BatchState]:
    """The states that a group updates, by name, as the batch runner sees them."""
    return {
        node.state.name: BatchState(
            state.control,
            state.kind,
            state if isinstance(node.updater, SINGLE) else None,
        )
        for node, state in states.items()
        if isinstance(node, StateUpdateNode)
    }


def as_before(state: State, record: ControlRecord) -> Any:
    """What a query within a batch reads of a state that the same batch updates.

    A map of this library shows the values of the batch before where its kind keeps them, as an
    opaque map does. Any other state is read as it is.
    """
    if isinstance(state, CommittedReads):
        # Whatever an attempt reads after it was overtaken, it can't commit. So no read is refused.
        return state.committed(Cut.before(record).endless())
    return state


Counts = tuple[int, int, int, int]
"""Keys read, keys written, cache hits, and tuples that were late."""


class Counters:
    """What states read and write, counted by layers over their stores.

    Parameters
    ----------
    states : iterable of State
        The states; those that aren't maps of this library count nothing.
    """

    def __init__(self, states: Iterable[State]) -> None:
        self._maps = [state for state in states if isinstance(state, StoredMap)]
        over_stores = [layer for state in self._maps for layer in layers(state.backing)[0]]
        self._counted = [layer for layer in over_stores if isinstance(layer, CountedMap)]
        self._cached = [layer for layer in over_stores if isinstance(layer, CachedMap)]

    def counts(self) -> Counts:
        """Return what was read and written since the states were made."""
        read = written = 0
        for layer in self._counted:
            counts = layer.counts
            read += counts.keys_read
            written += counts.keys_written
        late = sum([state.late for state in self._maps])
        return read, written, sum([layer.hits for layer in self._cached]), late

    def since(self, before: Counts) -> Counts:
        """Return what was read and written since `before` was returned."""
        read, written, hits, late = self.counts()
        return read - before[0], written - before[1], hits - before[2], late - before[3]


def counted_apart(states: Mapping[StateNode, State]) -> tuple[Counters, Counters]:
    """Count the states that steps update, and those that steps only query, each by themselves."""
    updated = [state for node, state in states.items() if isinstance(node, StateUpdateNode)]
    asked = [state for node, state in states.items() if not isinstance(node, StateUpdateNode)]
    return Counters(updated), Counters(asked)
