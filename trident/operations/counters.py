"""What operations count while they run."""

from __future__ import annotations

from collections.abc import Mapping

_BAD = "\0bad "
_TRIED = "\0tried"


def summed(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The counts of both together."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class Counter:
    """One number that operations count up; see ``TridentOperationContext.registerCounter``."""

    def __init__(self, name: str, book: CounterBook) -> None:
        self._name = name
        self._book = book

    def inc(self, n: int = 1) -> None:
        """Count `n` more."""
        self._book.add(self._name, n)


class CounterBook:
    """The counts of some operations, by name."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def counter(self, name: str) -> Counter:
        """The counter of that name; those of one name count together."""
        return Counter(name, self)

    def add(self, name: str, n: int) -> None:
        """Count `n` more under a name."""
        counts = self._counts
        counts[name] = counts.get(name, 0) + n

    def take(self) -> dict[str, int]:
        """Return the counts since the last call; others may count meanwhile."""
        found, self._counts = self._counts, {}
        return found


def count_bad(book: CounterBook, step: str, bad: int, tried: int) -> None:
    """Count the tuples that a step with ``on_error=`` has left out, and those it was given."""
    if bad:
        book.add(_BAD + step, bad)
    book.add(_TRIED, tried)


def bad_tuples(counts: Mapping[str, int]) -> dict[str, int]:
    """How many tuples were left out, by step."""
    return {name.removeprefix(_BAD): n for name, n in counts.items() if name.startswith(_BAD)}


def tried_tuples(counts: Mapping[str, int]) -> int:
    """How many tuples were given to steps that leave bad ones out."""
    return counts.get(_TRIED, 0)


def user_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """What operations have counted themselves."""
    return {name: n for name, n in counts.items() if name[:1] != "\0"}
