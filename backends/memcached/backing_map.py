"""The backing map over Memcached's nodes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from trident.backends.memcached.connections import (
    NodeAddress,
    NodeConnection,
    NodeRequest,
    exchange,
    exchanging,
    lend_each,
)
from trident.backends.memcached.errors import value_too_large
from trident.backends.memcached.keys import LONGEST, StoredKeys
from trident.backends.memcached.wire import (
    END,
    Found,
    cas_request,
    get_request,
    read_all_stored,
    read_entries,
    read_stats,
    read_stored,
    set_request,
)
from trident.states.asking import Reading, finish_read
from trident.states.backing_map import ReadingMap
from trident.states.errors import CorruptStateError
from trident.states.keys import CONTROL_KEY
from trident.states.sharding import Sharding, least_control, spread

_ABSENT = (None, None)
_LONGEST_RELATIVE = 30 * 24 * 3600  # Memcached takes more seconds for a date
_MARK = re.compile(rb"([0-9]{1,9})/([0-9]{1,9}) ")
_RESTORE = "Something else has written there; give the state another prefix."


class MemcachedMap(ReadingMap):
    """The entries of one state in Memcached, each with the version that Memcached gives it.

    Any thread of any process may use it; each call borrows connections of its process. Pickles
    without them. No write is ever repeated.

    A key's place depends on the number and the order of the nodes. A value over a node's limit is
    refused before anything is sent.
    """

    def __init__(self, nodes: Sequence[NodeAddress], prefix: str, ttl: int, timeout: float) -> None:
        self._nodes = tuple(nodes)
        self.prefix = prefix
        self._ttl = ttl
        self._timeout = timeout
        self._keys = StoredKeys(prefix)
        [self._control_key] = self._keys.of([CONTROL_KEY])
        self.where = f"memcached at {', '.join(map(str, self._nodes))}"
        shards = ", ".join(f"{node} (shard {shard})" for shard, node in enumerate(self._nodes))
        self._name = f"{prefix or 'the state'} in memcached at {shards}"

    def _read(self, keys: Sequence[bytes]) -> Reading[list[bytes | None]]:
        return [value for value, _ in (yield from self._reading_versioned(keys))]

    def multiGetVersioned(self, keys: Sequence[bytes]) -> list[tuple[Any, Any]]:
        return finish_read(self._reading_versioned(keys))

    def _reading_versioned(self, keys: Sequence[bytes]) -> Reading[list[tuple[Any, Any]]]:
        if not keys:
            return []
        names = self._keys.of(keys)
        sharding = Sharding.of(names, len(self._nodes))
        with lend_each(self._nodes) as connections:
            requests = [
                NodeRequest(connection, get_request(own), partial(read_entries, asked=len(own)))
                for connection, own in zip(connections, sharding.split(names), strict=True)
            ]
            answers = yield from exchanging(requests, self._timeout)
        entries: Found = {}
        for answer in answers:
            entries.update(answer)
        return [entries.get(name, _ABSENT) for name in names]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self._write(set_request, read_all_stored, keys, values)

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
    ) -> list[bool]:
        return self._write(cas_request, read_stored, keys, values, versions)

    def _write(
        self,
        request: Callable[..., bytes],
        read: Callable[..., list[bool]],
        keys: Sequence[bytes],
        *columns: Sequence[Any],
    ) -> list[bool]:
        if not keys:
            return []
        names = self._keys.of(keys)
        sharding = Sharding.of(names, len(self._nodes))
        ttl = self._ttl
        expires = ttl if ttl <= _LONGEST_RELATIVE else int(time.time()) + ttl
        with lend_each(self._nodes) as connections:
            by_node = zip(*map(sharding.split, (names, *columns)), strict=True)
            requests = []
            for connection, own in zip(connections, by_node, strict=True):
                _check_sizes(connection, *own[:2])
                answer = partial(read, count=len(own[0]))
                requests.append(NodeRequest(connection, request(*own, expires), answer))
            answers = exchange(requests, self._timeout)
        return sharding.join(answers)

    def _read_control(self) -> Reading[bytes | None]:
        with lend_each(self._nodes) as connections:
            found = yield from self._reading_controls(connections)
        return least_control([record for record, _ in found], self._name)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        with lend_each(self._nodes) as connections:
            records, versions = zip(*finish_read(self._reading_controls(connections)), strict=True)

            def put(shards: Sequence[int]) -> bool:
                requests = [
                    self._replace_request(connections[shard], new, shard, versions[shard])
                    for shard in shards
                ]
                return all(replaced for [replaced] in exchange(requests, self._timeout))

            return spread(records, new, expected, self._name, put)

    def _reading_controls(
        self, connections: Sequence[NodeConnection]
    ) -> Reading[list[tuple[bytes | None, bytes | None]]]:
        key = self._control_key
        read = partial(read_entries, asked=1)
        requests = [NodeRequest(connection, get_request([key]), read) for connection in connections]
        answers = yield from exchanging(requests, self._timeout)
        return [
            (_record(entry[0], node, shard, len(self._nodes)), entry[1]) if entry else _ABSENT
            for shard, (node, entry) in enumerate(
                zip(self._nodes, [answer.get(key) for answer in answers], strict=True)
            )
        ]

    def _replace_request(
        self, connection: NodeConnection, new: bytes, shard: int, version: bytes | None
    ) -> NodeRequest[list[bool]]:
        key, value = self._control_key, b"%d/%d %b" % (shard, len(self._nodes), new)
        _check_sizes(connection, [key], [value])
        # It never expires, even if the entries do.
        request = cas_request([key], [value], [version], 0)
        return NodeRequest(connection, request, partial(read_stored, count=1))

    def incarnation(self) -> str:
        """Return which process each node is, and since when."""
        # Both times come from one clock, which ticks in seconds: the difference never changes.
        return " ".join(
            f"{int(each[b'pid'])}@{int(each[b'time']) - int(each[b'uptime'])}"
            for each in self.statistics()
        )

    def statistics(self) -> Sequence[Mapping[bytes, bytes]]:
        """Return each node's answer to ``stats``."""
        with lend_each(self._nodes) as connections:
            requests = [NodeRequest(each, b"stats\r\n" + END, read_stats) for each in connections]
            return exchange(requests, self._timeout)


def _record(stored: bytes, node: NodeAddress, shard: int, shards: int) -> bytes:
    """Return the control record without the mark of the node that it was stored on."""
    mark = b"%d/%d " % (shard, shards)
    if stored.startswith(mark):
        return stored[len(mark) :]
    was = _MARK.match(stored)
    if was is None:
        raise CorruptStateError(f"the control record on {node.name}", repr(stored[:80]), _RESTORE)
    raise CorruptStateError(
        f"the control record on {node.name}",
        f"it was stored on node {int(was[1]) + 1} of {int(was[2])}, and now that is node "
        f"{shard + 1} of {shards}",
        "Give the nodes that the state was begun with, in the same order: keys don't move.",
    )


def _check_sizes(
    connection: NodeConnection, names: Sequence[bytes], values: Sequence[bytes]
) -> None:
    """Refuse a value that the node would refuse, and so remove what it has under that key."""
    limit = connection.item_limit
    if max(map(len, values), default=0) + LONGEST <= limit:
        return
    for name, value in zip(names, values, strict=True):
        if len(name) + len(value) > limit:
            raise value_too_large(connection.node.name, name, len(value), limit - len(name))
