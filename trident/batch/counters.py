"""What the states of a group read and write, counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trident.backends.rows.state import RowsState
from trident.plan.nodes import StateNode
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.states.values import Token

Counts = tuple[int, int, int, int]
"""Keys read, keys written, cache hits, and tuples that were late."""


class Counters:
    """What states read and write, as they count it; a row counts as a key."""

    def __init__(self, states: Iterable[State]) -> None:
        counted = list(states)
        self._maps = [state for state in counted if isinstance(state, StoredMap)]
        self._rows = [state for state in counted if isinstance(state, RowsState)]

    def counts(self) -> Counts:
        """Return what was read and written since the states were made."""
        read = hits = late = 0
        written = sum(state.rows_written for state in self._rows)
        for state in self._maps:
            counted = state.tables.counts
            read += counted.keys_read
            written += counted.keys_written
            late += state.late
            for cache in state.caches:
                hits += cache.hits
        return read + hits, written, hits, late

    def since(self, before: Counts) -> Counts:
        """Return what was read and written since `before` was returned."""
        read, written, hits, late = self.counts()
        return read - before[0], written - before[1], hits - before[2], late - before[3]

    def reached(self, token: Token) -> int | None:
        """Return the latest time at which an attempt has updated a state, where it was told."""
        times = [time for state in self._maps if (time := state.reached(token)) is not None]
        return max(times, default=None)


def counted_apart(states: Mapping[StateNode, State]) -> tuple[Counters, Counters]:
    """Count the states that steps update, and those that steps only query, each by themselves."""
    updated = [state for node, state in states.items() if node.updates is not None]
    asked = [state for node, state in states.items() if node.updates is None]
    return Counters(updated), Counters(asked)
