"""Encoded keys over a store that takes the fields of a key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trident.states.keys import decode_key, encode_key
from trident.states.steps import Steps
from trident.states.table.table import Layer


class FieldsTable(Layer):
    """Turns encoded keys into tuples of their fields and back."""

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self._below.read(_fields(keys))

    def read_steps(self, keys: Sequence[Any]) -> Steps[Sequence[Any]]:
        return (yield from self._below.read_steps(_fields(keys)))

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        return list(map(encode_key, self._below.write(_fields(keys), entries)))

    def remove(self, keys: Sequence[Any]) -> None:
        self._below.remove(_fields(keys))

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._below.add(_fields(keys), amounts)

    def entries(self) -> Sequence[tuple[Any, Any]]:
        return _encoded(self._below.entries())

    def pages(self) -> Iterator[Sequence[tuple[Any, Any]]]:
        return map(_encoded, self._below.pages())


def _encoded(entries: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
    return [(encode_key(fields), entry) for fields, entry in entries]


def _fields(keys: Sequence[bytes]) -> Sequence[tuple[Any, ...]]:
    return list(map(decode_key, keys))
