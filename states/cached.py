"""A cache of entries, for states with one process that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, repeat
from typing import Any

from trident.states.backing_map import IBackingMap, WrappedMap, layers
from trident.states.control import ControlRecord
from trident.states.values import Token

_MISSING: Any = object()


class Entries(dict[Any, Any]):
    """What is kept, and of which log's batches it is."""

    lineage = ""


class CachedMap(WrappedMap):
    """Keeps the entries used last, and the keys last found absent.

    It must be the only way that anyone writes the store while it lives: the fence refuses a late
    write, but cannot know that a value was computed from an entry that is no longer true. So the
    stack adds it only to states that one process writes; readers outside the batch go past it
    (:func:`uncached`).

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
        self._size = size
        # In the order of their use. A key is moved by taking it out and putting it back, for all
        # keys of a call in two passes: a tenth of what an LRU cache costs that moves each alone.
        self._entries = Entries()
        self.hits = 0
        self.misses = 0

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        values = list(map(self._entries.pop, keys, repeat(_MISSING)))
        places = [place for place, value in enumerate(values) if value is _MISSING]
        if places:
            self._read(keys, values, places)
        self.hits += len(keys) - len(places)
        self.misses += len(places)
        self._keep(keys, values)
        return values

    def _read(self, keys: Sequence[Any], values: list[Any], places: Sequence[int]) -> None:
        """Fill in the values of the keys at `places`; a key may occur several times."""
        known = {
            key: value for key, value in zip(keys, values, strict=True) if value is not _MISSING
        }
        asked = [key for key in dict.fromkeys(keys[place] for place in places) if key not in known]
        if asked:
            known.update(zip(asked, self.inner.multiGet(asked), strict=True))
        for place in places:
            values[place] = known[keys[place]]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.forget(keys)
        self.inner.multiPut(keys, values)
        self._keep(keys, values)

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        self.forget(keys)
        stored = self.inner.multiPutFenced(keys, values, fence)
        if stored:
            self._keep(keys, values)
        return stored

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        self.forget(keys)
        self.inner.multiPutAt(keys, values, version)

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        self.forget(keys)
        return self.inner.multiPutVersioned(keys, values, versions)

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        record: ControlRecord,
    ) -> bool:
        self.forget(keys)
        return self.inner.multiAddFenced(keys, amounts, token, record)

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        self.forget(keys)
        return self.inner.multiRemoveFenced(keys, fence)

    def begin(self, record: ControlRecord) -> None:
        """Forget everything where the batch of `record` must not believe it."""
        entries = self._entries
        if record.token.attempt or not record.committed or record.lineage != entries.lineage:
            entries.clear()
            entries.lineage = record.lineage

    def _keep(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        entries = self._entries
        entries.update(zip(keys, values, strict=True))
        for key in list(islice(entries, max(len(entries) - self._size, 0))):
            del entries[key]

    def forget(self, keys: Sequence[Any]) -> None:
        """Have the store asked for `keys` next."""
        pop = self._entries.pop
        for key in keys:
            pop(key, None)


def begin_caches(backing: IBackingMap, record: ControlRecord) -> None:
    """Begin the batch of `record` at the caches of `backing`: some batches begin with empty ones.

    So does one that is retried: the server may have lost what its earlier attempt wrote, and an
    entry kept here would say that the batch was applied already. And the first one that this
    process has of a log: the store may have been emptied since, and filled again by others.
    """
    for layer in layers(backing):
        if isinstance(layer, CachedMap):
            layer.begin(record)


def uncached(backing: IBackingMap) -> IBackingMap:
    """Return what lies below the caches of `backing`, or `backing` where it has none."""
    found = backing
    for layer in layers(backing):
        if isinstance(layer, CachedMap):
            found = layer.inner
    return found
