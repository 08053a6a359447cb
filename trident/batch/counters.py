"""What the states of a group read and write, counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trident.plan.nodes import StateNode, StateUpdateNode
from trident.states.state import State
from trident.states.stored_map import StoredMap
from trident.states.table.cache import CachedMap
from trident.states.table.counted import CountedMap
from trident.states.table.layered import layers

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
