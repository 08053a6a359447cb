"""Which node of a Redis Cluster holds which keys."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trident.backends.redis.access import Access
from trident.backends.redis.connections import Address, connected
from trident.backends.redis.places import shown
from trident.states.errors import StateUnavailableError

_SLOTS = 16384


@dataclass(frozen=True)
class ClusterPlace:
    """A cluster, known by some of its nodes; picklable.

    Parameters
    ----------
    seeds : tuple of (str, int)
        Hosts and ports of nodes, asked in this order for all the others.
    access : Access
        How they let us in.
    """

    seeds: tuple[Address, ...]
    access: Access

    @property
    def where(self) -> str:
        """How errors name the cluster."""
        return f"redis cluster at {shown(self.seeds)}"

    def find(self, tags: Sequence[bytes]) -> list[Address]:
        """Return the master of each hash tag.

        Raises
        ------
        StateUnavailableError
            When no seed answers, or a tag's slot has no master.
        """
        ranges = self._ranges()
        return [self._master(ranges, crc_hqx(tag, 0) % _SLOTS) for tag in tags]

    def _master(self, ranges: list[tuple[int, int, Address]], slot: int) -> Address:
        for first, last, address in ranges:
            if first <= slot <= last:
                return address
        raise StateUnavailableError(
            self.where,
            f"no node serves slot {slot}",
            f"Look which are gone: redis-cli --cluster check {shown(self.seeds[:1])}.",
        )

    def _ranges(self) -> list[tuple[int, int, Address]]:
        problems: list[StateUnavailableError] = []
        for seed in self.seeds:
            try:
                with connected(seed, self.access) as wire:
                    [ranges] = wire.ask(("CLUSTER", "SLOTS"))
            except StateUnavailableError as error:
                problems.append(error)
                continue
            return [(first, last, _address(master, seed)) for first, last, master, *_ in ranges]
        found = "; ".join(f"{error.args[0]}: {error.args[1]}" for error in problems)
        raise StateUnavailableError(
            self.where, f"none of the nodes it was given as answers ({found})", problems[0].args[2]
        )


def _address(node: Sequence[Any], seed: Address) -> Address:
    """Return a node's address; one that doesn't know its own is where we asked it."""
    host, port = node[0], node[1]
    return (host.decode() if host and host != b"?" else seed[0]), int(port)
