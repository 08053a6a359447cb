"""Opaque values: exact for every source, whatever a replay brings.

An entry holds its value, the committed value before it, and who wrote it. So a later attempt, with
other tuples or none for this key, starts again from what was committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.kinds.kind import Kind
from trident.states.serializers import Serializer
from trident.states.values import OpaqueEntries, OpaqueValue, StateType, Token

_new_value = partial(tuple.__new__, OpaqueValue)  # twice as fast as OpaqueValue(...)


class OpaqueKind(Kind):
    """Every entry keeps its token and the committed value before it.

    Examples
    --------
    >>> stored = [OpaqueValue(8, 0, 5, 4), OpaqueValue(9, 0, 5, 4), OpaqueValue(7, 0, 5, 4), None]
    >>> OPAQUE.read(stored, Cut(8, Token(9, 1), {7: 1}))
    [5, 4, 4, None]
    """

    type = StateType.OPAQUE
    columns = ("txid", "attempt", "curr", "prev")
    tokens = 2

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        if isinstance(entries, OpaqueEntries) and _are_committed(entries, cut):
            return list(entries.currs)
        committed, _, retried = cut
        return [
            None
            if entry is None
            else entry[2]  # written by attempt 0 of a committed batch, as nearly all are
            if not entry[1] and entry[0] <= committed and entry[0] not in retried
            else _resolved(entry, cut)
            for entry in entries
        ]

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> OpaqueEntries:
        txid, attempt = record.token
        count = len(values)
        return OpaqueEntries([txid] * count, [attempt] * count, values, befores)

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return (
            entry is not None
            and entry.curr is None
            and record.is_committed(entry.txid, entry.attempt)
        )

    def by_column(self, entries: Sequence[Any]) -> Sequence[Sequence[Any]]:
        if isinstance(entries, OpaqueEntries):
            return entries.txids, entries.attempts, entries.currs, entries.prevs
        return list(zip(*entries, strict=True)) or [()] * 4

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [entry if entry[0] is not None else None for entry in map(_new_value, rows)]

    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        txids, attempts, currs, prevs = self.by_column(entries)
        return serializer.dumps_opaque(txids, attempts, currs, prevs)

    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        return serializer.loads_opaque(data)


OPAQUE = OpaqueKind()


def _are_committed(entries: OpaqueEntries, cut: Cut) -> bool:
    """Return whether every entry was written by attempt 0 of a batch up to the cut, and counts."""
    return (
        not any(entries.attempts)
        and max(entries.txids, default=0) <= cut.committed
        and (not cut.retried or cut.retried.keys().isdisjoint(entries.txids))
    )


def _resolved(entry: OpaqueValue, cut: Cut) -> Any:
    """Return the value that an entry had at the cut."""
    txid, attempt, curr, prev = entry
    if txid <= cut.committed:
        return curr if attempt == cut.retried.get(txid, 0) else prev
    if (txid, attempt) <= cut.horizon:
        return prev
    raise BatchMovedOn(Token(txid, attempt))
