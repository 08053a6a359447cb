"""Splits large calls, for stores with a limit on what they take at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.control import ControlRecord
from trident.states.values import Token

T = TypeVar("T")


class MicroBatchMap(WrappedMap):
    """Asks for at most `max_get` keys and writes at most `max_put` at once, in order.

    Each part is a write of its own: a fence that closes in between refuses the rest, and the
    attempt, whose earlier parts no longer count, is stale as a whole.

    Parameters
    ----------
    inner : IBackingMap
        The map below.
    max_get, max_put : int
        Keys a call; 0 does not split.
    """

    def __init__(self, inner: IBackingMap, max_get: int = 0, max_put: int = 0) -> None:
        super().__init__(inner)
        self._max_get = max_get
        self._max_put = max_put

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        parts = _parts(keys, self._max_get)
        return [value for part in parts for value in self.inner.multiGet(part)]

    def multiGetVersioned(self, keys: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        parts = _parts(keys, self._max_get)
        return [found for part in parts for found in self.inner.multiGetVersioned(part)]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        for some, theirs in self._puts(keys, values):
            self.inner.multiPut(some, theirs)

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        return all(
            self.inner.multiPutFenced(some, theirs, fence)
            for some, theirs in self._puts(keys, values)
        )

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        parts = zip(self._puts(keys, values), _parts(versions, self._max_put), strict=True)
        return [
            stored
            for (some, theirs), expected in parts
            for stored in self.inner.multiPutVersioned(some, theirs, expected)
        ]

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        for some, theirs in self._puts(keys, values):
            self.inner.multiPutAt(some, theirs, version)

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        record: ControlRecord,
    ) -> bool:
        return all(
            self.inner.multiAddFenced(some, theirs, token, record)
            for some, theirs in self._puts(keys, amounts)
        )

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        return all(
            self.inner.multiRemoveFenced(part, fence) for part in _parts(keys, self._max_put)
        )

    def _puts(
        self, keys: Sequence[Any], values: Sequence[T]
    ) -> Iterator[tuple[Sequence[Any], Sequence[T]]]:
        return zip(_parts(keys, self._max_put), _parts(values, self._max_put), strict=True)


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    size = size or max(len(items), 1)
    for start in range(0, len(items), size):
        yield items[start : start + size]
