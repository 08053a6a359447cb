"""Misfortunes of a store, and a layer that plays them on the writes of a real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.errors import StateUnavailableError
from trident.states.values import Token

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


class UnluckyMap(WrappedMap):
    """Plays the misfortunes on every write on its way to the map below."""

    def __init__(self, inner: IBackingMap, misfortunes: Misfortunes) -> None:
        super().__init__(inner)
        self._misfortunes = misfortunes

    def incarnation(self) -> str | None:
        known = super().incarnation()
        return None if known is None else f"{known}, {self._misfortunes.incarnation} fail-overs"

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        def put(count: int) -> None:
            self.inner.multiPut(keys[:count], values[:count])

        self._befall(put, len(keys))

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        # One entry: a crash after the first is a lost answer.
        return self._befall(lambda _: self.inner.putControl(new, expected), 1)

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        def put(count: int) -> bool:
            return self.inner.multiPutFenced(keys[:count], values[:count], fence)

        return self._befall(put, len(keys))

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        def remove(count: int) -> bool:
            return self.inner.multiRemoveFenced(keys[:count], fence)

        return self._befall(remove, len(keys))

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        def put(count: int) -> list[bool]:
            return self.inner.multiPutVersioned(keys[:count], values[:count], versions[:count])

        return self._befall(put, len(keys))

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        def put(count: int) -> None:
            self.inner.multiPutAt(keys[:count], values[:count], version)

        self._befall(put, len(keys))

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        def add(count: int) -> bool:
            return self.inner.multiAddFenced(keys[:count], amounts[:count], token, retried, fence)

        return self._befall(add, len(keys))

    def _befall(self, write: Callable[[int], T], size: int) -> T:
        return self._misfortunes.befall("a store with misfortunes", lambda: write(size), write)
