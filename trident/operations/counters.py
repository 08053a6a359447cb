"""What operations count while they run."""

from __future__ import annotations

from collections.abc import Mapping


def summed(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The counts of both together."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class Counter:
    """One number that operations count up; see ``TridentOperationContext.registerCounter``."""

    def __init__(self, name: str, counts: dict[str, int]) -> None:
        self._name = name
        self._counts = counts

    def inc(self, n: int = 1) -> None:
        """Count `n` more."""
        self._counts[self._name] = self._counts.get(self._name, 0) + n


class CounterBook:
    """The counts of some operations, by name."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def counter(self, name: str) -> Counter:
        """The counter of that name; those of one name count together."""
        return Counter(name, self._counts)

    def take(self) -> dict[str, int]:
        """What was counted since this was asked last."""
        found = dict(self._counts)
        self._counts.clear()
        return found
