"""Small stores in memory, one an ability, that share entries the way workers share a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trident.errors import FailedException
from trident.states import CONTROL_KEY, Codec, IBackingMap, OpaqueValue, Token
from trident.states.cut import Cut
from trident.states.kinds import OPAQUE


class DictMap(IBackingMap):
    """Two methods over a dict; `fail_puts` lets that many puts fail."""

    def __init__(self, entries: dict[Any, Any] | None = None, fail_puts: int = 0) -> None:
        self.stored: dict[Any, Any] = {} if entries is None else entries
        self.fail_puts = fail_puts

    def multiGet(self, keys: Sequence[Any]) -> list[Any]:
        return [self.stored.get(key) for key in keys]

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self._fail(keys)
        self.stored.update(zip(keys, values, strict=True))

    def _fail(self, keys: Sequence[Any]) -> None:
        if self.fail_puts and CONTROL_KEY not in keys:
            self.fail_puts -= 1
            raise FailedException("the store is away")


class FencedMap(DictMap):
    """Compares the control record and writes at once; can remove."""

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        if self.getControl() != fence:
            return False
        self.multiPut(keys, values)
        return True

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        if self.getControl() != fence:
            return False
        for key in keys:
            self.stored.pop(key, None)
        return True


class EntryMap(DictMap):
    """Writes an entry only where it is as it was read: the value is its own version."""

    def multiGetVersioned(self, keys: Sequence[Any]) -> list[tuple[Any, Any]]:
        return [(value, value) for value in self.multiGet(keys)]

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        self._fail(keys)
        done = []
        for key, value, version in zip(keys, values, versions, strict=True):
            done.append(self.stored.get(key) == version)
            if done[-1]:
                self.stored[key] = value
        return done


class VersionedMap(DictMap):
    """Shows the value of the highest version."""

    def __init__(self, entries: dict[Any, Any] | None = None) -> None:
        super().__init__(entries)
        self.versions: dict[Any, int] = {}

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        for key, value in zip(keys, values, strict=True):
            if version >= self.versions.get(key, 0):
                self.versions[key] = version
                self.stored[key] = value


class AddingMap(FencedMap):
    """Holds value objects and adds to them by itself."""

    codec = Codec.VALUES

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        if self.getControl() != fence:
            return False
        befores = OPAQUE.read(self.multiGet(keys), Cut(token.txid - 1, token, retried))
        for key, before, amount in zip(keys, befores, amounts, strict=True):
            self.stored[key] = OpaqueValue(*token, (before or 0) + amount, before)
        return True


class FieldsMap(DictMap):
    """Takes the fields of a key, and value objects."""

    codec = None


class Count:
    """As much of ``trident.Count`` as a map needs."""

    adds = True

    def combine(self, left: int, right: int) -> int:
        return left + right


STORES = [DictMap, FencedMap, EntryMap, VersionedMap, AddingMap, FieldsMap]
