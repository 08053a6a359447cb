"""A cache of entries, for states that one process writes, under the fence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice, repeat
from typing import Any

from trident.states.asking import Wait
from trident.states.backing_map import IBackingMap
from trident.states.control import ControlRecord
from trident.states.table.table import Layer, LayeredMap, Table

_MISSING: Any = object()


class CachedTable(Layer):
    """Answers from the cache of a map; writes go to the store first.

    If a write fails or is refused, its keys are forgotten: nobody knows what the store holds.
    """

    def __init__(self, below: Table, cache: CachedMap) -> None:
        super().__init__(below)
        self._cache = cache

    def begin(self, record: ControlRecord) -> None:
        self._cache._begin(record)
        self._below.begin(record)

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        return partial(self._read, keys)

    def _read(self, keys: Sequence[Any]) -> Sequence[Any]:
        entries, missing = self._cache._take(keys)
        if missing:
            found = self._below.read([keys[position] for position in missing])
            for position, entry in zip(missing, found, strict=True):
                entries[position] = entry
        self._cache._keep(keys, entries)
        return entries

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._cache._forget(keys)
        refused = self._below.write(keys, entries)
        if not refused:
            self._cache._keep(keys, entries)
        return refused

    def remove(self, keys: Sequence[Any]) -> None:
        self._cache._forget(keys)
        self._below.remove(keys)

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._cache._forget(keys)
        self._below.add(keys, amounts)


class CachedMap(LayeredMap):
    """Keeps the entries that states over a map used last, and the keys last found absent.

    It must be the only way that anyone writes the store while it lives: the fence refuses a late
    write, but cannot know that a value was computed from an entry that is no longer true. Over a
    store without the fence nothing is kept. Readers outside the batch don't use it.

    Parameters
    ----------
    inner : IBackingMap or LayeredMap
        The map below.
    size : int
        How many keys to keep.

    Attributes
    ----------
    hits, misses : int
        How many keys were found in the cache, and how many were asked below.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> cached = CachedMap(MemoryMap("cached"), 1000)
    >>> state = OpaqueMap(cached)
    >>> for txid in 1, 2:
    ...     state.beginCommit(txid)
    ...     state.multiPut([("dog",)], [txid])
    ...     state.commit(txid)
    >>> cached.hits, cached.misses
    (1, 1)
    """

    for_readers = False  # they must not find entries that are not committed

    def __init__(self, inner: IBackingMap | LayeredMap, size: int) -> None:
        super().__init__(inner)
        self._size = size
        # In the order of their use. All keys of a call are taken out and put back in two passes: a
        # tenth of the cost of an LRU cache that moves each key alone.
        self._entries: dict[Any, Any] = {}
        self._log_id = ""
        self.hits = 0
        self.misses = 0

    def over(self, below: Table) -> Table:
        return CachedTable(below, self)

    def _begin(self, record: ControlRecord) -> None:
        """Forget all entries if the batch of `record` must not rely on them.

        After a failed attempt the server may have lost its writes, and a cached entry would say
        that the batch was applied. Before this process's first batch of a log, somebody else may
        have emptied or changed the store.
        """
        if record.token.attempt or not record.committed or record.log_id != self._log_id:
            self._entries.clear()
            self._log_id = record.log_id

    def _take(self, keys: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """Take out the entries of `keys`; return them, and the positions of missing ones."""
        entries = list(map(self._entries.pop, keys, repeat(_MISSING)))
        missing = [position for position, entry in enumerate(entries) if entry is _MISSING]
        self.hits += len(keys) - len(missing)
        self.misses += len(missing)
        return entries, missing

    def _keep(self, keys: Sequence[Any], entries: Iterable[Any]) -> None:
        """Put entries in, and drop those used longest ago."""
        kept = self._entries
        kept.update(zip(keys, entries, strict=True))
        for key in list(islice(kept, max(len(kept) - self._size, 0))):
            del kept[key]

    def _forget(self, keys: Sequence[Any]) -> None:
        """Drop the entries of `keys`, so that the next read asks the store."""
        pop = self._entries.pop
        for key in keys:
            pop(key, None)
