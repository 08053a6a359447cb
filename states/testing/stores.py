"""Stores in memory, on which every misfortune can be played: the two methods, and a fence.

They show the shortest correct form, and are what the protocol is tested on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.errors import StateUnavailableError
from trident.states.keys import CONTROL_KEY

Whole = Callable[[], object]
"""Does all of a write."""
Beginning = Callable[[int], object]
"""Does a write of several entries for that many of them."""


class Misfortunes:
    """What goes wrong with the writes of several maps of one store.

    A misfortune is asked for beforehand and befalls the next write, of entries or of the control
    record.
    """

    def __init__(self) -> None:
        self.incarnation = 0
        self.held: list[Whole] = []
        self._misfortune: Callable[[Whole, Beginning], object] | None = None

    def befall(self, store: str, whole: Callable[[], T], beginning: Beginning) -> T:
        """Do a write, or what the misfortune that was asked for leaves of it.

        Raises StateUnavailableError, which names `store`, after every misfortune.
        """
        misfortune, self._misfortune = self._misfortune, None
        if misfortune is None:
            return whole()
        misfortune(whole, beginning)
        raise StateUnavailableError(store, "no answer came")

    def refuse(self) -> None:
        """The next write never arrives."""
        self._misfortune = lambda whole, beginning: None

    def crash(self, after: int) -> None:
        """Of the next write, only the first `after` entries are stored."""
        self._misfortune = lambda whole, beginning: beginning(after)

    def lose_answer(self) -> None:
        """The next write is stored, but its writer hears nothing."""
        self._misfortune = lambda whole, beginning: whole()

    def hold(self) -> None:
        """The next write stays on its way, until :meth:`release`; its writer hears nothing."""
        self._misfortune = lambda whole, beginning: self.held.append(whole)

    def calm(self) -> None:
        """No misfortune befalls the next write after all."""
        self._misfortune = None

    def release(self) -> None:
        """The writes that were held arrive now, late."""
        held, self.held = self.held, []
        for arrive in held:
            arrive()

    def fail_over(self, lost: int = 0) -> None:
        """Another server takes over; one that can forget has lost its `lost` newest changes."""
        self.incarnation += 1

    def close(self) -> None:
        """Let go of what the maps hold."""


class UnluckyStore(Misfortunes):
    """A real store, of which several maps are open; nothing that it acknowledged is ever lost.

    `reopen` opens another map over the entries of the store.
    """

    def __init__(self, reopen: Callable[[], IBackingMap]) -> None:
        super().__init__()
        self._reopen = reopen
        self._opened: list[IBackingMap] = []

    def open(self) -> IBackingMap:
        """Return another map over the store, on whose writes the misfortunes are played."""
        opened = UnluckyMap(self._reopen(), self)
        self._opened.append(opened)
        return opened

    def close(self) -> None:
        for opened in self._opened:
            opened.close()


def _befalling(name: str, columns: int) -> Any:
    """A write whose first arguments are columns: of these a crash lets only the begin arrive."""

    def write(self: UnluckyMap, *given: Any) -> Any:
        def put(count: int) -> Any:
            cut = [column[:count] for column in given[:columns]]
            return getattr(self.inner, name)(*cut, *given[columns:])

        return self._befall(put, len(given[0]))

    return write


class UnluckyMap(WrappedMap):
    """Plays the misfortunes on every write on its way to the map below."""

    def __init__(self, inner: IBackingMap, misfortunes: Misfortunes) -> None:
        super().__init__(inner)
        self._misfortunes = misfortunes

    def incarnation(self) -> str | None:
        known = super().incarnation()
        return None if known is None else f"{known}, {self._misfortunes.incarnation} fail-overs"

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        # One entry: a crash after the first is a lost answer.
        return self._befall(lambda _: self.inner.putControl(new, expected), 1)

    multiPut = _befalling("multiPut", 2)
    multiPutFenced = _befalling("multiPutFenced", 2)
    multiRemoveFenced = _befalling("multiRemoveFenced", 1)
    multiPutVersioned = _befalling("multiPutVersioned", 3)
    multiPutAt = _befalling("multiPutAt", 2)
    multiAddFenced = _befalling("multiAddFenced", 2)

    def _befall(self, write: Callable[[int], T], size: int) -> T:
        return self._misfortunes.befall("a store with misfortunes", lambda: write(size), write)


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


def _reached(kind: type[PlainMap], number: int) -> PlainMap:
    return kind(_SERVERS[number])
