"""A cache of entries, for states with one process that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cachetools import LRUCache

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.control import ControlRecord
from trident.states.values import Token


class CachedMap(WrappedMap):
    """Keeps the entries used last, and the keys last found absent.

    It must be the only way that anyone writes the store while it lives: the fence refuses a late
    write, but cannot know that a value was computed from an entry that is no longer true. So the
    stack adds it only to states that one process writes; entries read with their versions are
    never cached, and readers outside the batch go past it (:func:`uncached`).

    Writes go to the store first. The keys of a write that fails, or is refused, are forgotten,
    because nobody knows what the store holds then.

    Parameters
    ----------
    inner : IBackingMap
        The map below.
    size : int
        How many keys to keep.

    Attributes
    ----------
    hits, misses : int
        How many keys were answered from here, and how many were asked below.
    """

    def __init__(self, inner: IBackingMap, size: int) -> None:
        super().__init__(inner)
        self._entries: LRUCache[Any, Any] = LRUCache(size)
        self.hits = 0
        self.misses = 0

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        entries = self._entries
        found = {key: entries[key] for key in keys if key in entries}
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            read = dict(zip(missing, self.inner.multiGet(missing), strict=True))
            found.update(read)
            entries.update(read)
        self.hits += len(keys) - len(missing)
        self.misses += len(missing)
        return [found[key] for key in keys]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._forget(keys)
        self.inner.multiPut(keys, values)
        self._keep(keys, values)

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        self._forget(keys)
        stored = self.inner.multiPutFenced(keys, values, fence)
        if stored:
            self._keep(keys, values)
        return stored

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        self._forget(keys)
        self.inner.multiPutAt(keys, values, version)

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        self._forget(keys)
        return self.inner.multiPutVersioned(keys, values, versions)

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        record: ControlRecord,
    ) -> bool:
        self._forget(keys)
        return self.inner.multiAddFenced(keys, amounts, token, record)

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        self._forget(keys)
        return self.inner.multiRemoveFenced(keys, fence)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def _keep(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._entries.update(zip(keys, values, strict=True))

    def _forget(self, keys: Sequence[Any]) -> None:
        for key in keys:
            self._entries.pop(key, None)


def forget(backing: IBackingMap) -> None:
    """Empty the caches of `backing`.

    For a batch that is retried: the server may have lost what its earlier attempt wrote, and an
    entry kept here would say that the batch was applied already.
    """
    layer = backing
    while isinstance(layer, WrappedMap):
        if isinstance(layer, CachedMap):
            layer.clear()
        layer = layer.inner


def uncached(backing: IBackingMap) -> IBackingMap:
    """Return what lies below the caches of `backing`, or `backing` where it has none."""
    found = layer = backing
    while isinstance(layer, WrappedMap):
        if isinstance(layer, CachedMap):
            found = layer.inner
        layer = layer.inner
    return found
