"""Misfortunes of a store, and a layer that plays them on the writes of a real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.errors import StateUnavailableError

T = TypeVar("T")
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
