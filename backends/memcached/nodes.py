"""Where Memcached's servers are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class NodeAddress:
    """Where one Memcached server listens.

    Examples
    --------
    >>> NodeAddress.parse("localhost"), NodeAddress.parse("[::1]:11212")
    (NodeAddress(host='localhost', port=11211), NodeAddress(host='::1', port=11212))
    >>> NodeAddress.parse(("cache", 11213))
    NodeAddress(host='cache', port=11213)
    >>> str(NodeAddress("::1", 11212))
    '[::1]:11212'
    """

    host: str
    port: int = 11211

    @staticmethod
    def parse(given: NodeLike) -> NodeAddress:
        """Return the node written ``host``, ``host:port``, ``[IPv6]:port`` or ``(host, port)``."""
        match given:
            case str():
                text = given
            case (str(name), int(number)):
                text = str(NodeAddress(name, number))
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
        return NodeAddress(host, int(port))

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
