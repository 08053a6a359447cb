"""Transactional values: exact for sources whose replays are identical.

An entry holds its value and the batch that wrote it. A replay doesn't change an entry of its own
batch. Readers may see a batch before it commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.kinds.kind import Kind
from trident.states.serializers import (
    JSONSerializer,
    Serializer,
    dump_all,
    dump_json,
    need_tags,
)
from trident.states.values import StateType, Token, TransactionalValue, are_longs


class TransactionalKind(Kind):
    """Every entry keeps the batch that wrote it; that batch never changes it again."""

    type = StateType.TRANSACTIONAL
    columns = ("txid", "value")
    tokens = 1
    entry = TransactionalValue

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        last = cut.horizon.txid
        values: list[Any] = []
        for entry in entries:
            if entry is None:
                values.append(None)
                continue
            txid, value = entry
            if txid > last:
                raise BatchMovedOn(Token(txid, 0))
            values.append(value)
        return values

    def applied(
        self, keys: Sequence[bytes], entries: Sequence[Any], record: ControlRecord
    ) -> list[bytes]:
        txid = record.token.txid
        return [
            key
            for key, entry in zip(keys, entries, strict=True)
            if entry is not None and entry.txid == txid
        ]

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> list[Any]:
        txid = record.token.txid
        return [TransactionalValue(txid, value) for value in values]

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return entry is not None and entry.value is None and entry.txid <= record.committed

    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        txids, values = self.by_column(entries)
        rows = map(list, zip(txids, values, strict=True))
        if type(serializer) is not JSONSerializer:
            return dump_all(serializer, list(rows))
        if are_longs(values):
            return list(map(b"[%d,%d]".__mod__, zip(txids, values, strict=True)))
        return dump_json(rows, tags=need_tags(values))

    @staticmethod
    def of_loaded(value: Any) -> TransactionalValue:
        txid, curr = value
        if type(txid) is not int:
            raise ValueError("not [txid,value]")
        return TransactionalValue(txid, curr)


TRANSACTIONAL = TransactionalKind()
