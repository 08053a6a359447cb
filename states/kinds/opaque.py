"""Opaque values: exact for every source, whatever a replay brings.

An entry holds its value, the committed value before it, and who wrote it. So a later attempt, with
other tuples or none for this key, starts again from what was committed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, overload

import orjson

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.kinds.kind import Kind
from trident.states.serializers import (
    TAGGED,
    JSONSerializer,
    Serializer,
    dumped,
    dumped_json,
    loaded,
    need_tags,
)
from trident.states.values import OpaqueValue, StateType, Token, are_longs

_new_value = partial(tuple.__new__, OpaqueValue)  # twice as fast as OpaqueValue(...)

_ABSENT = b"[0,null,null]"
_LONGEST_LONG = len(str(2**63 - 1))
_NUMBERS = b"0123456789+-.eEnul,[]\n"
"""The bytes of which numbers, nulls and arrays of them are made."""
_NESTED = frozenset({list, dict})
_OF_NUMBERS = re.compile(rb"\[[^]\[,\"{]+,[^]\[,\"{]+,[^]\[,\"{]+\]")


class OpaqueEntries(Sequence[OpaqueValue | None]):
    """Opaque values, or None for each key that is absent, kept as four columns of one length.

    What looks at all of them does so column by column; as a sequence it makes each value when it is
    asked for.

    The txid 0, which no batch has, is an absent key.
    """

    __slots__ = ("attempts", "currs", "prevs", "txids")

    def __init__(
        self,
        txids: Sequence[int],
        attempts: Sequence[int],
        currs: Sequence[Any],
        prevs: Sequence[Any],
    ) -> None:
        self.txids = txids
        self.attempts = attempts
        self.currs = currs
        self.prevs = prevs

    def __len__(self) -> int:
        return len(self.txids)

    def __iter__(self) -> Iterator[OpaqueValue | None]:
        columns = zip(self.txids, self.attempts, self.currs, self.prevs, strict=True)
        if 0 in self.txids:
            return (_new_value(row) if row[0] else None for row in columns)
        return map(_new_value, columns)

    @overload
    def __getitem__(self, position: int) -> OpaqueValue | None: ...
    @overload
    def __getitem__(self, position: slice) -> OpaqueEntries: ...
    def __getitem__(self, position: int | slice) -> OpaqueValue | OpaqueEntries | None:
        columns = self.txids, self.attempts, self.currs, self.prevs
        if isinstance(position, slice):
            return OpaqueEntries(*(column[position] for column in columns))
        txid, attempt, curr, prev = (column[position] for column in columns)
        return OpaqueValue(txid, attempt, curr, prev) if txid else None


class OpaqueKind(Kind):
    """Every entry keeps its token and the committed value before it."""

    type = StateType.OPAQUE
    columns = ("txid", "attempt", "curr", "prev")
    tokens = 2

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        if isinstance(entries, OpaqueEntries) and _are_committed(entries, cut):
            return list(entries.currs)
        committed, retried = cut.committed, cut.retried
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
        columns = self.by_column(entries)
        if type(serializer) is JSONSerializer:
            return _json(*columns)
        return dumped(serializer, list(_rows(*columns)))

    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        if type(serializer) is JSONSerializer:
            found = _number_columns(data) or _opaque_columns(data)
            if found is not None:
                return found
        return loaded(serializer, data, _of_row)


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


def _rows(
    txids: Sequence[int], attempts: Sequence[int], currs: Sequence[Any], prevs: Sequence[Any]
) -> Iterator[list[Any]]:
    """Return the lists that entries are stored as: Storm's, and where need be the attempt."""
    return (
        [txid, curr, prev, attempt] if attempt else [txid, curr, prev]
        for txid, attempt, curr, prev in zip(txids, attempts, currs, prevs, strict=True)
    )


def _of_row(row: Any) -> OpaqueValue:
    if type(row) is tuple:  # pickled by columns, as once
        txid, attempt, curr, prev = row
    elif len(row) == 3:
        (txid, curr, prev), attempt = row, 0
    else:
        txid, curr, prev, attempt = row
    if type(txid) is not int or type(attempt) is not int:
        raise ValueError("not [txid,curr,prev] or [txid,curr,prev,attempt]")
    return OpaqueValue(txid, attempt, curr, prev)


