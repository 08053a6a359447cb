"""Which servers take writes: a fixed one, the one that Sentinels name, or a Cluster's masters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from binascii import crc_hqx
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.backends.redis.connections import Address, ConnectionOptions, connected
from trident.states.errors import StateUnavailableError

_SLOTS = 16384


class Masters(ABC):
    """Finds the servers that take writes; picklable."""

    @property
    @abstractmethod
    def where(self) -> str:
        """How errors name them."""

    @abstractmethod
    def find(self, tags: Sequence[bytes]) -> list[Address]:
        """Return the current address of the master of each hash tag."""

    def explain(self, error: StateUnavailableError) -> StateUnavailableError:
        """Return `error`, which a master's connection raised, with what is known of the master."""
        return error


@dataclass(frozen=True)
class FixedMaster(Masters):
    """A server at a fixed address."""

    address: Address

    @property
    def where(self) -> str:
        return f"redis at {join_addresses([self.address])}"

    def find(self, tags: Sequence[bytes]) -> list[Address]:
        return [self.address] * len(tags)


@dataclass(frozen=True)
class SentinelMaster(Masters):
    """The master of a service, as the first Sentinel that answers knows it."""

    service: str
    sentinels: tuple[Address, ...]
    options: ConnectionOptions

    @property
    def where(self) -> str:
        return f"redis service {self.service!r} of the sentinels {join_addresses(self.sentinels)}"

    def find(self, tags: Sequence[bytes]) -> list[Address]:
        """Ask the Sentinels, in their order."""
        problems = []
        for sentinel in self.sentinels:
            try:
                with connected(sentinel, self.options) as wire:
                    [found] = wire.ask(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.service))
            except StateUnavailableError as error:
                problems.append(f"{error.args[0]}: {error.args[1]}")
                continue
            if found is not None:
                host, port = found
                return [(host.decode(), int(port))] * len(tags)
            problems.append(f"redis at {sentinel[0]}:{sentinel[1]}: it watches no such service")
        raise StateUnavailableError(
            self.where,
            f"none of them knows its master ({'; '.join(problems)})",
            "Check the name of the service, and the addresses: redis-cli -p 26379 sentinel "
            "masters. Start one: redis-sentinel /etc/redis/sentinel.conf (Debian: apt-get install "
            "redis-sentinel).",
        )

    def explain(self, error: StateUnavailableError) -> StateUnavailableError:
        """Advise to wait for the Sentinels if nothing listens at the master's address."""
        if error.place == self.where or "nothing listens" not in error.problem:
            return error
        return StateUnavailableError(
            error.place,
            f"{error.problem}, and the sentinels still name it as the master of {self.service!r}",
            "While they fail over this passes within some seconds: try again. If it stays so, "
            "look why no replica takes over: redis-cli -p 26379 sentinel masters.",
        )


@dataclass(frozen=True)
class ClusterMasters(Masters):
    """The masters of a cluster, as the first of the given nodes that answers knows them."""

    seeds: tuple[Address, ...]
    options: ConnectionOptions

    @property
    def where(self) -> str:
        return f"redis cluster at {join_addresses(self.seeds)}"

    def find(self, tags: Sequence[bytes]) -> list[Address]:
        ranges = self._ranges()
        return [self._master(ranges, crc_hqx(tag, 0) % _SLOTS) for tag in tags]

    def _master(self, ranges: list[tuple[int, int, Address]], slot: int) -> Address:
        for first, last, address in ranges:
            if first <= slot <= last:
                return address
        raise StateUnavailableError(
            self.where,
            f"no node serves slot {slot}",
            f"Find the missing nodes: redis-cli --cluster check {join_addresses(self.seeds[:1])}.",
        )

    def _ranges(self) -> list[tuple[int, int, Address]]:
        problems: list[StateUnavailableError] = []
        for seed in self.seeds:
            try:
                with connected(seed, self.options) as wire:
                    [ranges] = wire.ask(("CLUSTER", "SLOTS"))
            except StateUnavailableError as error:
                problems.append(error)
                continue
            return [(first, last, _address(master, seed)) for first, last, master, *_ in ranges]
        found = "; ".join(f"{error.args[0]}: {error.args[1]}" for error in problems)
        raise StateUnavailableError(
            self.where, f"none of the nodes it was given as answers ({found})", problems[0].args[2]
        )


def join_addresses(addresses: Sequence[Address]) -> str:
    """Return addresses as one text.

    Examples
    --------
    >>> join_addresses([("one", 6379), ("two", 6380)])
    'one:6379,two:6380'
    """
    return ",".join(f"{host}:{port}" for host, port in addresses)


def _address(node: Sequence[Any], seed: Address) -> Address:
    """Return a node's address: the one we asked at, if it doesn't know its own."""
    host, port = node[0], node[1]
    return (host.decode() if host and host != b"?" else seed[0]), int(port)
