"""Keeps keys under names that a function gives them, as a KeyFactory of Storm's does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from trident.states.asking import Wait
from trident.states.backing_map import IBackingMap
from trident.states.errors import StateError
from trident.states.keys import decode_key
from trident.states.table.table import Layer, LayeredMap, Table

KeyFactory = Callable[[Sequence[Any]], str]
"""Makes the name of a key from its fields, as Storm's ``KeyFactory.build`` does."""


class NamedTable(Layer):
    """Replaces encoded keys by the names that a key factory gives them."""

    def __init__(self, below: Table, key_factory: KeyFactory) -> None:
        super().__init__(below)
        self.lists = self.has_pages = False
        self._key_factory = key_factory

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        return self._below.ask(self._names(keys))

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        names = self._names(keys)
        refused = set(self._below.write(names, entries))
        return [key for key, name in zip(keys, names, strict=True) if name in refused]

    def remove(self, keys: Sequence[Any]) -> None:
        self._below.remove(self._names(keys))

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._below.add(self._names(keys), amounts)

    def entries(self) -> NoReturn:
        raise StateError(
            f"the state in {self.where or 'this store'} can't be listed: its keys are under the "
            "names that key_factory= gives them, which tell no keys. Ask for keys by multiGet."
        )

    def pages(self, part: Any = None) -> NoReturn:
        self.entries()

    def _names(self, keys: Sequence[bytes]) -> list[bytes]:
        made: dict[bytes, bytes] = {}
        names = []
        for key in keys:
            fields = decode_key(key)
            name: Any = self._key_factory(fields)
            if not isinstance(name, str) or not name or name.startswith("\0"):
                raise StateError(
                    f"key_factory returned {name!r:.80} for the key {fields!r:.80}; a name is text "
                    "that is not empty and doesn't begin with U+0000"
                )
            encoded = name.encode()
            if made.setdefault(encoded, key) != key:
                raise StateError(
                    f"key_factory gives the keys {decode_key(made[encoded])!r:.80} and "
                    f"{fields!r:.80} one name, {name!r:.80}; give each a name of its own"
                )
            names.append(encoded)
        return names


class NamedKeysMap(LayeredMap):
    """A map whose store keeps each key under the name that a key factory gives it.

    `key_factory` gives each key a name of its own. It must pickle if executors update the state.
    Such a state can't list its entries, as names tell no keys.
    """

    def __init__(self, inner: IBackingMap | LayeredMap, key_factory: KeyFactory) -> None:
        super().__init__(inner)
        self._key_factory = key_factory

    def over(self, below: Table) -> NamedTable:
        return NamedTable(below, self._key_factory)
