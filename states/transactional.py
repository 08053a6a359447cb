"""Maps that stay exact when a replayed batch holds the same tuples as before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError
from trident.states.resolution import Cut
from trident.states.rules import Rules
from trident.states.stored_map import StoredMap
from trident.states.values import StateType, Token, TransactionalValue


class TransactionalRules(Rules):
    """Every entry keeps the batch that wrote it; that batch never changes it again."""

    kind = StateType.TRANSACTIONAL

    def read(self, stored: Sequence[Any], record: ControlRecord) -> list[Any]:
        for entry in stored:
            if entry is not None and entry.txid > record.token.txid:
                raise StaleBatchError(record.token, Token(entry.txid, 0))
        return _values(stored)

    def applied(
        self, keys: Sequence[bytes], stored: Sequence[Any], record: ControlRecord
    ) -> list[bytes]:
        txid = record.token.txid
        return [
            key
            for key, entry in zip(keys, stored, strict=True)
            if entry is not None and entry.txid == txid
        ]

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> list[Any]:
        txid = record.token.txid
        return [TransactionalValue(txid, value) for value in values]

    def at_cut(self, stored: Sequence[Any], cut: Cut) -> list[Any]:
        return _values(stored)

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return entry is not None and entry.value is None and entry.txid <= record.committed


def _values(stored: Sequence[Any]) -> list[Any]:
    return [None if entry is None else entry.value for entry in stored]


class TransactionalMap(StoredMap):
    """A map state that is exact for sources whose replays are identical.

    An entry holds its value and the batch that wrote it: a replay finds its batch there and leaves
    the entry alone. Takes less room than an opaque map; readers may see a batch before it commits.

    Parameters
    ----------
    backing : IBackingMap
        The store.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.
    """

    rules = TransactionalRules()
