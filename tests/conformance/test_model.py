"""What a map does otherwise than its model is found, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import pytest

from tests.states.abilities import EntryMap, FencedMap, PlainMap, VersionedMap
from trident.states import Ability, IBackingMap
from trident.states.keys import CONTROL_KEY
from trident.states.testing.suite import BackingMapConformance

FENCED = frozenset({Ability.FENCED, Ability.REMOVE})


class Sorted(PlainMap):
    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return super().multiGet(sorted(keys))


class Present(PlainMap):
    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = super().multiGet(keys)
        return sorted(found, key=lambda value: value is None)


class Once(PlainMap):
    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = dict.fromkeys(keys)
        return super().multiGet([*found]) + [None] * (len(keys) - len(found))


class Greedy(PlainMap):
    def multiGet(self, keys: Any) -> list[bytes | None]:
        found = super().multiGet(keys)
        if isinstance(keys, list):
            keys.clear()
        return found


class Keeping(PlainMap):
    """Keeps the list that it was given, and puts what is in it when it is asked next."""

    pending: ClassVar[list[Any]] = []

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        while self.pending:
            super().multiPut(*self.pending.pop())
        return super().multiGet(keys)

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        if CONTROL_KEY in keys:
            super().multiPut(keys, values)
        else:
            self.pending.append((keys, values))


class Remembering(PlainMap):
    """Answers what it has read once."""

    def __init__(self, server: Any = None) -> None:
        super().__init__(server)
        self.read: dict[bytes, bytes | None] = {}

    def multiGet(self, keys: Sequence[bytes]) -> list[bytes | None]:
        for key, value in zip(keys, super().multiGet(keys), strict=True):
            self.read.setdefault(key, value)
        return [self.read[key] for key in keys]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        super().multiPut(keys, values)
        self.read.update(zip(keys, values, strict=True))


class FirstWins(PlainMap):
    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        for key, value in zip(keys, values, strict=True):
            if key == CONTROL_KEY or self.multiGet([key]) == [None]:
                super().multiPut([key], [value])


class Crossed(PlainMap):
    """What was asked for first answers who waits first."""

    def __init__(self, server: Any = None) -> None:
        super().__init__(server)
        self.asked: list[Sequence[bytes]] = []

    def ask(self, keys: Sequence[bytes]) -> Callable[[], Sequence[Any]]:
        self.asked.append(keys)
        return lambda: self.multiGet(self.asked.pop(0))


class AnyRecord(PlainMap):
    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        return super().putControl(new, self.getControl())


class RecordWhereAbsent(PlainMap):
    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        return super().putControl(new, self.getControl() and expected)


class Unfenced(FencedMap):
    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        return super().multiPutFenced(keys, values, self.getControl() or fence)


class FencedByBegin(FencedMap):
    """Compares the begin of the record only."""

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        own = self.getControl()
        same = own is not None and own[:20] == fence[:20]
        return super().multiPutFenced(keys, values, own if own and same else fence)


class RefusedLate(FencedMap):
    """Says that a write is refused, after it."""

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        done = super().multiPutFenced(keys, values, fence)
        self.multiPut(keys, values)
        return done


class NothingRefused(FencedMap):
    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        return bool(keys) and super().multiPutFenced(keys, values, fence)


class RemovesAnyway(FencedMap):
    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        return super().multiRemoveFenced(keys, self.getControl() or fence)


class KeepsRemoved(FencedMap):
    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        return super().multiRemoveFenced(keys[:1], fence)


class Unconditional(EntryMap):
    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[int]
    ) -> list[bool]:
        now = [version for _, version in self.multiGetVersioned(keys)]
        return super().multiPutVersioned(keys, values, now)


class AllOrNone(EntryMap):
    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[int]
    ) -> list[bool]:
        now = [version for _, version in self.multiGetVersioned(keys)]
        if now != versions:
            return [False] * len(keys)
        return super().multiPutVersioned(keys, values, versions)


class CreatedAgain(EntryMap):
    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[int]
    ) -> list[bool]:
        now = [version for _, version in self.multiGetVersioned(keys)]
        given = [found if old == 0 else old for found, old in zip(now, versions, strict=True)]
        return super().multiPutVersioned(keys, values, given)


class LastWrite(VersionedMap):
    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        self.multiPut(keys, values)


class ByBatch(VersionedMap):
    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        super().multiPutAt(keys, values, version >> 12 << 12)


class Listing(FencedMap):
    def entries(self) -> list[tuple[bytes, bytes]]:
        return [(key, value) for key, (value, _) in self.server.entries.items()]


class Looking(FencedMap):
    def occupant(self) -> str | None:
        return next((f"the entry {key!r}" for key in self.server.entries), None)


BROKEN: list[tuple[type[PlainMap], frozenset[Ability]]] = [
    *((kind, frozenset()) for kind in (Sorted, Present, Once, Greedy, Keeping, Remembering)),
    *((kind, frozenset()) for kind in (FirstWins, Crossed, AnyRecord, RecordWhereAbsent)),
    *((kind, FENCED) for kind in (Unfenced, FencedByBegin, RefusedLate, NothingRefused)),
    *((kind, FENCED) for kind in (RemovesAnyway, KeepsRemoved)),
    *((kind, frozenset({Ability.ENTRY})) for kind in (Unconditional, AllOrNone, CreatedAgain)),
    *((kind, frozenset({Ability.VERSIONED})) for kind in (LastWrite, ByBatch)),
    (Listing, FENCED | {Ability.LIST}),
    (Looking, FENCED | {Ability.LOOK}),
]


@pytest.mark.parametrize(("kind", "able"), BROKEN, ids=lambda each: getattr(each, "__name__", ""))
def test_a_map_that_differs_is_found(kind: type[PlainMap], able: frozenset[Ability]) -> None:
    class Suite(BackingMapConformance):
        abilities = able

        def make_map(self) -> IBackingMap:
            return kind()

    with pytest.raises(AssertionError):
        Suite().test_it_does_what_a_dict_would()
