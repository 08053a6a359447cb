"""What a state on one server and a state on a cluster have in common: entries in parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from typing import Any

from trident.backends.redis.access import Access
from trident.backends.redis.connections import (
    Address,
    Command,
    Make,
    Wire,
    connected,
    converse,
)
from trident.backends.redis.control import (
    INFO,
    Waiting,
    check_replicas,
    incarnation,
    touch_and_wait,
)
from trident.backends.redis.errors import misfit
from trident.backends.redis.fence import FencedWrite, write_fenced
from trident.backends.redis.layouts import Layout
from trident.backends.redis.shares import Share, in_order, split
from trident.states.backing_map import IBackingMap
from trident.states.errors import CorruptStateError, StateUnavailableError

_COMMANDS = 4
"""Commands in one transaction, during which the server answers nobody else."""
_FEW = 100
"""Keys of a call that are rather looked at twice than asked for in a second exchange."""


class PartedMap(IBackingMap):
    """Entries in parts, each of which lies on one server with a control record of its own.

    Any thread of any process may use it. It holds no connection between calls: they are pooled by
    process. Pickles.

    Parameters
    ----------
    access : Access
        How servers let us in.
    layouts : sequence of Layout
        One for each part; a key belongs to part ``crc32(key) % len(layouts)``.
    waiting : Waiting
        What :meth:`flush` waits for.

    Raises
    ------
    StateUnavailableError
        From every method: when a server can't be reached, or gave no certain answer.
    CorruptStateError
        From every method: when a key is of another type than it has to be, as a list where an
        entry, a hash or a control record is due. Only a put of strings that were not read before
        replaces anything; states read each key before they write it.
    """

    where: str
    """How errors name the store."""

    def __init__(self, access: Access, layouts: Sequence[Layout], waiting: Waiting) -> None:
        self._access = access
        self._layouts = layouts
        self._waiting = waiting
        self._found: Sequence[Address] | None = None

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        shares = self._split(keys)
        hides = self._layouts[0].hides
        counts = hides and len(keys) <= _FEW
        # Counted first: an entry that expires between the two then raises a doubt, where it would
        # make up for a key of another type.
        answers = self._converse(
            {
                share.part: [*(self._counts(share) if counts else ()), *self._gets(share)]
                for share in shares
            }
        )
        found, present = {}, 0
        for share in shares:
            answered, reads = answers[share.part], len(share.chunks)
            found[share.part] = list(chain.from_iterable(answered[-reads:]))
            present += sum(answered[:-reads])
        values = in_order(shares, found, len(keys))
        certain = not hides or (counts and present <= len(values) - values.count(None))
        if not certain and None in values:
            entries = zip(keys, values, strict=True)
            self._check_absent([key for key, value in entries if value is None])
        return values

    def multiPut(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        shares = self._split(keys, values)
        self._converse({share.part: self._puts(share) for share in shares})

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        shares = self._split(keys, values)
        return self._write({share.part: self._puts(share) for share in shares}, fence)

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        removals = {
            share.part: [
                partial(self._layouts[share.part].remove, *chunk) for chunk in share.chunks
            ]
            for share in self._split(keys)
        }
        return self._write(removals, fence)

    def flush(self) -> None:
        """Wait for the replicas, where that was asked for."""
        if not self._waiting.replicas:
            return
        first = {address: part for part, address in reversed(list(enumerate(self._nodes())))}
        with self._wired(first) as wires:
            commands = [
                touch_and_wait(self._layouts[part].control, self._waiting)
                for part in first.values()
            ]
            for wire, (_, reached) in zip(wires, converse(wires, commands), strict=True):
                check_replicas(wire, reached, self._waiting.replicas)

    def incarnation(self) -> str:
        """Return which runs of which servers hold the state, after looking anew who they are.

        Raises
        ------
        StateUnavailableError
            When one of them is no master: what is written there may be lost.
        """
        self._found = None
        nodes = sorted(set(self._nodes()))
        with self._wired(nodes) as wires:
            answers = converse(wires, [INFO] * len(wires))
            runs = [incarnation(wire, found) for wire, found in zip(wires, answers, strict=True)]
        return "; ".join(runs)

    @abstractmethod
    def _find(self) -> Sequence[Address]:
        """Look where each part is."""

    def _nodes(self) -> Sequence[Address]:
        """Return where each part is, as far as this map knows."""
        found = self._found
        if found is None:
            found = self._found = self._find()
        return found

    def _stored(self, record: bytes) -> bytes:
        """Return what a control record is stored as."""
        return record

    def _gets(self, share: Share) -> list[Make]:
        layout = self._layouts[share.part]
        return [partial(layout.get, *chunk) for chunk in share.chunks]

    def _counts(self, share: Share) -> list[Make]:
        layout = self._layouts[share.part]
        return [partial(layout.count, *chunk) for chunk in share.chunks]

    def _puts(self, share: Share) -> list[Make]:
        layout = self._layouts[share.part]
        return [partial(layout.put, *chunk) for chunk in share.chunks]

    def _check_absent(self, keys: Sequence[bytes]) -> None:
        """Raise where one of `keys`, which were read as absent, is there and of another type."""
        shares = self._split(keys)
        counts = self._converse({share.part: self._counts(share) for share in shares})
        there = {
            share.part: [
                key
                for (chunk,), count in zip(share.chunks, counts[share.part], strict=True)
                if count
                for key in chunk
            ]
            for share in shares
        }
        if any(there.values()):
            self._check_types(there)

    def _check_types(self, keys: Mapping[int, Sequence[bytes]]) -> None:
        """Raise where what a use of `keys` touches, by part, is of another type than it has to be.

        Control records are looked at too.
        """
        due = {part: self._layouts[part].types(asked) for part, asked in keys.items()}
        found = self._converse(
            {part: [partial(_type, key) for key in types] for part, types in due.items()}
        )
        for part, types in due.items():
            for (key, expected), is_there in zip(types.items(), found[part], strict=True):
                if is_there not in (expected, b"none"):
                    raise misfit(self.where, key, is_there.decode(), expected.decode())

    def _split(self, keys: Sequence[bytes], *parallel: Sequence[Any]) -> list[Share]:
        return split(len(self._layouts), keys, *parallel)

    def _converse(self, commands: Mapping[int, Sequence[Make]]) -> dict[int, list[Any]]:
        """Send each part its commands, all servers at once, and return the answers by part."""
        by_node = self._by_node(commands)
        with self._wired(by_node) as wires:
            answers = converse(
                wires,
                [
                    (make() for part in parts for make in commands[part])
                    for parts in by_node.values()
                ],
            )
        result = {}
        for parts, answered in zip(by_node.values(), answers, strict=True):
            rest = iter(answered)
            for part in parts:
                result[part] = [next(rest) for _ in commands[part]]
        return result

    def _write(self, commands: Mapping[int, Sequence[Make]], fence: bytes) -> bool:
        """Send each part its commands where all their records are `fence`; say whether they are."""
        if not commands:
            return self.getControl() == fence
        by_node = self._by_node(commands)
        with self._wired(by_node) as wires:
            writes = [
                [write for part in parts for write in self._transactions(part, commands[part])]
                for parts in by_node.values()
            ]
            written = write_fenced(wires, writes, self._stored(fence))
        if not written:
            self._check_nodes()
        return written

    def _transactions(self, part: int, commands: Sequence[Make]) -> Iterator[FencedWrite]:
        for start in range(0, len(commands), _COMMANDS):
            yield FencedWrite(self._layouts[part].control, commands[start : start + _COMMANDS])

    def _check_nodes(self) -> None:
        """Raise where it was a server that has been replaced which refused the fence.

        It may not know of the batch's begin: then nobody has overtaken us.
        """
        asked, self._found = self._nodes(), None
        if self._nodes() != asked:
            raise StateUnavailableError(
                self.where, "another server has taken over", "The batch is retried there."
            )

    def _by_node(self, parts: Iterable[int]) -> dict[Address, list[int]]:
        nodes = self._nodes()
        found: dict[Address, list[int]] = {}
        for part in parts:
            found.setdefault(nodes[part], []).append(part)
        return found

    @contextmanager
    def _wired(self, addresses: Iterable[Address]) -> Iterator[list[Wire]]:
        """Lend a connection to each server; after an error it is looked anew where they are."""
        try:
            with ExitStack() as lent:
                yield [
                    lent.enter_context(connected(address, self._access)) for address in addresses
                ]
        except StateUnavailableError:
            self._found = None
            raise
        except CorruptStateError:  # some key is of another type: which one?
            self._check_types(dict.fromkeys(range(len(self._layouts)), ()))
            raise


def _type(key: bytes) -> Command:
    return "TYPE", key
