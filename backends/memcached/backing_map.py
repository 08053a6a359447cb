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
    lent,
    too_large,
)
from trident.backends.memcached.keys import LONGEST, StoredKeys
from trident.backends.memcached.wire import (
    END,
    Found,
    all_stored,
    compares_and_sets,
    found,
    gets,
    sets,
    stats,
    stored,
)
from trident.states.asking import Reading, finished
from trident.states.backing_map import ReadingMap
from trident.states.errors import CorruptStateError
from trident.states.keys import CONTROL_KEY
from trident.states.sharding import Sharding, least_control, may_spread

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

    def __reduce__(self) -> tuple[Any, ...]:
        return MemcachedMap, (self._nodes, self.prefix, self._ttl, self._timeout)

    def _read(self, keys: Sequence[bytes]) -> Reading[list[bytes | None]]:
        return [value for value, _ in (yield from self._reading_versioned(keys))]

    def multiGetVersioned(self, keys: Sequence[bytes]) -> list[tuple[Any, Any]]:
        return finished(self._reading_versioned(keys))

    def _reading_versioned(self, keys: Sequence[bytes]) -> Reading[list[tuple[Any, Any]]]:
        if not keys:
            return []
        names = self._keys.of(keys)
        sharding = Sharding.of(names, len(self._nodes))
        with lent(self._nodes) as connections:
            calls = [
                NodeRequest(connection, gets(own), partial(found, asked=len(own)))
                for connection, own in zip(connections, sharding.split(names), strict=True)
            ]
            answers = yield from exchanging(calls, self._timeout)
        entries: Found = {}
        for answer in answers:
            entries.update(answer)
        return [entries.get(name, _ABSENT) for name in names]

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self._write(sets, all_stored, keys, values)

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[bytes | None]
    ) -> list[bool]:
        return self._write(compares_and_sets, stored, keys, values, versions)

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
        expires = _expires(self._ttl)
        with lent(self._nodes) as connections:
            by_node = zip(*map(sharding.split, (names, *columns)), strict=True)
            calls = []
            for connection, own in zip(connections, by_node, strict=True):
                _check_sizes(connection, *own[:2])
                answer = partial(read, count=len(own[0]))
                calls.append(NodeRequest(connection, request(*own, expires), answer))
            answers = exchange(calls, self._timeout)
        return sharding.join(answers)

    def _read_control(self) -> Reading[bytes | None]:
        with lent(self._nodes) as connections:
            found = yield from self._reading_controls(connections)
        return least_control([record for record, _ in found], self._name)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        with lent(self._nodes) as connections:
            found = finished(self._reading_controls(connections))
            if not may_spread([record for record, _ in found], new, expected, self._name):
                return False
            calls = [
                self._replacing(connection, new, shard, version)
                for shard, (connection, (record, version)) in enumerate(
                    zip(connections, found, strict=True)
                )
                if record != new
            ]
            # The first shard says that the state exists; so it comes last.
            last = [call for call in calls if call.connection is connections[0]]
            others = [call for call in calls if call.connection is not connections[0]]
            return all(
                answer for group in (others, last) for [answer] in exchange(group, self._timeout)
            )

    def _reading_controls(
        self, connections: Sequence[NodeConnection]
    ) -> Reading[list[tuple[bytes | None, bytes | None]]]:
        key = self._control_key
        calls = [NodeRequest(each, gets([key]), partial(found, asked=1)) for each in connections]
        answers = yield from exchanging(calls, self._timeout)
        return [
            (_record(entry[0], node, shard, len(self._nodes)), entry[1]) if entry else _ABSENT
            for shard, (node, entry) in enumerate(
                zip(self._nodes, [answer.get(key) for answer in answers], strict=True)
            )
        ]

    def _replacing(
        self, connection: NodeConnection, new: bytes, shard: int, version: bytes | None
    ) -> NodeRequest[list[bool]]:
        key, value = self._control_key, b"%d/%d %b" % (shard, len(self._nodes), new)
        _check_sizes(connection, [key], [value])
        # It never expires, whatever the entries do.
        request = compares_and_sets([key], [value], [version], 0)
        return NodeRequest(connection, request, partial(stored, count=1))

    def incarnation(self) -> str:
        """Return which process each node is, and since when."""
        return " ".join(map(_incarnation, self.statistics()))

    def statistics(self) -> Sequence[Mapping[bytes, bytes]]:
        """Return what each node says of itself."""
        with lent(self._nodes) as connections:
            calls = [NodeRequest(each, b"stats\r\n" + END, stats) for each in connections]
            return exchange(calls, self._timeout)


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


def _incarnation(said: Mapping[bytes, bytes]) -> str:
    # Both numbers come from one clock, which ticks in seconds: the difference never changes.
    started = int(said[b"time"]) - int(said[b"uptime"])
    return f"{int(said[b'pid'])}@{started}"


def _check_sizes(
    connection: NodeConnection, names: Sequence[bytes], values: Sequence[bytes]
) -> None:
    """Refuse what the node would refuse, which would remove what it has under that key."""
    limit = connection.item_limit
    if max(map(len, values), default=0) + LONGEST <= limit:
        return
    for name, value in zip(names, values, strict=True):
        if len(name) + len(value) > limit:
            raise too_large(connection.node.name, name, len(value), limit - len(name))


def _expires(ttl: int) -> int:
    return ttl if ttl <= _LONGEST_RELATIVE else int(time.time()) + ttl
