"""What a state on one server and a state on a cluster have in common: entries in shards."""

from __future__ import annotations

from abc import abstractmethod
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
    converse,
    conversing,
)
from trident.backends.redis.control import (
    INFO,
    Waiting,
    check_replicas,
    facts,
    incarnation,
    touch_and_wait,
)
from trident.backends.redis.errors import misfit
from trident.backends.redis.fence import FencedWrite, write_fenced
from trident.backends.redis.layouts import Layout, chunks
from trident.states.asking import Reading, finished
from trident.states.backing_map import ReadingMap
from trident.states.errors import CorruptStateError, StateUnavailableError
from trident.states.sharding import Sharding

_Chunks = Sequence[tuple[Sequence[Any], ...]]
"""Some of a shard's keys, and what came with them, as commands take them."""

_COMMANDS = 4
"""Commands in one transaction, during which the server answers nobody else."""
_FEW = 100
"""Keys of a call that are rather looked at twice than asked for in a second exchange."""


class ShardedMap(ReadingMap):
    """Entries in shards, each of which lies on one server with a control record of its own.

    Any thread of any process may use it. It holds no connection between calls: they are pooled by
    process. Pickles.

    Only a put of strings that were not read before replaces a key of another type, as a list where
    an entry is due; states read each key before they write it.
    """

    where: str
    """How errors name the store."""

    def __init__(
        self, options: ConnectionOptions, layouts: Sequence[Layout], waiting: Waiting
    ) -> None:
        self._options = options
        self._layouts = layouts
        self._waiting = waiting
        self._found: Sequence[Address] | None = None

    def _read(self, keys: Sequence[bytes]) -> Reading[list[Any]]:
        sharding = self._sharding(keys)
        chunked = self._chunked(sharding, keys)
        hides = self._layouts[0].hides
        counts = hides and len(keys) <= _FEW
        # Counted first: an entry that expires between the two then raises a doubt, where it would
        # make up for a key of another type.
        answers = yield from self._conversing(
            {
                shard: [*(self._counts(shard, own) if counts else ()), *self._gets(shard, own)]
                for shard, own in chunked.items()
            }
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
        self._converse(self._puts(keys, values))

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        return self._write(self._puts(keys, values), fence)

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        removals = {
            shard: [partial(self._layouts[shard].remove, *chunk) for chunk in own]
            for shard, own in self._chunked(self._sharding(keys), keys).items()
        }
        return self._write(removals, fence)

    def flush(self) -> None:
        """Wait for the replicas, where that was asked for."""
        if not self._waiting.replicas:
            return
        first = {address: shard for shard, address in reversed(list(enumerate(self._nodes())))}
        with self._wired(first) as wires:
            commands = [
                touch_and_wait(self._layouts[shard].control, self._waiting)
                for shard in first.values()
            ]
            for wire, (_, reached) in zip(wires, converse(wires, commands), strict=True):
                check_replicas(wire, reached, self._waiting.replicas)

    def incarnation(self) -> str:
        """Which runs of which servers hold the state, looked up anew; raises where one is a
        replica."""
        self._found = None
        nodes = sorted(set(self._nodes()))
        with self._wired(nodes) as wires:
            answers = converse(wires, [INFO] * len(wires))
            runs = [incarnation(wire, found) for wire, found in zip(wires, answers, strict=True)]
        return "; ".join(runs)

    def facts(self) -> Mapping[Address, Mapping[str, str]]:
        """Return what each server says of itself: what INFO tells, and ``appendfsync``."""
        nodes = sorted(set(self._nodes()))
        with self._wired(nodes) as wires:
            told = {wire.address: facts(wire.ask(("INFO",))) for wire in wires}
        for node in nodes:
            # Its own connection, as one that was refused is of no more use.
            with suppress(StateUnavailableError), self._wired([node]) as [wire]:
                [[_, value]] = wire.ask(("CONFIG", "GET", "appendfsync"))
                told[node] |= {"appendfsync": value.decode()}
        return told

    def _scan(self, shard: int) -> Iterator[list[bytes]]:
        """Yield the keys of a shard, some at a time, as Redis lists them: maybe one twice."""
        layout, cursor = self._layouts[shard], b"0"
        while True:
            scan = partial(layout.scan, cursor)
            [[cursor, page]] = self._converse({shard: [scan]})[shard]
            yield layout.scanned(page)
            if cursor == b"0":
                return

    def _read_pages(self, pages: Iterable[Sequence[bytes]]) -> Iterator[list[tuple[bytes, Any]]]:
        """Yield the keys of pages with their entries; some may be gone."""
        for keys in pages:
            entries = zip(keys, self.multiGet(keys), strict=True)
            yield [(key, value) for key, value in entries if value is not None]

    @abstractmethod
    def _find(self) -> Sequence[Address]:
        """Look where each shard is."""

    def _nodes(self) -> Sequence[Address]:
        """Return where each shard is, as far as this map knows."""
        found = self._found
        if found is None:
            found = self._found = self._find()
        return found

    def _stored(self, record: bytes) -> bytes:
        """Return what a control record is stored as."""
        return record

    def _sharding(self, keys: Sequence[bytes]) -> Sharding:
        return Sharding.of(keys, len(self._layouts))

    def _chunked(self, sharding: Sharding, *columns: Sequence[Any]) -> dict[int, _Chunks]:
        """Return the keys of each shard that has any, and what comes with them."""
        if len(self._layouts) == 1:
            return {0: list(chunks(*columns))} if columns[0] else {}
        by_shard = zip(*map(sharding.split, columns), strict=True)
        return {shard: list(chunks(*own)) for shard, own in enumerate(by_shard) if len(own[0])}

    def _gets(self, shard: int, own: _Chunks) -> list[Make]:
        return [partial(self._layouts[shard].get, *chunk) for chunk in own]

    def _counts(self, shard: int, own: _Chunks) -> list[Make]:
        return [partial(self._layouts[shard].count, *chunk) for chunk in own]

    def _puts(self, keys: Sequence[bytes], values: Sequence[bytes]) -> dict[int, list[Make]]:
        chunked = self._chunked(self._sharding(keys), keys, values)
        return {
            shard: [partial(self._layouts[shard].put, *chunk) for chunk in own]
            for shard, own in chunked.items()
        }

    def _check_absent(self, keys: Sequence[bytes]) -> None:
        """Raise where one of `keys`, which were read as absent, is there and of another type."""
        chunked = self._chunked(self._sharding(keys), keys)
        counts = self._converse({shard: self._counts(shard, own) for shard, own in chunked.items()})
        there = {
            shard: [
                key
                for (chunk,), count in zip(own, counts[shard], strict=True)
                if count
                for key in chunk
            ]
            for shard, own in chunked.items()
        }
        if any(there.values()):
            self._check_types(there)

    def _check_types(self, keys: Mapping[int, Sequence[bytes]]) -> None:
        """Raise where what a use of `keys`, by shard, touches, controls too, is of another type."""
        due = {shard: self._layouts[shard].types(asked) for shard, asked in keys.items()}
        found = self._converse(
            {shard: [partial(_type, key) for key in types] for shard, types in due.items()}
        )
        for shard, types in due.items():
            for (key, expected), is_there in zip(types.items(), found[shard], strict=True):
                if is_there not in (expected, b"none"):
                    raise misfit(self.where, key, is_there.decode(), expected.decode())

    def _converse(self, commands: Mapping[int, Sequence[Make]]) -> dict[int, list[Any]]:
        """Send each shard its commands, all servers at once, and return the answers by shard."""
        return finished(self._conversing(commands))

    def _conversing(self, commands: Mapping[int, Sequence[Make]]) -> Reading[dict[int, list[Any]]]:
        by_node = self._by_node(commands)
        with self._wired(by_node) as wires:
            answers = yield from conversing(
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
        """Send each shard its commands if all their records are `fence`; say whether they are."""
        if not commands:
            return self.getControl() == fence
        by_node = self._by_node(commands)
        with self._wired(by_node) as wires:
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
        """Raise where a new server refused the fence, which may not know of the batch's begin."""
        asked, self._found = self._nodes(), None
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

    def _put(self, error: StateUnavailableError) -> StateUnavailableError:
        """The error in the words of whoever found the server; by default itself."""
        return error

    @contextmanager
    def _wired(self, addresses: Iterable[Address]) -> Iterator[list[Wire]]:
        """Lend a connection to each server; after an error it is looked anew where they are."""
        try:
            with ExitStack() as lent:
                yield [
                    lent.enter_context(connected(address, self._options)) for address in addresses
                ]
        except StateUnavailableError as error:
            self._found = None
            raise self._put(error) from error.__cause__
        except CorruptStateError:  # some key is of another type: which one?
            self._check_types(dict.fromkeys(range(len(self._layouts)), ()))
            raise


def each_once(pages: Iterable[Sequence[bytes]]) -> Iterator[list[bytes]]:
    """Yield the keys of pages without those that came before."""
    seen: set[bytes] = set()
    for page in pages:
        keys = [key for key in dict.fromkeys(page) if key not in seen]
        seen.update(keys)
        yield keys


def _type(key: bytes) -> Command:
    return "TYPE", key
