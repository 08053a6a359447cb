"""What an engine reports of one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trident.operations.counters import summed
from trident.states.expiry import later


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt did; counts are 0 where unknown, `seconds` by the engine's own names.

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
