"""Counts what is asked of a map, for a run's progress and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.control import ControlRecord
from trident.states.values import Token


@dataclass(frozen=True)
class Counts:
    """How often a map was called, and with how many keys, since it was made.

    Parameters
    ----------
    gets, puts : int
        Calls that read and that wrote.
    keys_read, keys_written : int
        Keys in them.
    control_calls : int
        Calls for the control record.
    """

    gets: int = 0
    puts: int = 0
    keys_read: int = 0
    keys_written: int = 0
    control_calls: int = 0


class CountedMap(WrappedMap):
    """Counts the calls that pass through it, also those that fail."""

    def __init__(self, inner: IBackingMap) -> None:
        super().__init__(inner)
        self._gets = self._puts = self._keys_read = self._keys_written = self._control_calls = 0

    @property
    def counts(self) -> Counts:
        """What passed so far."""
        return Counts(
            self._gets, self._puts, self._keys_read, self._keys_written, self._control_calls
        )

    def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
        self._count_get(keys)
        return self.inner.multiGet(keys)

    def multiGetVersioned(self, keys: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        self._count_get(keys)
        return self.inner.multiGetVersioned(keys)

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._count_put(keys)
        self.inner.multiPut(keys, values)

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        self._count_put(keys)
        return self.inner.multiPutFenced(keys, values, fence)

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        self._count_put(keys)
        return self.inner.multiPutVersioned(keys, values, versions)

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        self._count_put(keys)
        self.inner.multiPutAt(keys, values, version)

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        record: ControlRecord,
    ) -> bool:
        self._count_put(keys)
        return self.inner.multiAddFenced(keys, amounts, token, record)

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        self._count_put(keys)
        return self.inner.multiRemoveFenced(keys, fence)

    def getControl(self) -> bytes | None:
        self._count_control()
        return self.inner.getControl()

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        self._count_control()
        return self.inner.putControl(new, expected)

    def _count_get(self, keys: Sequence[Any]) -> None:
        self._gets += 1
        self._keys_read += len(keys)

    def _count_put(self, keys: Sequence[Any]) -> None:
        self._puts += 1
        self._keys_written += len(keys)

    def _count_control(self) -> None:
        self._control_calls += 1
