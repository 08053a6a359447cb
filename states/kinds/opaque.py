"""Opaque values: exact for every source, whatever a replay brings.

An entry holds its value, the committed value before it, and the token of its writer. So a later
attempt, perhaps with other tuples or none for this key, starts from the committed value.
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
    dump_all,
    dump_json,
    need_tags,
)
from trident.states.values import OpaqueValue, StateType, Token, are_longs

_new_value = partial(tuple.__new__, OpaqueValue)  # twice as fast as OpaqueValue(...)

_ABSENT = b"[0,null,null]"
_LONGEST_LONG = len(str(2**63 - 1))
_NUMBERS = b"0123456789+-.eEnul,[]\n"
"""The bytes in numbers, nulls and arrays of them."""
_NESTED = frozenset({list, dict})
_OF_NUMBERS = re.compile(rb"\[[^]\[,\"{]+,[^]\[,\"{]+,[^]\[,\"{]+\]")


class OpaqueEntries(Sequence[OpaqueValue | None]):
    """A sequence of opaque values, or None for absent keys, kept as four columns of one length.

    Code that needs all values reads the columns. The sequence makes a value when it is read. An
    absent key has the txid 0, which no batch has.
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
    """Each entry keeps its writer's token and the committed value before it."""

    type = StateType.OPAQUE
    columns = ("txid", "attempt", "curr", "prev")
    tokens = 2
    entry = OpaqueValue

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        if isinstance(entries, OpaqueEntries) and _are_committed(entries, cut):
            return list(entries.currs)
        committed, retried = cut.committed, cut.retried
        return [
            None
            if entry is None
            else entry[2]  # nearly all entries are of attempt 0 of a committed batch
            if not entry[1] and entry[0] <= committed and entry[0] not in retried
            else _value_at(entry, cut)
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
        return super().by_column(entries)

    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        columns = self.by_column(entries)
        if type(serializer) is JSONSerializer:
            return _dump_columns(*columns)
        return dump_all(serializer, list(_rows(*columns)))

    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        if type(serializer) is JSONSerializer:
            found = _load_numbers(data) or _load_columns(data)
            if found is not None:
                return found
        return super().loads(data, serializer)

    @staticmethod
    def of_loaded(value: Any) -> OpaqueValue:
        if type(value) is tuple:  # earlier versions pickled columns
            txid, attempt, curr, prev = value
        elif len(value) == 3:
            (txid, curr, prev), attempt = value, 0
        else:
            txid, curr, prev, attempt = value
        if type(txid) is not int or type(attempt) is not int:
            raise ValueError("not [txid,curr,prev] or [txid,curr,prev,attempt]")
        return OpaqueValue(txid, attempt, curr, prev)


OPAQUE = OpaqueKind()


def _are_committed(entries: OpaqueEntries, cut: Cut) -> bool:
    """Return whether attempt 0 of a batch up to the cut wrote each entry, and is committed."""
    return (
        not any(entries.attempts)
        and max(entries.txids, default=0) <= cut.committed
        and (not cut.retried or cut.retried.keys().isdisjoint(entries.txids))
    )


def _value_at(entry: OpaqueValue, cut: Cut) -> Any:
    """Return the value of an entry at the cut."""
    txid, attempt, curr, prev = entry
    if txid <= cut.committed:
        return curr if attempt == cut.retried.get(txid, 0) else prev
    if (txid, attempt) <= cut.horizon:
        return prev
    raise BatchMovedOn(Token(txid, attempt))


def _rows(
    txids: Sequence[int], attempts: Sequence[int], currs: Sequence[Any], prevs: Sequence[Any]
) -> Iterator[list[Any]]:
    """Return the list that is stored for each entry: Storm's, with the attempt if it is not 0."""
    return (
        [txid, curr, prev, attempt] if attempt else [txid, curr, prev]
        for txid, attempt, curr, prev in zip(txids, attempts, currs, prevs, strict=True)
    )


# Numbers are written without orjson, which takes and returns a page of memory for each value. With
# 100,000 numbers in a process with little memory that is ten times slower.
def _dump_columns(
    txids: Sequence[int], attempts: Sequence[int], currs: Sequence[Any], prevs: Sequence[Any]
) -> list[bytes]:
    """Return the JSON of entries in columns."""
    if any(attempts):
        tags = need_tags(currs) | need_tags(prevs)
        return dump_json(_rows(txids, attempts, currs, prevs), tags=tags)
    if are_longs(currs) and are_longs(prevs):
        return list(map(b"[%d,%d,%d]".__mod__, zip(txids, currs, prevs, strict=True)))
    new, old = _longs_or_nulls(currs), _longs_or_nulls(prevs)
    if new is not None and old is not None:
        return list(map(b"[%d,%b,%b]".__mod__, zip(txids, new, old, strict=True)))
    tags = need_tags(currs) | need_tags(prevs)
    return dump_json(map(list, zip(txids, currs, prevs, strict=True)), tags=tags)


def _longs_or_nulls(values: Sequence[Any]) -> list[bytes] | None:
    """Return the JSON of integers and nulls; None if there is any other value."""
    if not set(map(type, values)) <= {int, type(None)}:
        return None
    texts = [b"null" if value is None else b"%d" % value for value in values]
    return texts if max(map(len, texts), default=0) < _LONGEST_LONG else None


def _load_numbers(data: Sequence[bytes | None]) -> OpaqueEntries | None:
    """Parse entries of numbers and nulls as one array, in half of the time; None for any others.

    All attempts are 0: an entry of another attempt has a fourth field.
    """
    first = next(filter(None, data), _ABSENT)
    if not _OF_NUMBERS.fullmatch(first):  # the others are mostly like the first
        return None
    text = b"\n".join([_ABSENT if item is None else item for item in data])
    count = len(data)
    # Each item has one [, its first byte, one ], its last byte, and no string.
    apart = text.count(b"]\n[") == text.count(b"\n") == count - 1
    whole = text[:1] == b"[" and text[-1:] == b"]" and apart
    if not whole or not text.count(b"[") == text.count(b"]") == count:
        return None
    if text.count(b",") != 2 * count or text.translate(None, _NUMBERS):
        return None
    try:
        # A bool stands between two items. If each fourth field is a bool, all items have three.
        fields = orjson.loads(text.replace(b"]\n[", b",true,"))
    except ValueError:
        return None
    if len(fields) != 4 * count - 1 or not set(map(type, fields[3::4])) <= {bool}:
        return None
    txids = fields[::4]
    if set(map(type, txids)) != {int}:
        return None
    return OpaqueEntries(txids, [0] * count, fields[1::4], fields[2::4])


def _load_columns(data: Sequence[bytes | None]) -> OpaqueEntries | None:
    """Check all values by column, in a third of the time; None if any is no opaque value."""
    try:
        # Each item alone: joined by commas, b"[1,2" and b"3]" would pass for one.
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
    # Only objects and arrays can hold a value with a tag.
    if not _NESTED.isdisjoint(set(map(type, currs)) | set(map(type, prevs))) and (
        TAGGED[0] in set(map(itemgetter(0), items))
    ):
        return None
    return OpaqueEntries(txids, attempts, currs, prevs)
