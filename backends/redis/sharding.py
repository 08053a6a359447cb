"""Which of a call's keys belong to which shard of a state, and how many go into a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from trident.backends.redis.layouts import chunks


@dataclass(frozen=True)
class ShardKeys:
    """Those of a call's keys that belong to one shard.

    Parameters
    ----------
    shard : int
        Which shard.
    indexes : sequence of int
        Where they stand in the call, in ascending order.
    chunks : sequence of tuples
        The keys, and what came with them, as commands take them.
    """

    shard: int
    indexes: Sequence[int]
    chunks: Sequence[tuple[Sequence[Any], ...]]


def split(shards: int, keys: Sequence[bytes], *parallel: Sequence[Any]) -> list[ShardKeys]:
    """Give each shard the keys that belong to it, and what came with them.

    A key belongs to shard ``crc32(key) % shards``, for ever.

    Examples
    --------
    >>> [(group.shard, group.indexes) for group in split(2, [b"cat", b"cow", b"dog"])]
    [(0, [0, 1]), (1, [2])]
    >>> split(2, [b"cat", b"cow"], [b"1", b"2"])[0].chunks
    [([b'cat', b'cow'], [b'1', b'2'])]
    """
    if not keys:
        return []
    if shards == 1:
        return [ShardKeys(0, range(len(keys)), list(chunks(keys, *parallel)))]
    found: dict[int, list[int]] = {}
    for index, key in enumerate(keys):
        found.setdefault(crc32(key) % shards, []).append(index)
    return [
        ShardKeys(shard, indexes, list(chunks(*_picked(indexes, keys, *parallel))))
        for shard, indexes in found.items()
    ]


def in_order(
    groups: Sequence[ShardKeys], found: Mapping[int, Sequence[Any]], keys: int
) -> list[Any]:
    """Return what was found for the keys of each shard in the order of the call.

    Examples
    --------
    >>> in_order(split(2, [b"cat", b"dog", b"cow"]), {0: [1, 2], 1: [3]}, 3)
    [1, 3, 2]
    """
    if len(groups) == 1:
        return list(found[groups[0].shard])
    result = [None] * keys
    for group in groups:
        for index, item in zip(group.indexes, found[group.shard], strict=True):
            result[index] = item
    return result


def _picked(indexes: Sequence[int], *parallel: Sequence[Any]) -> list[list[Any]]:
    return [[items[index] for index in indexes] for items in parallel]
