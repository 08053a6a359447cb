"""Transactional values: exact for sources whose replays are identical.

An entry holds its value and the batch that wrote it: a replay finds its batch there and leaves the
entry alone. Readers may see a batch before it commits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.kinds.kind import Kind
from trident.states.serializers import (
    JSONSerializer,
    Serializer,
    dumped,
    dumped_json,
    loaded,
    need_tags,
)
from trident.states.values import StateType, Token, TransactionalValue, are_longs

_new_value = partial(tuple.__new__, TransactionalValue)


class TransactionalKind(Kind):
    """Every entry keeps the batch that wrote it; that batch never changes it again."""

    type = StateType.TRANSACTIONAL
    columns = ("txid", "value")
    tokens = 1

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

    def by_column(self, entries: Sequence[Any]) -> Sequence[Sequence[Any]]:
        return list(zip(*entries, strict=True)) or [()] * 2

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        entries = map(_new_value, rows)
        return [entry if entry[0] is not None else None for entry in entries]

    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        txids, values = self.by_column(entries)
        rows = map(list, zip(txids, values, strict=True))
        if type(serializer) is not JSONSerializer:
            return dumped(serializer, list(rows))
        if are_longs(values):
            return list(map(b"[%d,%d]".__mod__, zip(txids, values, strict=True)))
        return dumped_json(rows, tags=need_tags(values))

    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        return loaded(serializer, data, _of_row)


TRANSACTIONAL = TransactionalKind()


def _of_row(row: Any) -> TransactionalValue:
    txid, value = row
    if type(txid) is not int:
        raise ValueError("not [txid,value]")
    return TransactionalValue(txid, value)
