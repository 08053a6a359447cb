"""Keys of groups and partitions: they compare in encoded form, as stores compare them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any
from zlib import crc32

from trident.fields import Fields
from trident.local.batch import Partitions, Rows
from trident.local.selection import picker
from trident.rows import Row
from trident.states.keys import decode_key, encode_key

# Values of these types are equal in Python exactly where their encoded forms are.
_SAFE = frozenset({str, int, type(None)})

Grouped = tuple[Sequence[Hashable], Callable[[Any], Row]]


def grouper(fields: Fields, group: Fields) -> Callable[[Rows], Grouped]:
    """A callable from tuples to the hashable key of each, and a way back to the key's fields.

    ``1``, ``True`` and ``1.0`` are three keys, ``0.0`` and ``-0.0`` are one. Encoding every key
    would cost more than most aggregates, so that it is left out where the types allow.

    Examples
    --------
    >>> keys, fields_of = grouper(Fields("n"), Fields("n"))([(1,), (True,), (1,)])
    >>> keys[0] == keys[2], keys[0] == keys[1], fields_of(keys[1])
    (True, False, (True,))
    """
    if len(group) == 1:
        index = fields.index(group.names[0])

        def one_field(rows: Rows) -> Grouped:
            keys = list(map(itemgetter(index), rows))
            if set(map(type, keys)) <= _SAFE:
                return keys, lambda key: (key,)
            return [encode_key((key,)) for key in keys], decode_key

        return one_field

    pick = picker(fields, group)

    def several_fields(rows: Rows) -> Grouped:
        keys = list(map(pick, rows))
        if all(set(map(type, values)) <= _SAFE for values in zip(*keys, strict=True)):
            return keys, tuple
        return list(map(encode_key, keys)), decode_key

    return several_fields


def bucket(key: Sequence[Any], count: int) -> int:
    """The partition of a key, the same on every engine.

    Examples
    --------
    >>> bucket(("dog",), 4) == crc32(b"dog") % 4
    True
    """
    return crc32(encode_key(key)) % count


def partition_by(fields: Fields, by: Fields, count: int) -> Callable[[Partitions], Partitions]:
    """A callable that moves every tuple to the partition of its key."""
    pick = picker(fields, by)

    def move(partitions: Partitions) -> Partitions:
        moved: Partitions = [[] for _ in range(count)]
        for rows in partitions:
            for row in rows:
                moved[bucket(pick(row), count)].append(row)
        return moved

    return move
