"""Finds keys that a state can never hold, because their fields have other types than its keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any
from uuid import UUID

from trident.states.errors import KeyTypeError
from trident.states.keys import decode_key
from trident.states.map_state import Key
from trident.states.table.table import Table

_PAGES = 4
"""How many pages of a store are read. Each holds many keys, or none in a store that is shared."""


@dataclass(frozen=True)
class KeyTypes:
    """The types of the fields in some keys of a store, and one of these keys."""

    columns: tuple[frozenset[str], ...]
    example: Key

    @staticmethod
    def find(table: Table, single: Key) -> KeyTypes | None:
        """Read some keys other than the key of the `single` value; return None if there are none,
        or if they differ in their number of fields."""
        pages = chain.from_iterable(islice(table.pages(), _PAGES))
        keys = [key for data, _ in pages if (key := decode_key(data)) != tuple(single)]
        if len(set(map(len, keys))) != 1:
            return None
        columns = [frozenset(map(_type_of, column)) - {""} for column in zip(*keys, strict=True)]
        return KeyTypes(tuple(columns), keys[0])

    def check(self, place: str, asked: Iterable[Key]) -> None:
        """Raise KeyTypeError for the first key that can't be in the store."""
        for key in asked:
            if not self._fits(key):
                kinds = ", ".join(min(found, default="null") for found in self.columns)
                raise KeyTypeError(place, repr(tuple(key)), kinds, repr(self.example))

    def _fits(self, key: Key) -> bool:
        return len(key) == len(self.columns) and all(
            len(found) != 1 or _type_of(field) in {"", *found}
            for field, found in zip(key, self.columns, strict=True)
        )


def _type_of(field: Any) -> str:
    """Return the type by which a field is compared; nothing for null, which any type has."""
    if field is None:
        return ""
    if isinstance(field, UUID):
        return "str"
    if isinstance(field, datetime):
        return "datetime" if field.tzinfo is None else "datetime with a zone"
    return type(field).__name__
