r"""The backing map over a Redis Cluster: a fixed number of shards.

The keys of a shard have one hash tag, ``{p17}``, so that one node has all of them, and a command or
a transaction may name many. Which shard a key belongs to depends on the key and on the number of
shards, and neither on Spark's partitions nor on the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from trident.backends.redis.connections import Command, Make
from trident.backends.redis.control import replace
from trident.backends.redis.sharded_map import ShardedMap, skip_repeated
from trident.states.asking import Reading, finish_read
from trident.states.errors import CorruptStateError
from trident.states.sharding import least_control, spread


class RedisClusterMap(ShardedMap):
    """The entries of one state on a cluster; see :class:`ShardedMap`.

    Each shard has a control record, because a shard can move to another node, and a node can fail
    over, by itself. The number of shards is stored with it: with another number keys would not be
    found.
    """

    def _read_control(self) -> Reading[bytes | None]:
        return least_control((yield from self._reading_records()), self.where)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        found = finish_read(self._reading_records())

        def put(shards: Sequence[int]) -> bool:
            changes = {shard: [self._change(shard, new, found[shard])] for shard in shards}
            return all(answer == [1] for answer in self._exchange(changes).values())

        return spread(found, new, expected, self.where, put)

    def parts(self, count: int) -> list[range]:
        """Return the shards, divided."""
        shards = len(self._layouts)
        return [range(first, shards, count) for first in range(min(count, shards))]

    def pages(self, part: range | None = None) -> Iterator[list[tuple[bytes, Any]]]:
        for shard in range(len(self._layouts)) if part is None else part:
            yield from self._read_pages(skip_repeated(self._scan(shard)))

    def _reading_records(self) -> Reading[list[bytes | None]]:
        found = yield from self._exchanging(
            {shard: [partial(_get, layout.control)] for shard, layout in enumerate(self._layouts)}
        )
        return [self._unmarked(found[shard][0]) for shard in range(len(self._layouts))]

    def _change(self, shard: int, new: bytes, record: bytes | None) -> Make:
        expected = None if record is None else self._stored(record)
        return partial(replace, self._layouts[shard].control, self._stored(new), expected)

    @property
    def _mark(self) -> bytes:
        return b"%d:" % len(self._layouts)

    def _stored(self, record: bytes) -> bytes:
        return self._mark + record

    def _unmarked(self, stored: bytes | None) -> bytes | None:
        if stored is None:
            return None
        if not stored.startswith(self._mark):
            found = stored.partition(b":")[0][:20].decode(errors="replace")
            raise CorruptStateError(
                f"a state of {self.where}",
                f"it was written in {found} shards, and opened for {len(self._layouts)}",
                f"Open it with partitions={found}, or begin anew under another prefix.",
            )
        return stored[len(self._mark) :]


def _get(control: bytes) -> Command:
    return "GET", control