# Numbers are written without orjson, which takes and returns a page of memory for each value: for
# 100,000 of them in a process with little to spare, ten times as slow.
def _json(
    txids: Sequence[int], attempts: Sequence[int], currs: Sequence[Any], prevs: Sequence[Any]
) -> list[bytes]:
    """Return the JSON of entries, given by columns."""
    if any(attempts):
        tags = need_tags(currs) | need_tags(prevs)
        return dumped_json(_rows(txids, attempts, currs, prevs), tags=tags)
    if are_longs(currs) and are_longs(prevs):
        return list(map(b"[%d,%d,%d]".__mod__, zip(txids, currs, prevs, strict=True)))
    new, old = _longs_or_nulls(currs), _longs_or_nulls(prevs)
    if new is not None and old is not None:
        return list(map(b"[%d,%b,%b]".__mod__, zip(txids, new, old, strict=True)))
    tags = need_tags(currs) | need_tags(prevs)
    return dumped_json(map(list, zip(txids, currs, prevs, strict=True)), tags=tags)


def _longs_or_nulls(values: Sequence[Any]) -> list[bytes] | None:
    """Return the JSON of integers and nulls; None where there is anything else."""
    if not set(map(type, values)) <= {int, type(None)}:
        return None
    texts = [b"null" if value is None else b"%d" % value for value in values]
    return texts if max(map(len, texts), default=0) < _LONGEST_LONG else None


def _number_columns(data: Sequence[bytes | None]) -> OpaqueEntries | None:
    """Parse entries of numbers and nulls as one array, in half of the time; None for any others.

    Attempts are 0 here: an entry with another one has a fourth field.
    """
    first = next(filter(None, data), _ABSENT)
    if not _OF_NUMBERS.fullmatch(first):  # as most others then
        return None
    text = b"\n".join([_ABSENT if item is None else item for item in data])
    count = len(data)
    # Each of so many items begins with the one [ in it, ends with the one ], and has no strings.
    apart = text.count(b"]\n[") == text.count(b"\n") == count - 1
    whole = text[:1] == b"[" and text[-1:] == b"]" and apart
    if not whole or not text.count(b"[") == text.count(b"]") == count:
        return None
    if text.count(b",") != 2 * count or text.translate(None, _NUMBERS):
        return None
    try:
        # The bools are where items meet; all have three fields where each fourth one is a bool.
        fields = orjson.loads(text.replace(b"]\n[", b",true,"))
    except ValueError:
        return None
    if len(fields) != 4 * count - 1 or not set(map(type, fields[3::4])) <= {bool}:
        return None
    txids = fields[::4]
    if set(map(type, txids)) != {int}:
        return None
    return OpaqueEntries(txids, [0] * count, fields[1::4], fields[2::4])


def _opaque_columns(data: Sequence[bytes | None]) -> OpaqueEntries | None:
    """Look at all values by column, in a third of the time; None where any is no such value."""
    try:
        # Each by itself: joined by commas, b"[1,2" and b"3]" would pass for one.
        items = [_ABSENT if item is None else item for item in data]
        rows = list(map(orjson.loads, items))
    except ValueError:
        return None
    if not set(map(type, rows)) <= {list}:
        return None
    lengths = set(map(len, rows))
    if not lengths or not lengths <= {3, 4}:
        return None
    attempts = [0] * len(rows)
    if 4 in lengths:
        attempts = [row[3] if len(row) == 4 else 0 for row in rows]
    # Not zip(*rows), which would make an iterator for each of them.
    txids, currs, prevs = ([row[place] for row in rows] for place in range(3))
    if set(map(type, txids)) | set(map(type, attempts)) != {int}:
        return None
    # Only an object or an array can be, or hold, a value with a tag.
    if not _NESTED.isdisjoint(set(map(type, currs)) | set(map(type, prevs))) and (
        TAGGED[0] in set(map(itemgetter(0), items))
    ):
        return None
    return OpaqueEntries(txids, attempts, currs, prevs)
