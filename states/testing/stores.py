"""Stores in memory, one for each ability, on which every misfortune can be played.

They show the shortest correct form of each ability, and are what the protocol is tested on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from trident.states.backing_map import IBackingMap
from trident.states.keys import CONTROL_KEY
from trident.states.testing.misfortunes import Misfortunes

T = TypeVar("T")
Changes = list[tuple[bytes, tuple[bytes, int] | None]]
"""Keys with the value and version each is to get, None to remove it."""

_NUMBERS = count()
_SERVERS: WeakValueDictionary[int, TroubledServer] = WeakValueDictionary()


class TroubledServer(Misfortunes):
    """What several maps share: entries, the control record among them, and what goes wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.number = next(_NUMBERS)
        _SERVERS[self.number] = self
        self.entries: dict[bytes, tuple[bytes, int]] = {}
        self.versions = count(1)
        self._undo: list[tuple[bytes, tuple[bytes, int] | None]] = []

    def get(self, key: bytes) -> tuple[bytes, int] | None:
        return self.entries.get(key)

    def write(self, decide: Callable[[], tuple[Changes, T]]) -> T:
        """Let `decide` look at the entries and say what to change, and apply that, at once."""

        def whole() -> T:
            changes, answer = decide()
            self._apply(changes)
            return answer

        return self.befall(
            "a store in memory", whole, lambda after: self._apply(decide()[0][:after])
        )

    def fail_over(self, lost: int = 0) -> None:
        """Another server takes over, without the `lost` newest changes of an entry."""
        for key, before in reversed(self._undo[len(self._undo) - min(lost, len(self._undo)) :]):
            self._put(key, before)
        self._undo.clear()
        super().fail_over()

    def flush(self) -> None:
        """What was stored so far can't be lost any more."""
        self._undo.clear()

    def _apply(self, changes: Changes) -> None:
        for key, stored in changes:
            self._undo.append((key, self.entries.get(key)))
            self._put(key, stored)

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
        found = map(self.server.get, keys)
        return [None if stored is None else stored[0] for stored in found]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        changes = self._changes(keys, values)
        self.server.write(lambda: (changes, None))

    def flush(self) -> None:
        self.server.flush()

    def incarnation(self) -> str:
        return str(self.server.incarnation)

    def _changes(self, keys: Sequence[bytes], values: Sequence[bytes]) -> Changes:
        versions = self.server.versions
        return [(key, (value, next(versions))) for key, value in zip(keys, values, strict=True)]


class AtomicControlMap(PlainMap):
    """Compares and puts the control record in one step."""

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        def decide() -> tuple[Changes, bool]:
            same = self.getControl() == expected
            return (self._changes([CONTROL_KEY], [new]) if same else []), same

        return self.server.write(decide)


class FencedMap(AtomicControlMap):
    """Compares the control record in the step that writes; can remove entries."""

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        return self._fenced(self._changes(keys, values), fence)

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        return self._fenced([(key, None) for key in keys], fence)

    def _fenced(self, changes: Changes, fence: bytes) -> bool:
        def decide() -> tuple[Changes, bool]:
            same = self.getControl() == fence
            return (changes if same else []), same

        return self.server.write(decide)


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


def _reached(kind: type[PlainMap], number: int) -> PlainMap:
    return kind(_SERVERS[number])
