"""What a state on one server and a state on a cluster have in common: entries in shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any

from trident.backends.redis.connections import (
    Address,
    Command,
    ConnectionOptions,
    Make,
    Wire,
    connected,
    exchange,
    exchanging,
)
from trident.backends.redis.control import (
    INFO,
    Waiting,
    check_replicas,
    incarnation,
    parse_info,
    touch_and_wait,
)
from trident.backends.redis.errors import wrong_type
from trident.backends.redis.fence import FencedWrite, write_fenced
from trident.backends.redis.layouts import Layout, chunks
from trident.backends.redis.masters import Masters
from trident.states.asking import Reading, finish_read
from trident.states.backing_map import ReadingMap
from trident.states.errors import CorruptStateError, StateUnavailableError
from trident.states.sharding import Sharding

_Chunks = Sequence[tuple[Sequence[Any], ...]]
"""Some of a shard's keys, and what came with them, as commands take them."""

_COMMANDS = 4
"""Commands in one transaction, during which the server answers nobody else."""
_FEW = 100
"""A call with so few keys counts them as it reads, which saves a second exchange."""


class ShardedMap(ReadingMap):
    """Entries in shards. Each shard is on one server, with a control record of its own.

    Any thread of any process may use it. It holds no connection between calls: they are pooled by
    process. Pickles.

    A key of another type, as a list, is only replaced by a put of strings that were not read
    before; states read each key before they write it.
    """

    def __init__(
        self,
        masters: Masters,
        options: ConnectionOptions,
        prefix: str,
        layouts: Sequence[Layout],
        waiting: Waiting,
    ) -> None:
        self.where = masters.where
        self.prefix = prefix
        self._masters = masters
        self._options = options
        self._layouts = layouts
        self._waiting = waiting
        self._known_nodes: Sequence[Address] | None = None

    def _read(self, keys: Sequence[bytes]) -> Reading[list[Any]]:
        sharding = Sharding.of(keys, len(self._layouts))
        chunked = self._split(sharding, keys)
        hides = self._layouts[0].hides
        gets = self._commands("get", chunked)
        counts = self._commands("count", chunked) if hides and len(keys) <= _FEW else {}
        # Counts come first. If an entry expires between the two, the sums differ, and types are
        # checked. In the other order its absence could hide a key of another type.
        answers = yield from self._exchanging(
            {shard: [*counts.get(shard, ()), *commands] for shard, commands in gets.items()}
        )
        found: list[list[Any]] = [[] for _ in self._layouts]
        present = 0
        for shard, answered in answers.items():
            reads = len(chunked[shard])
            found[shard].extend(chain.from_iterable(answered[-reads:]))
            present += sum(answered[:-reads])
        values = sharding.join(found)
        certain = not hides or (counts and present <= len(values) - values.count(None))
        if not certain and None in values:
            entries = zip(keys, values, strict=True)
            self._check_absent([key for key, value in entries if value is None])
        return values

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        self._exchange(self._commands("put", self._split_by_shard(keys, values)))

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        return self._write(self._commands("put", self._split_by_shard(keys, values)), fence)

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        return self._write(self._commands("remove", self._split_by_shard(keys)), fence)

    def flush(self) -> None:
        """Wait for the replicas, if `waiting` has any."""
        if not self._waiting.replicas:
            return
        first = {address: shard for shard, address in reversed(list(enumerate(self._nodes())))}
        with self._connected(first) as wires:
            commands = [
                touch_and_wait(self._layouts[shard].control, self._waiting)
                for shard in first.values()
            ]
            for wire, (_, reached) in zip(wires, exchange(wires, commands), strict=True):
                check_replicas(wire, reached, self._waiting)

    def incarnation(self) -> str:
        """Return which runs of which servers hold the state, looked up anew.

        Raises StateUnavailableError if one is a replica.
        """
        self._known_nodes = None
        nodes = sorted(set(self._nodes()))
        with self._connected(nodes) as wires:
            answers = exchange(wires, [INFO] * len(wires))
            runs = [incarnation(wire, found) for wire, found in zip(wires, answers, strict=True)]
        return "; ".join(runs)

    def facts(self) -> Mapping[Address, Mapping[str, str]]:
        """Return each server's answer to INFO, and its ``appendfsync`` if it shows that."""
        nodes = sorted(set(self._nodes()))
        with self._connected(nodes) as wires:
            found = {wire.address: parse_info(wire.ask(("INFO",))) for wire in wires}
        for node in nodes:
            # A connection of its own, because one that was refused can't be used again.
            with suppress(StateUnavailableError), self._connected([node]) as [wire]:
                [[_, value]] = wire.ask(("CONFIG", "GET", "appendfsync"))
                found[node] |= {"appendfsync": value.decode()}
        return found

    def _scan(self, shard: int) -> Iterator[list[bytes]]:
        """Yield the keys of a shard in pages, as Redis lists them: a key may come twice."""
        layout, cursor = self._layouts[shard], b"0"
        while True:
            scan = partial(layout.scan, cursor)
            [[cursor, page]] = self._exchange({shard: [scan]})[shard]
            yield layout.keys_on(page)
            if cursor == b"0":
                return

    def _read_pages(self, pages: Iterable[Sequence[bytes]]) -> Iterator[list[tuple[bytes, Any]]]:
        """Yield the keys of pages with their entries, without those that were removed since."""
        for keys in pages:
            entries = zip(keys, self.multiGet(keys), strict=True)
            yield [(key, value) for key, value in entries if value is not None]

    def _nodes(self) -> Sequence[Address]:
        """Return the address of each shard's server, as this map knows it."""
        nodes = self._known_nodes
        if nodes is None:
            tags = [b"p%d" % shard for shard in range(len(self._layouts))]
            nodes = self._known_nodes = self._masters.find(tags)
        return nodes

    def _stored(self, record: bytes) -> bytes:
        """Return the bytes that keep a control record."""
        return record

    def _split_by_shard(self, keys: Sequence[bytes], *columns: Sequence[Any]) -> dict[int, _Chunks]:
        return self._split(Sharding.of(keys, len(self._layouts)), keys, *columns)

    def _split(self, sharding: Sharding, *columns: Sequence[Any]) -> dict[int, _Chunks]:
        """Return the chunks of each shard that has keys."""
        by_shard = zip(*map(sharding.split, columns), strict=True)
        return {shard: list(chunks(*own)) for shard, own in enumerate(by_shard) if len(own[0])}

    def _commands(self, name: str, chunked: Mapping[int, _Chunks]) -> dict[int, list[Make]]:
        """Return what makes the command of this name, of each shard's layout, for each chunk."""
        return {
            shard: [partial(getattr(self._layouts[shard], name), *chunk) for chunk in own]
            for shard, own in chunked.items()
        }

    def _check_absent(self, keys: Sequence[bytes]) -> None:
        """Raise CorruptStateError if one of `keys`, read as absent, exists with another type."""
        chunked = self._split_by_shard(keys)
        counts = self._exchange(self._commands("count", chunked))
        existing = {
            shard: [
                key
                for (chunk,), count in zip(own, counts[shard], strict=True)
                if count
                for key in chunk
            ]
            for shard, own in chunked.items()
        }
        if any(existing.values()):
            self._check_types(existing)

    def _check_types(self, keys: Mapping[int, Sequence[bytes]]) -> None:
        """Raise CorruptStateError if a redis key of `keys`, by shard, or a control record has
        another type."""
        types = {shard: self._layouts[shard].types(own) for shard, own in keys.items()}
        answers = self._exchange(
            {shard: [partial(_type, key) for key in own] for shard, own in types.items()}
        )
        for shard, own in types.items():
            for (key, expected), found in zip(own.items(), answers[shard], strict=True):
                if found not in (expected, b"none"):
                    raise wrong_type(self.where, key, found.decode(), expected.decode())

    def _exchange(self, commands: Mapping[int, Sequence[Make]]) -> dict[int, list[Any]]:
        """Send each shard its commands, all servers at once, and return the answers by shard."""
        return finish_read(self._exchanging(commands))

    def _exchanging(self, commands: Mapping[int, Sequence[Make]]) -> Reading[dict[int, list[Any]]]:
        by_node = self._by_node(commands)
        with self._connected(by_node) as wires:
            answers = yield from exchanging(
                wires,
                [
                    (make() for shard in shards for make in commands[shard])
                    for shards in by_node.values()
                ],
            )
        result = {}
        for shards, answered in zip(by_node.values(), answers, strict=True):
            rest = iter(answered)
            for shard in shards:
                result[shard] = [next(rest) for _ in commands[shard]]
        return result

    def _write(self, commands: Mapping[int, Sequence[Make]], fence: bytes) -> bool:
        """Send each shard its commands if all their records are `fence`; return whether so."""
        if not commands:
            return self.getControl() == fence
        by_node = self._by_node(commands)
        with self._connected(by_node) as wires:
            writes = [
                [write for shard in shards for write in self._transactions(shard, commands[shard])]
                for shards in by_node.values()
            ]
            written = write_fenced(wires, writes, self._stored(fence))
        if not written:
            self._check_nodes()
        return written

    def _transactions(self, shard: int, commands: Sequence[Make]) -> Iterator[FencedWrite]:
        for start in range(0, len(commands), _COMMANDS):
            yield FencedWrite(self._layouts[shard].control, commands[start : start + _COMMANDS])

    def _check_nodes(self) -> None:
        """Raise StateUnavailableError if a new server refused the fence: it may not know that the
        batch has begun."""
        asked, self._known_nodes = self._nodes(), None
        if self._nodes() != asked:
            raise StateUnavailableError(
                self.where, "another server has taken over", "The batch is retried there."
            )

    def _by_node(self, shards: Iterable[int]) -> dict[Address, list[int]]:
        nodes = self._nodes()
        found: dict[Address, list[int]] = {}
        for shard in shards:
            found.setdefault(nodes[shard], []).append(shard)
        return found

    @contextmanager
    def _connected(self, addresses: Iterable[Address]) -> Iterator[list[Wire]]:
        """Lend a connection to each server; after an error their addresses are looked up anew."""
        try:
            with ExitStack() as lent:
                yield [
                    lent.enter_context(connected(address, self._options)) for address in addresses
                ]
        except StateUnavailableError as error:
            self._known_nodes = None
            raise self._masters.explain(error) from error.__cause__
        except CorruptStateError:  # some key has another type: find out which one
            self._check_types(dict.fromkeys(range(len(self._layouts)), ()))
            raise


def skip_repeated(pages: Iterable[Sequence[bytes]]) -> Iterator[list[bytes]]:
    """Yield the keys of pages, each key once."""
    seen: set[bytes] = set()
    for page in pages:
        keys = [key for key in dict.fromkeys(page) if key not in seen]
        seen.update(keys)
        yield keys


def _type(key: bytes) -> Command:
    return "TYPE", key
