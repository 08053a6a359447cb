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


class Cache:
    """The entries used last, and the keys last found absent, up to `size` of both."""

    def __init__(self, size: int) -> None:
        self._size = size
        # In the order of their use. A key is moved by taking it out and putting it back, for all
        # keys of a call in two passes: a tenth of what an LRU cache costs that moves each alone.
        self._entries: dict[Any, Any] = {}
        self._log_id = ""
        self.hits = 0
        self.misses = 0

    def take(self, keys: Sequence[Any]) -> tuple[list[Any], list[int]]:
        """Take out the entries of `keys`; return them, and the positions of missing ones."""
        entries = list(map(self._entries.pop, keys, repeat(_MISSING)))
        places = [place for place, entry in enumerate(entries) if entry is _MISSING]
        self.hits += len(keys) - len(places)
        self.misses += len(places)
        return entries, places

    def keep(self, keys: Sequence[Any], entries: Iterable[Any]) -> None:
        """Put entries in, and forget what was used longest ago."""
        kept = self._entries
        kept.update(zip(keys, entries, strict=True))
        for key in list(islice(kept, max(len(kept) - self._size, 0))):
            del kept[key]

    def forget(self, keys: Sequence[Any]) -> None:
        """Drop the entries of `keys`, so that the store is asked for them next."""
        pop = self._entries.pop
        for key in keys:
            pop(key, None)

    def begin(self, record: ControlRecord) -> None:
        """Forget everything before a batch that must not rely on it.

        One that is retried must not: the server may have lost what the earlier attempt wrote, and
        an entry kept here would say that the batch was applied already. Nor must the first batch
        that this process has of a log: others may have emptied the store meanwhile, or changed it.
        """
        if record.token.attempt or not record.committed or record.log_id != self._log_id:
            self._entries.clear()
            self._log_id = record.log_id


class CachedTable(Layer):
    """Answers from a cache; writes go to the store first.

    The keys of a write that fails, or is refused, are forgotten, because nobody knows what the
    store holds then.
    """

    def __init__(self, below: Table, cache: Cache) -> None:
        super().__init__(below)
        self._cache = cache

    def begin(self, record: ControlRecord) -> None:
        self._cache.begin(record)
        self._below.begin(record)

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        return partial(self._read, keys)

    def _read(self, keys: Sequence[Any]) -> Sequence[Any]:
        entries, places = self._cache.take(keys)
        if places:
            found = self._below.read([keys[place] for place in places])
            for place, entry in zip(places, found, strict=True):
                entries[place] = entry
        self._cache.keep(keys, entries)
        return entries

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._cache.forget(keys)
        refused = self._below.write(keys, entries)
        if not refused:
            self._cache.keep(keys, entries)
        return refused

    def remove(self, keys: Sequence[Any]) -> None:
        self._cache.forget(keys)
        self._below.remove(keys)

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._cache.forget(keys)
        self._below.add(keys, amounts)


class CachedMap(LayeredMap):
    """Keeps the entries that states over a map used last, and the keys last found absent.

    It must be the only way that anyone writes the store while it lives: the fence refuses a late
    write, but cannot know that a value was computed from an entry that is no longer true. Over a
    store without the fence nothing is kept. Readers outside the batch go past it.

    Parameters
    ----------
    inner : IBackingMap or LayeredMap
        The map below.
    size : int
        How many keys to keep.

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

    for_readers = False  # they must not find what is not committed yet

    def __init__(self, inner: IBackingMap | LayeredMap, size: int) -> None:
        super().__init__(inner)
        self._cache = Cache(size)

    @property
    def hits(self) -> int:
        return self._cache.hits

    @property
    def misses(self) -> int:
        """How many keys were asked below."""
        return self._cache.misses

    def over(self, below: Table) -> Table:
        return CachedTable(below, self._cache)
