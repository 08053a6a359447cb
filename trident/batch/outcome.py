"""What one attempt did, counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trident.backends.rows.state import RowsState
from trident.operations.counters import summed
from trident.plan.nodes import StateNode
from trident.states.expiry import later
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.states.values import Token


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt did; counts are 0 if unknown, `seconds` by the engine's own names.

    The latest time by which entries expire is what it has `reached`.
    """

    tuples: int = 0
    read: int = 0
    written: int = 0
    cache_hits: int = 0
    late: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    engine: str = ""
    counters: Mapping[str, int] = field(default_factory=dict)
    reached: int | None = None

    def __add__(self, other: Outcome) -> Outcome:
        """Return what two parts of one attempt did together."""
        return Outcome(
            self.tuples + other.tuples,
            self.read + other.read,
            self.written + other.written,
            self.cache_hits + other.cache_hits,
            self.late + other.late,
            {
                name: self.seconds.get(name, 0.0) + other.seconds.get(name, 0.0)
                for name in {**self.seconds, **other.seconds}
            },
            self.engine or other.engine,
            summed(self.counters, other.counters),
            later(self.reached, other.reached),
        )


Counts = tuple[int, int, int, int]
"""Keys read, keys written, cache hits, and late tuples: as in an `Outcome`."""


class Counters:
    """What some states read and write, as they count it; a row counts as a key."""

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
        """Return the latest time by which an attempt has updated a state; None if without one."""
        times = [time for state in self._maps if (time := state.reached(token)) is not None]
        return max(times, default=None)


def counted_apart(states: Mapping[StateNode, State]) -> tuple[Counters, Counters]:
    """Count the states that steps update, and those that steps only query, each by themselves."""
    updated = [state for node, state in states.items() if node.updates is not None]
    queried = [state for node, state in states.items() if node.updates is None]
    return Counters(updated), Counters(queried)
