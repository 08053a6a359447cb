"""Which of a call's keys belong to which part of a state, and how many go into a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from trident.backends.redis.layouts import chunks


@dataclass(frozen=True)
class Share:
    """Those of a call's keys that belong to one part.

    Parameters
    ----------
    part : int
        Which part.
    indexes : sequence of int
        Where they stand in the call, in ascending order.
    chunks : sequence of tuples
        The keys, and what came with them, as commands take them.
    """

    part: int
    indexes: Sequence[int]
    chunks: Sequence[tuple[Sequence[Any], ...]]


def split(parts: int, keys: Sequence[bytes], *parallel: Sequence[Any]) -> list[Share]:
    """Give each part the keys that belong to it, and what came with them.

    A key belongs to part ``crc32(key) % parts``, for ever.

    Examples
    --------
    >>> [(share.part, share.indexes) for share in split(2, [b"cat", b"cow", b"dog"])]
    [(0, [0, 1]), (1, [2])]
    >>> split(2, [b"cat", b"cow"], [b"1", b"2"])[0].chunks
    [([b'cat', b'cow'], [b'1', b'2'])]
    """
    if not keys:
        return []
    if parts == 1:
        return [Share(0, range(len(keys)), list(chunks(keys, *parallel)))]
    found: dict[int, list[int]] = {}
    for index, key in enumerate(keys):
        found.setdefault(crc32(key) % parts, []).append(index)
    return [
        Share(part, indexes, list(chunks(*_picked(indexes, keys, *parallel))))
        for part, indexes in found.items()
    ]


def in_order(shares: Sequence[Share], found: Mapping[int, Sequence[Any]], keys: int) -> list[Any]:
    """Return what was found for the keys of each part in the order of the call.

    Examples
    --------
    >>> in_order(split(2, [b"cat", b"dog", b"cow"]), {0: [1, 2], 1: [3]}, 3)
    [1, 3, 2]
    """
    if len(shares) == 1:
        return list(found[shares[0].part])
    result = [None] * keys
    for share in shares:
        for index, item in zip(share.indexes, found[share.part], strict=True):
            result[index] = item
    return result


def _picked(indexes: Sequence[int], *parallel: Sequence[Any]) -> list[list[Any]]:
    return [[items[index] for index in indexes] for items in parallel]
