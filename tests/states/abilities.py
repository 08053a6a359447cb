"""Maps in memory with one ability each, in their shortest correct form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trident.states.keys import CONTROL_KEY
from trident.states.testing.stores import PlainMap


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
