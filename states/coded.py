"""Translation between a map state, which thinks in values, and what its store exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.backing_map import Codec, IBackingMap, WrappedMap
from trident.states.columns import OpaqueEntries, VersionedEntries
from trident.states.control import ControlRecord
from trident.states.keys import decode_key, encode_key
from trident.states.serializers import Serializer
from trident.states.values import StateType, Token


def coded(backing: IBackingMap, kind: StateType, serializer: Serializer) -> IBackingMap:
    """Return `backing` as a map of encoded keys and value objects, whatever it exchanges."""
    match backing.codec:
        case Codec.BYTES:
            return SerializedMap(backing, kind, serializer)
        case Codec.VALUES:
            return backing
        case None:
            return FieldsMap(backing)


class TranslatedMap(WrappedMap):
    """A layer of encoded keys and value objects; subclasses say what lies below."""

    codec = Codec.VALUES

    def keys_down(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Return the inner map's form of keys."""
        return keys

    def down(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the inner map's form of values."""
        return values

    def up(self, data: Sequence[Any]) -> Sequence[Any]:
        """Return the values for the inner map's form of them."""
        return data

    def multiGet(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self.up(self.inner.multiGet(self.keys_down(keys)))

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.inner.multiPut(self.keys_down(keys), self.down(values))

    def multiPutFenced(self, keys: Sequence[Any], values: Sequence[Any], fence: bytes) -> bool:
        return self.inner.multiPutFenced(self.keys_down(keys), self.down(values), fence)

    def multiRemoveFenced(self, keys: Sequence[Any], fence: bytes) -> bool:
        return self.inner.multiRemoveFenced(self.keys_down(keys), fence)

    def multiGetVersioned(self, keys: Sequence[Any]) -> Sequence[tuple[Any, Any]]:
        found = VersionedEntries.of(self.inner.multiGetVersioned(self.keys_down(keys)))
        return VersionedEntries(self.up(found.entries), found.versions)

    def multiPutVersioned(
        self, keys: Sequence[Any], values: Sequence[Any], versions: Sequence[Any]
    ) -> list[bool]:
        return self.inner.multiPutVersioned(self.keys_down(keys), self.down(values), versions)

    def multiPutAt(self, keys: Sequence[Any], values: Sequence[Any], version: int) -> None:
        self.inner.multiPutAt(self.keys_down(keys), self.down(values), version)

    def multiAddFenced(
        self,
        keys: Sequence[Any],
        amounts: Sequence[int | float],
        token: Token,
        record: ControlRecord,
    ) -> bool:
        return self.inner.multiAddFenced(self.keys_down(keys), amounts, token, record)


class SerializedMap(TranslatedMap):
    """Value objects over a store of bytes.

    Parameters
    ----------
    inner : IBackingMap
        A map of bytes.
    kind : StateType
        Which value objects.
    serializer : Serializer
        Turns them into bytes.
    """

    def __init__(self, inner: IBackingMap, kind: StateType, serializer: Serializer) -> None:
        super().__init__(inner)
        self._kind = kind
        self._serializer = serializer

    def down(self, values: Sequence[Any]) -> list[bytes]:
        if not values:
            return []
        match self._kind:
            case StateType.OPAQUE:
                return self._serializer.dumps_opaque(*_opaque_columns(values))
            case StateType.TRANSACTIONAL:
                return self._serializer.dumps_transactional(*zip(*values, strict=True))
            case StateType.NON_TRANSACTIONAL:
                return self._serializer.dumps_plain(values)

    def up(self, data: Sequence[Any]) -> Sequence[Any]:
        match self._kind:
            case StateType.OPAQUE:
                return self._serializer.loads_opaque(data)
            case StateType.TRANSACTIONAL:
                return self._serializer.loads_transactional(data)
            case StateType.NON_TRANSACTIONAL:
                return self._serializer.loads_plain(data)

    def entries(self) -> list[tuple[Any, Any]]:
        found = self.inner.entries()
        values = self.up([data for _, data in found])
        return [(key, value) for (key, _), value in zip(found, values, strict=True)]


def _opaque_columns(values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    if isinstance(values, OpaqueEntries):
        return values.txids, values.attempts, values.currs, values.prevs
    return list(zip(*values, strict=True))


class FieldsMap(TranslatedMap):
    """Encoded keys over a store that takes the fields of a key."""

    def keys_down(self, keys: Sequence[bytes]) -> list[tuple[Any, ...]]:
        return list(map(decode_key, keys))

    def entries(self) -> list[tuple[Any, Any]]:
        return [(encode_key(fields), value) for fields, value in self.inner.entries()]
