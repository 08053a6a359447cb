"""Maps in memory with one ability each, in their shortest correct form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trident.states.keys import CONTROL_KEY
from trident.states.testing.stores import AtomicControlMap, Changes


class ComparedMap(AtomicControlMap):
    """Writes an entry only where it still has the value that was read: that is its version."""

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
    ) -> list[bool]:
        changes = self._changes(keys, values)

        def decide() -> tuple[Changes, list[bool]]:
            same = [a == b for a, b in zip(self.multiGet(keys), versions, strict=True)]
            return [change for change, fits in zip(changes, same, strict=True) if fits], same

        return self.server.write(decide)


class EntryMap(AtomicControlMap):
    """Writes an entry only where it still has the version that was read; 0 is absent."""

    def multiGetVersioned(self, keys: Sequence[bytes]) -> list[tuple[bytes | None, int]]:
        return [self.server.get(key) or (None, 0) for key in keys]

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[int]
    ) -> list[bool]:
        changes = self._changes(keys, values)

        def decide() -> tuple[Changes, list[bool]]:
            found = [version for _, version in self.multiGetVersioned(keys)]
            same = [a == b for a, b in zip(found, versions, strict=True)]
            return [change for change, fits in zip(changes, same, strict=True) if fits], same

        return self.server.write(decide)


class VersionedMap(AtomicControlMap):
    """Shows the write of the highest version, whichever came last."""

    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        def decide() -> tuple[Changes, None]:
            newer: Changes = []
            for key, value in zip(keys, values, strict=True):
                stored = self.server.get(key)
                if stored is None or stored[1] <= version:
                    newer.append((key, (value, version)))
            return newer, None

        self.server.write(decide)


class ExpiringMap(VersionedMap):
    """Removes entries up to a version too, and lists a page of one entry at a time."""

    def multiRemoveUpTo(self, keys: Sequence[bytes], version: int) -> None:
        def decide() -> tuple[Changes, None]:
            found = [(key, self.server.get(key)) for key in keys]
            return [(key, None) for key, stored in found if stored and stored[1] <= version], None

        self.server.write(decide)

    def pages(self) -> Iterator[list[tuple[bytes, bytes]]]:
        for key, (value, _) in list(self.server.entries.items()):
            if key != CONTROL_KEY:
                yield [(key, value)]
