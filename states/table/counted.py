"""Counts what is asked of a store, for a run's progress and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.backing_map import IBackingMap
from trident.states.steps import Steps
from trident.states.table.layered import LayeredMap
from trident.states.table.table import Layer, Table


@dataclass(frozen=True)
class Counts:
    """How often a map was called, and with how many keys, since it was made.

    Parameters
    ----------
    gets, puts : int
        Calls that read and that wrote.
    keys_read, keys_written : int
        Keys in them.
    control_calls : int
        Calls for the control record.
    """

    gets: int = 0
    puts: int = 0
    keys_read: int = 0
    keys_written: int = 0
    control_calls: int = 0


class CountedTable(Layer):
    """Counts the calls that pass through it, also those that fail."""

    def __init__(self, below: Table, counted: CountedMap) -> None:
        super().__init__(below)
        self._counted = counted

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        self._counted.count_get(len(keys))
        return self._below.read(keys)

    def read_steps(self, keys: Sequence[Any]) -> Steps[Sequence[Any]]:
        self._counted.count_get(len(keys))
        return (yield from self._below.read_steps(keys))

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._counted.count_put(len(keys))
        return self._below.write(keys, entries)

    def remove(self, keys: Sequence[Any]) -> None:
        self._counted.count_put(len(keys))
        self._below.remove(keys)

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._counted.count_put(len(keys))
        self._below.add(keys, amounts)


class CountedMap(LayeredMap):
    """Counts what states over a map ask of it, and the calls for its control record.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> counted = CountedMap(MemoryMap("counted"))
    >>> state = OpaqueMap(counted)
    >>> state.beginCommit(1)
    >>> state.multiPut([("dog",), ("cat",)], [2, 1])
    >>> state.commit(1)
    >>> counted.counts.puts, counted.counts.keys_written
    (1, 2)
    """

    def __init__(self, inner: IBackingMap) -> None:
        super().__init__(inner)
        self._gets = self._puts = self._keys_read = self._keys_written = self._control_calls = 0

    @property
    def counts(self) -> Counts:
        """What passed so far."""
        return Counts(
            self._gets, self._puts, self._keys_read, self._keys_written, self._control_calls
        )

    def over(self, below: Table) -> CountedTable:
        return CountedTable(below, self)

    def getControl(self) -> bytes | None:
        self._control_calls += 1
        return self.inner.getControl()

    def control_steps(self) -> Steps[bytes | None]:
        self._control_calls += 1
        return (yield from super().control_steps())

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        self._control_calls += 1
        return self.inner.putControl(new, expected)

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        self._control_calls += 1
        return self.inner.putControls(changes)

    def count_get(self, keys: int) -> None:
        """Count a call that reads so many keys."""
        self._gets += 1
        self._keys_read += keys

    def count_put(self, keys: int) -> None:
        """Count a call that writes so many keys."""
        self._puts += 1
        self._keys_written += keys
