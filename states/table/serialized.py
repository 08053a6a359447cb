"""Value objects over a store of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from trident.states.errors import SerializationError
from trident.states.keys import decode_key
from trident.states.kinds.kind import Kind
from trident.states.serializers import Serializer
from trident.states.steps import Steps
from trident.states.table.table import Layer, Table

T = TypeVar("T")


def naming_key(
    make: Callable[[Sequence[Any]], T], keys: Sequence[bytes], entries: Sequence[Any]
) -> T:
    """Return what `make` makes of `entries`, as they are stored.

    Raises
    ------
    SerializationError
        For a value that can't be stored; it names the value's key.
    """
    try:
        return make(entries)
    except SerializationError:
        for key, position in zip(keys, range(len(entries)), strict=True):
            try:
                make(entries[position : position + 1])
            except SerializationError as error:
                what = f"value of key {decode_key(key)!r}"
                raise SerializationError(what, error.found, error.allowed) from None
        raise


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

    def read_steps(self, keys: Sequence[Any]) -> Steps[Sequence[Any]]:
        found = yield from self._below.read_steps(keys)
        return self._kind.loads(found, self._serializer)

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        return self._below.write(keys, naming_key(self._dumped, keys, entries))

    def _dumped(self, entries: Sequence[Any]) -> list[bytes]:
        return self._kind.dumps(entries, self._serializer)

    def entries(self) -> Sequence[tuple[Any, Any]]:
        return self._loaded(self._below.entries())

    def pages(self) -> Iterator[Sequence[tuple[Any, Any]]]:
        return map(self._loaded, self._below.pages())

    def _loaded(self, found: Sequence[tuple[Any, bytes]]) -> Sequence[tuple[Any, Any]]:
        entries = self._kind.loads([data for _, data in found], self._serializer)
        return [(key, entry) for (key, _), entry in zip(found, entries, strict=True)]
