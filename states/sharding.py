"""Which of a call's keys belong to which shard of a state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32


def shard_of(key: bytes, count: int) -> int:
    """Return which of so many shards, or partitions, an encoded key belongs to.

    Examples
    --------
    >>> shard_of(b"dog", 2), shard_of(b"cat", 2)
    (1, 0)
    """
    return crc32(key) % count


def shards_of(keys: Iterable[bytes], count: int) -> list[int]:
    """Return the shard of each key, as :func:`shard_of` does."""
    return [crc32(key) % count for key in keys]


@dataclass(frozen=True)
class Sharding:
    """The keys of one call, by the shards that they belong to.

    A key belongs to the shard that :func:`shard_of` tells, for ever. It depends on nothing else:
    while a server is away its keys are away too, and another one, which might have old values, is
    never asked for them.

    `positions` are, for each shard, where its keys stand in the call, in ascending order.

    Examples
    --------
    >>> sharding = Sharding.of([b"dog", b"cat", b"hen"], 2)
    >>> sharding.positions
    [[1], [0, 2]]
    >>> sharding.split(["a", "b", "c"])
    [['b'], ['a', 'c']]
    >>> sharding.join([[1], [0, 2]])
    [0, 1, 2]
    """

    positions: Sequence[Sequence[int]]
    total: int

    @staticmethod
    def of(keys: Sequence[bytes], shards: int) -> Sharding:
        """Find the shards of keys, which are given in the form whose checksum tells."""
        if shards == 1:
            return Sharding([range(len(keys))], len(keys))
        positions: list[list[int]] = [[] for _ in range(shards)]
        for position, shard in enumerate(shards_of(keys, shards)):
            positions[shard].append(position)
        return Sharding(positions, len(keys))

    def split(self, column: Sequence[Any]) -> list[Sequence[Any]]:
        """Return what of `column`, which has an item for each key, is for each shard."""
        if len(self.positions) == 1:
            return [column]
        return [[column[position] for position in own] for own in self.positions]

    def join(self, by_shard: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the items of all shards in the order of the keys."""
        if len(self.positions) == 1:
            return list(by_shard[0])
        column: list[Any] = [None] * self.total
        for positions, items in zip(self.positions, by_shard, strict=True):
            for position, item in zip(positions, items, strict=True):
                column[position] = item
        return column
