"""Values of several forms, all read in the one that they have now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trident.states.asking import Wait
from trident.states.kinds.kind import Kind
from trident.states.schema import ValueSchema
from trident.states.table.table import Layer, Table


class UpgradingTable(Layer):
    """Hands on values in the form that they have now, and has them kept with its version."""

    def __init__(self, below: Table, kind: Kind, schema: ValueSchema) -> None:
        super().__init__(below)
        self.adds = False  # the store would add to what is kept
        self._kind = kind
        self._schema = schema

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        wait = self._below.ask(keys)
        return lambda: self._each(keys, wait(), self._schema.current)

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        return self._below.write(keys, self._each(keys, entries, self._kept))

    def entries(self) -> Sequence[tuple[Any, Any]]:
        return self._read(self._below.entries())

    def pages(self, part: Any = None) -> Iterator[Sequence[tuple[Any, Any]]]:
        return map(self._read, self._below.pages(part))

    def _kept(self, key: bytes, value: Any) -> Any:
        return self._schema.kept(value)

    def _read(self, found: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        keys = [key for key, _ in found]
        entries = self._each(keys, [entry for _, entry in found], self._schema.current)
        return list(zip(keys, entries, strict=True))

    def _each(
        self, keys: Sequence[Any], entries: Sequence[Any], make: Callable[[bytes, Any], Any]
    ) -> Sequence[Any]:
        """Return the entries with what is made of each of their values; None stays None."""
        there = [
            (key, entry) for key, entry in zip(keys, entries, strict=True) if entry is not None
        ]
        columns = self._kind.by_column([entry for _, entry in there])
        tokens, values = columns[: self._kind.tokens], columns[self._kind.tokens :]
        made = [
            [make(key, each) for (key, _), each in zip(there, one, strict=True)] for one in values
        ]
        rows = iter(self._kind.of_rows(list(zip(*tokens, *made, strict=True))))
        return [None if entry is None else next(rows) for entry in entries]
