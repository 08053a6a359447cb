"""Where Memcached's servers are."""

from __future__ import annotations

from dataclasses import dataclass


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
        """Return the node written ``host``, ``host:port``, ``[IPv6]:port`` or ``(host, port)``."""
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
