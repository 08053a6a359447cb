"""Maps in memory with one ability each, in their shortest correct form, and what they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from trident.states.backing_map import IBackingMap
from trident.states.keys import CONTROL_KEY

_NUMBERS = count()
_SERVERS: WeakValueDictionary[int, TroubledServer] = WeakValueDictionary()


class TroubledServer:
    """The entries that several maps in memory share, with the control record.

    It may lose changes that it has not flushed.
    """

    def __init__(self) -> None:
        self.number = next(_NUMBERS)
        _SERVERS[self.number] = self
        self.incarnation = 0
        self.entries: dict[bytes, tuple[bytes, int]] = {}
        """Each value with its version."""
        self.versions = count(1)
        self._undo: list[tuple[bytes, tuple[bytes, int] | None]] = []

    def put(self, key: bytes, stored: tuple[bytes, int] | None) -> None:
        """Give a key a value and its version; None removes it."""
        self._undo.append((key, self.entries.get(key)))
        self._put(key, stored)

    def fail_over(self, lost: int = 0) -> None:
        """Another server takes over, without the `lost` newest changes of an entry."""
        for key, before in reversed(self._undo[len(self._undo) - min(lost, len(self._undo)) :]):
            self._put(key, before)
        self._undo.clear()
        self.incarnation += 1

    def flush(self) -> None:
        """Make all changes so far safe from loss."""
        self._undo.clear()

    def _put(self, key: bytes, stored: tuple[bytes, int] | None) -> None:
        if stored is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = stored


class PlainMap(IBackingMap):
    """The two methods, and nothing else.

    Maps that share a server share their entries; None makes a new one.
    """

    def __init__(self, server: TroubledServer | None = None) -> None:
        self.server = server or TroubledServer()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reached, (type(self), self.server.number)

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = map(self.server.entries.get, keys)
        return [None if stored is None else stored[0] for stored in found]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for key, value in zip(keys, values, strict=True):
            self.server.put(key, (value, next(self.server.versions)))

    def flush(self) -> None:
        self.server.flush()

    def incarnation(self) -> str:
        return str(self.server.incarnation)


class FencedMap(PlainMap):
    """Compares the control record in the step that writes; can remove entries."""

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        if self.getControl() != fence:
            return False
        self.multiPut(keys, values)
        return True

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        if self.getControl() != fence:
            return False
        for key in keys:
            self.server.put(key, None)
        return True


class ComparedMap(PlainMap):
    """Writes an entry only where it still has the value that was read: that is its version."""

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[Any]
    ) -> list[bool]:
        found = [version for _, version in self.multiGetVersioned(keys)]
        same = [a == b for a, b in zip(found, versions, strict=True)]
        for key, value, fits in zip(keys, values, same, strict=True):
            if fits:
                self.multiPut([key], [value])
        return same


class EntryMap(ComparedMap):
    """Writes an entry only where it still has the version that was read; 0 is absent."""

    def multiGetVersioned(self, keys: Sequence[bytes]) -> list[tuple[bytes | None, int]]:
        return [self.server.entries.get(key) or (None, 0) for key in keys]


class VersionedMap(PlainMap):
    """Shows the write of the highest version, whichever came last."""

    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        for key, value in zip(keys, values, strict=True):
            stored = self.server.entries.get(key)
            if stored is None or stored[1] <= version:
                self.server.put(key, (value, version))


class ExpiringMap(VersionedMap):
    """Removes entries up to a version too, and lists a page of one entry at a time."""

    def multiRemoveUpTo(self, keys: Sequence[bytes], version: int) -> None:
        for key in keys:
            stored = self.server.entries.get(key)
            if stored and stored[1] <= version:
                self.server.put(key, None)

    def pages(self) -> Iterator[list[tuple[bytes, bytes]]]:
        for key, (value, _) in list(self.server.entries.items()):
            if key != CONTROL_KEY:
                yield [(key, value)]


def _reached(kind: type[PlainMap], number: int) -> PlainMap:
    return kind(_SERVERS[number])
