"""Where Memcached's servers are, and which of them has a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32


@dataclass(frozen=True, order=True)
class Node:
    """Where one Memcached server listens.

    Examples
    --------
    >>> Node.parse("localhost"), Node.parse("[::1]:11212")
    (Node(host='localhost', port=11211), Node(host='::1', port=11212))
    >>> Node.parse(("cache", 11213))
    Node(host='cache', port=11213)
    >>> str(Node("::1", 11212))
    '[::1]:11212'
    """

    host: str
    port: int = 11211

    @staticmethod
    def parse(given: NodeLike) -> Node:
        """Return the node written ``host``, ``host:port``, ``[IPv6]:port`` or ``(host, port)``.

        Raises
        ------
        ValueError
            When it is written otherwise.
        """
        match given:
            case str():
                text = given
            case (str(name), int(number)):
                text = str(Node(name, number))
            case _:
                raise _no_node(given)
        host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
        if not colon:
            host, port = text, "11211"
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            host = ""
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise _no_node(given)
        return Node(host, int(port))

    @property
    def name(self) -> str:
        """How errors name it."""
        return f"memcached at {self}"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


NodeLike = str | tuple[str, int]
"""How a node may be given: as text, or as pymemcache takes it."""


def _no_node(given: object) -> ValueError:
    return ValueError(
        f"memcached: {given!r} is no node; give a list of them, each written host:port, an IPv6 "
        "address in brackets, or as a pair (host, port)"
    )


@dataclass(frozen=True)
class Placement:
    """Which node has which of several keys.

    It depends on nothing but the key and the number of nodes. While a node is away its keys are
    away too: another node, which might have old values, is never asked for them.

    Parameters
    ----------
    positions : sequence of sequence of int
        The positions of the keys of each node.
    total : int
        How many keys there are.

    Examples
    --------
    >>> placement = Placement.of([b"dog", b"cat", b"hen"], 2)
    >>> placement.positions
    [[1], [0, 2]]
    >>> placement.split(["a", "b", "c"])
    [['b'], ['a', 'c']]
    >>> placement.join([[1], [0, 2]])
    [0, 1, 2]
    """

    positions: Sequence[Sequence[int]]
    total: int

    @staticmethod
    def of(stored: Sequence[bytes], nodes: int) -> Placement:
        """Place keys, given in their stored form, on so many nodes."""
        if nodes == 1:
            return Placement([range(len(stored))], len(stored))
        positions: list[list[int]] = [[] for _ in range(nodes)]
        for position, key in enumerate(stored):
            positions[crc32(key) % nodes].append(position)
        return Placement(positions, len(stored))

    def split(self, column: Sequence[Any]) -> list[Sequence[Any]]:
        """Return what of `column`, which has an item for each key, is for each node."""
        if len(self.positions) == 1:
            return [column]
        return [[column[position] for position in own] for own in self.positions]

    def join(self, by_node: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the items of all nodes in the order of the keys."""
        if len(self.positions) == 1:
            return list(by_node[0])
        column: list[Any] = [None] * self.total
        for positions, items in zip(self.positions, by_node, strict=True):
            for position, item in zip(positions, items, strict=True):
                column[position] = item
        return column
