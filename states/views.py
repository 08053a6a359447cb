"""What a query is given instead of a map state: the state as of one committed batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from trident.states.cut import Cut
from trident.states.keys import decode_key, encode_keys
from trident.states.kinds.kind import Kind
from trident.states.map_state import (
    ITupleCollection,
    Key,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
)
from trident.states.state import ReadOnlyState
from trident.states.table.table import Table


class CommittedMap(ReadOnlyState, ReadOnlyMapState, ReadOnlySnapshottable, ITupleCollection):
    """A map state as of one committed batch; good only inside the query it was given to.

    Parameters
    ----------
    table : Table
        Where entries are read, past any cache.
    kind : Kind
        What they are.
    key : sequence
        Where the single value is kept.
    cut : Cut
        The moment.
    """

    def __init__(self, table: Table, kind: Kind, key: Key, cut: Cut) -> None:
        self._table = table
        self._kind = kind
        self._key = key
        self._cut = cut

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        encoded = encode_keys(keys)
        return self._kind.read(self._table.read(encoded), self._cut) if encoded else []

    def get(self) -> Any:
        [value] = self.multiGet([self._key])
        return value

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        for key, value in self.entries():
            if value is not None:
                yield *decode_key(key), value

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and their values, of a store that can list them."""
        found = self._table.entries()
        values = self._kind.read([entry for _, entry in found], self._cut)
        return [(key, value) for (key, _), value in zip(found, values, strict=True)]
