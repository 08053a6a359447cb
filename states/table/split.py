"""Splits large calls, for stores with a limit on the size of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.asking import Wait
from trident.states.backing_map import IBackingMap
from trident.states.table.table import Layer, LayeredMap, Table


class SplitTable(Layer):
    """Reads at most `max_get` keys and writes at most `max_put` at once, in order; 0 is no limit.

    Each slice is a write of its own. If the fence closes between two of them, the store refuses the
    rest: the whole attempt is stale, and its earlier slices don't count either.
    """

    def __init__(self, below: Table, max_get: int, max_put: int) -> None:
        super().__init__(below)
        self._max_get = max_get
        self._max_put = max_put

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        first, *others = _slices(len(keys), self._max_get)
        wait = self._below.ask(keys[first])
        if not others:
            return wait
        return lambda: [*wait(), *(one for each in others for one in self._below.read(keys[each]))]

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        slices = _slices(len(keys), self._max_put)
        return [key for each in slices for key in self._below.write(keys[each], entries[each])]

    def remove(self, keys: Sequence[Any]) -> None:
        for each in _slices(len(keys), self._max_put):
            self._below.remove(keys[each])

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        for each in _slices(len(keys), self._max_put):
            self._below.add(keys[each], amounts[each])


class MicroBatchMap(LayeredMap):
    """Has states over a map read and write it in slices.

    Parameters
    ----------
    inner : IBackingMap or LayeredMap
        The map below.
    max_get, max_put : int
        Keys a call; 0 does not split.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> state = OpaqueMap(MicroBatchMap(MemoryMap("in slices"), max_put=2))
    >>> state.beginCommit(1)
    >>> state.multiPut([("a",), ("b",), ("c",)], [1, 2, 3])
    >>> state.commit(1)  # two writes
    """

    def __init__(self, inner: IBackingMap | LayeredMap, max_get: int = 0, max_put: int = 0) -> None:
        super().__init__(inner)
        self._max_get = max_get
        self._max_put = max_put

    def over(self, below: Table) -> SplitTable:
        return SplitTable(below, self._max_get, self._max_put)


def _slices(count: int, size: int) -> Sequence[slice]:
    """Return the slices of a call; at least one."""
    size = size or max(count, 1)
    return [slice(start, start + size) for start in range(0, max(count, 1), size)]
