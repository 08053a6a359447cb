"""Keys of groups, partitions and states: they are compared encoded, as in stores."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import attrgetter
from types import NoneType
from typing import Any
from uuid import UUID

from trident.operations.emitted import Row
from trident.states.keys import encode_key, encode_keys, one_of_equals
from trident.states.sharding import shards_of
from trident.tuples.block import Block, columns_of

# Values of these types are equal in Python exactly where their encoded forms are.
_SAFE = frozenset({str, int, NoneType, date})
# And of these where a column has no other type.
_ALONE = frozenset({float, bool, bytes, Decimal, UUID})
_ZONE = attrgetter("tzinfo")
_ENCODED = frozenset({"string", "int64", "int32", "double", "bool", "binary", "date32[day]"})
"""The types for which Arrow finds distinct values; it can't for arrays and structs."""


class GroupKey(bytes):
    """An encoded key with the fields that it was made of; keys with one encoding are equal."""

    fields: Row


def _group_key(fields: Row) -> GroupKey:
    key = GroupKey(encode_key(fields))
    key.fields = fields
    return key


def group_keys(block: Block, group: Sequence[str]) -> Sequence[Hashable]:
    """The group of each tuple: the value of one field, the tuple of several, or the encoded key.

    ``1``, ``True`` and ``1.0`` are three keys, ``0.0`` and ``-0.0`` are one. Encoding every key
    would cost more than most aggregates, so that it is left out where the types allow.

    Examples
    --------
    >>> group_keys(Block({"n": [1, True]}, 2), ["n"])
    [1, b'\\x00[true]']
    """
    if len(group) == 1:
        values = block.values(group[0])
        kinds = set(map(type, values))
        if kinds <= _SAFE:
            return values
        if _are_told_apart(kinds, values):
            made: dict[Any, Hashable] = {
                value: _group_key((value,)) for value in dict.fromkeys(values)
            }
            made[None] = None  # as in a block of nulls alone
            return list(map(made.__getitem__, values))
        return [value if type(value) in _SAFE else _group_key((value,)) for value in values]
    keys = list(block.tuples(group))
    if all(set(map(type, block.values(name))) <= _SAFE for name in group):
        return keys
    return [key if set(map(type, key)) <= _SAFE else _group_key(key) for key in keys]


def _are_told_apart(kinds: Set[type], values: Sequence[Any]) -> bool:
    """Whether equal values of a column are one key, which then is encoded only once."""
    [*some] = kinds - {NoneType}
    if some == [datetime]:  # in another zone an hour may come twice
        return {None, UTC}.issuperset(map(_ZONE, filter(None, values)))
    return len(some) == 1 and some[0] in _ALONE


def key_fields(key: Hashable) -> Row:
    """The fields of a group, from its key as `group_keys` makes it."""
    if type(key) is GroupKey:
        return tuple(map(one_of_equals, key.fields))
    return key if type(key) is tuple else (key,)


def key_columns(group: Sequence[str], keys: Sequence[Hashable]) -> dict[str, Sequence[Any]]:
    """The fields of several groups as columns."""
    if not group:
        return {}
    if len(group) == 1 and GroupKey not in set(map(type, keys)):
        return {group[0]: keys}
    return columns_of(group, list(map(key_fields, keys)))


def shards_of_tuples(block: Block, group: Sequence[str], count: int) -> Sequence[int]:
    """The shard of every tuple's key; of a long column each distinct key is hashed once."""
    column = block.to_arrow(group[0]) if len(group) == 1 else None
    if column is None or not block.length or str(column.type) not in _ENCODED:
        return shards_of(encoded_keys(block, group), count)
    codes = column.dictionary_encode(null_encoding="encode")
    distinct = Block({}, len(codes.dictionary), {group[0]: codes.dictionary})
    shards = shards_of(encoded_keys(distinct, group), count)
    return list(map(shards.__getitem__, codes.indices.to_pylist()))


def encoded_keys(block: Block, group: Sequence[str]) -> list[bytes]:
    """The encoded key of every tuple; a column of plain strings as a whole."""
    if len(group) == 1:
        encoded = block.utf8(group[0])
        # A string that begins with U+0000 is encoded otherwise; there is hardly ever one.
        if encoded is not None and b"\0" not in b"".join(encoded):
            return encoded
    return encode_keys(block.tuples(group))
