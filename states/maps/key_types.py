"""Whether a key could be one of a state's, by the types of keys that are there."""

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
"""How many pages of a store are looked at; each holds many keys, or none in a crowded store."""


@dataclass(frozen=True)
class KeyTypes:
    """What each field of the keys in a store is compared as, as far as a look has found."""

    columns: tuple[frozenset[str], ...]
    example: Key

    @staticmethod
    def found(table: Table, single: Key) -> KeyTypes | None:
        """Look at some keys but the `single` one; None where there is none, or they don't agree."""
        pages = chain.from_iterable(islice(table.pages(), _PAGES))
        keys = [key for data, _ in pages if (key := decode_key(data)) != tuple(single)]
        if len(set(map(len, keys))) != 1:
            return None
        columns = [frozenset(map(_sort, column)) - {""} for column in zip(*keys, strict=True)]
        return KeyTypes(tuple(columns), keys[0])

    def check(self, place: str, asked: Iterable[Key]) -> None:
        """Raise KeyTypeError for the first key that can't equal any of these."""
        for key in asked:
            if not self._fits(key):
                kinds = ", ".join(min(found, default="null") for found in self.columns)
                raise KeyTypeError(place, repr(tuple(key)), kinds, repr(self.example))

    def _fits(self, key: Key) -> bool:
        return len(key) == len(self.columns) and all(
            len(found) != 1 or _sort(field) in {"", *found}
            for field, found in zip(key, self.columns, strict=True)
        )


def _sort(field: Any) -> str:
    """What a field is compared as; nothing for null, which is among all types."""
    if field is None:
        return ""
    if isinstance(field, UUID):
        return "str"
    if isinstance(field, datetime):
        return "datetime" if field.tzinfo is None else "datetime with a zone"
    return type(field).__name__
