"""A store with bad luck: misfortunes for the writes of any backing map."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.errors import StateUnavailableError

Write = Callable[[int], Any]
"""Writes the first of several entries, as many as it is told."""


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
