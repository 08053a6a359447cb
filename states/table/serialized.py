"""Value objects over a store of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.kinds.kind import Kind
from trident.states.serializers import Serializer
from trident.states.table.table import Layer, Table


class SerializedTable(Layer):
    """Turns the entries of one kind into bytes and back.

    Parameters
    ----------
    below : Table
        A table of bytes.
    kind : Kind
        Which entries.
    serializer : Serializer
        Makes the bytes.
    """

    def __init__(self, below: Table, kind: Kind, serializer: Serializer) -> None:
        super().__init__(below)
        self._kind = kind
        self._serializer = serializer

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self._kind.loads(self._below.read(keys), self._serializer)

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        return self._below.write(keys, self._kind.dumps(entries, self._serializer))

    def entries(self) -> Sequence[tuple[Any, Any]]:
        found = self._below.entries()
        entries = self._kind.loads([data for _, data in found], self._serializer)
        return [(key, entry) for (key, _), entry in zip(found, entries, strict=True)]
