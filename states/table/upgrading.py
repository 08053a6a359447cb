"""Reads values that are stored in several forms, all in their present form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trident.states.asking import Wait
from trident.states.kinds.kind import Kind
from trident.states.schema import ValueSchema
from trident.states.table.table import Layer, Table


class UpgradingTable(Layer):
    """Upgrades values when they are read, and stores them with the version of their form."""

    def __init__(self, below: Table, kind: Kind, schema: ValueSchema) -> None:
        super().__init__(below)
        self.adds = False  # the store would add to values with a version
        self._kind = kind
        self._schema = schema

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        wait = self._below.ask(keys)
        return lambda: self._map_values(self._schema.current, keys, wait())

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        return self._below.write(keys, self._map_values(self._add_version, keys, entries))

    def _add_version(self, key: bytes, value: Any) -> Any:
        return self._schema.kept(value)

    def _listed(self, found: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        keys = [key for key, _ in found]
        entries = self._map_values(self._schema.current, keys, [entry for _, entry in found])
        return list(zip(keys, entries, strict=True))

    def _map_values(
        self, make: Callable[[bytes, Any], Any], keys: Sequence[Any], entries: Sequence[Any]
    ) -> Sequence[Any]:
        """Return the entries with each of their values replaced by make(key, value)."""
        present = [key for key, entry in zip(keys, entries, strict=True) if entry is not None]
        columns = self._kind.by_column([entry for entry in entries if entry is not None])
        tokens, values = columns[: self._kind.tokens], columns[self._kind.tokens :]
        made = [list(map(make, present, column)) for column in values]
        rows = iter(self._kind.of_rows(list(zip(*tokens, *made, strict=True))))
        return [None if entry is None else next(rows) for entry in entries]
