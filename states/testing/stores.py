"""Stores in memory for tests of the protocol, and misfortunes to play on any store.

The two maps, one with the two methods and one with a fence, are as short as correct ones can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.errors import StateUnavailableError

Write = Callable[[int], Any]
"""Writes the first of several entries, as many as it is told."""
_NUMBERS = count()
_SERVERS: WeakValueDictionary[int, TroubledServer] = WeakValueDictionary()


class UnluckyStore:
    """A store with several open maps, and misfortunes for their writes.

    A misfortune is chosen beforehand, and happens to the next write of entries or of the control
    record. `reopen` opens another map over the entries of the store. `lose` makes the store lose
    its newest changes, if it can: a real store keeps what it acknowledged.
    """

    def __init__(
        self, reopen: Callable[[], IBackingMap], lose: Callable[[int], object] | None = None
    ) -> None:
        self.fail_overs = 0
        self._reopen = reopen
        self._lose = lose
        self.held: list[Callable[[], object]] = []
        self._opened: list[IBackingMap] = []
        self._misfortune: Callable[[Write, int], object] | None = None

    def open(self) -> IBackingMap:
        """Return another map over the store, whose writes may meet a misfortune."""
        opened = UnluckyMap(self._reopen(), self)
        self._opened.append(opened)
        return opened

    def befall(self, write: Write, size: int) -> Any:
        """Write `size` entries; or let the chosen misfortune happen, then raise
        StateUnavailableError."""
        misfortune, self._misfortune = self._misfortune, None
        if misfortune is None:
            return write(size)
        misfortune(write, size)
        raise StateUnavailableError("a store with misfortunes", "no answer came")

    def refuse(self) -> None:
        """The next write never arrives."""
        self._misfortune = lambda write, size: None

    def crash(self, after: int) -> None:
        """The next write stores only its first `after` entries."""
        self._misfortune = lambda write, size: write(after)

    def lose_answer(self) -> None:
        """The next write is stored, and its writer gets no answer."""
        self._misfortune = lambda write, size: write(size)

    def hold(self) -> None:
        """The next write arrives only at :meth:`release`, and its writer gets no answer."""
        self._misfortune = lambda write, size: self.held.append(partial(write, size))

    def calm(self) -> None:
        """No misfortune happens to the next write after all."""
        self._misfortune = None

    def release(self) -> None:
        """The held writes arrive now."""
        held, self.held = self.held, []
        for arrive in held:
            arrive()

    def fail_over(self, lost: int = 0) -> None:
        """Another server takes over; a store that can lose changes loses the `lost` newest."""
        self.fail_overs += 1
        if self._lose is not None:
            self._lose(lost)

    def close(self) -> None:
        for opened in self._opened:
            opened.close()


def _befalling(name: str, columns: int) -> Any:
    """Return a write whose first arguments are columns; a crash cuts these."""

    def write(self: UnluckyMap, *given: Any) -> Any:
        def put(count: int) -> Any:
            cut = [column[:count] for column in given[:columns]]
            return getattr(self.inner, name)(*cut, *given[columns:])

        return self.unlucky.befall(put, len(given[0]))

    return write


class UnluckyMap(WrappedMap):
    """Sends all writes to the map below through the misfortunes of a store."""

    def __init__(self, inner: IBackingMap, unlucky: UnluckyStore) -> None:
        super().__init__(inner)
        self.unlucky = unlucky

    def incarnation(self) -> str | None:
        known = super().incarnation()
        return None if known is None else f"{known}, {self.unlucky.fail_overs} fail-overs"

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        # One entry, so a crash after the first one is a lost answer.
        done: bool = self.unlucky.befall(lambda _: self.inner.putControl(new, expected), 1)
        return done

    multiPut = _befalling("multiPut", 2)
    multiPutFenced = _befalling("multiPutFenced", 2)
    multiRemoveFenced = _befalling("multiRemoveFenced", 1)
    multiPutVersioned = _befalling("multiPutVersioned", 3)
    multiPutAt = _befalling("multiPutAt", 2)
    multiRemoveUpTo = _befalling("multiRemoveUpTo", 1)
    multiAddFenced = _befalling("multiAddFenced", 2)


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


def _reached(kind: type[PlainMap], number: int) -> PlainMap:
    return kind(_SERVERS[number])
