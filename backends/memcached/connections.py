"""Connections to Memcached nodes: each process keeps those that are idle, and lends them out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from trident.backends.memcached.errors import no_memcached, unreachable
from trident.backends.memcached.nodes import NodeAddress
from trident.backends.pool import Pool, is_quiet
from trident.states.errors import MissingDriverError

CONNECT_TIMEOUT = 2.0
"""Seconds that a node has to accept a connection."""

# What an item needs beside its key and value: a header of 48 bytes, the version's 8, a NUL behind
# the key, a line break behind the value.
_OVERHEAD = 59


class Greeting(NamedTuple):
    """What a node tells about itself at first.

    `end` is the server's answer to ``version``, `item_limit` how many bytes a key and its value may
    have together.
    """

    client: Any
    end: bytes
    item_limit: int


class NodeConnection:
    """A connection to one node; used by one thread at a time."""

    def __init__(self, node: NodeAddress) -> None:
        self.node = node
        self._client, self.end, self.item_limit = _greeted(node)

    @property
    def socket(self) -> socket.socket:
        """The socket, for many commands at once."""
        sock: socket.socket = self._client.sock
        return sock

    def is_quiet(self) -> bool:
        """Return whether nothing has happened to an idle connection: no end, no late bytes."""
        return is_quiet(self.socket.fileno())

    def close(self) -> None:
        """Close it; may be called twice."""
        self._client.close()


pool = Pool(NodeConnection, NodeConnection.is_quiet)
"""The connections of this process that nobody uses now."""


@contextmanager
def lent(nodes: Sequence[NodeAddress]) -> Iterator[list[NodeConnection]]:
    """Lend a connection to each node; an error closes them, as what they carry is unknown then."""
    with ExitStack() as lending:
        yield [lending.enter_context(pool.lend(node)) for node in nodes]


def _greeted(node: NodeAddress) -> Greeting:
    """Connect; by itself pymemcache would try only the first address of a name.

    (Debian's server listens on 127.0.0.1, and ``localhost`` may be ``::1`` first.)
    """
    deadline = time.monotonic() + CONNECT_TIMEOUT
    failure: OSError = TimeoutError()
    try:
        addresses = socket.getaddrinfo(node.host, node.port, type=socket.SOCK_STREAM)
        for *_, address in addresses:
            try:
                return _greet(node.name, address[:2], deadline)
            except OSError as error:
                failure = error
    except socket.gaierror as error:
        failure = error
    raise unreachable(node.name, node.port, failure, CONNECT_TIMEOUT) from failure


def _greet(name: str, address: tuple[Any, ...], deadline: float) -> Greeting:
    try:
        pymemcache = import_module("pymemcache")
    except ImportError as error:
        raise MissingDriverError("state in Memcached", "memcached", str(error)) from None
    left = max(deadline - time.monotonic(), 0.01)
    client = pymemcache.Client(address, connect_timeout=left, timeout=left, no_delay=True)
    try:
        version = client.version()
        limit = client.stats("settings")[b"item_size_max"]
        return Greeting(client, b"VERSION %b\r\n" % version, int(limit) - _OVERHEAD)
    except (pymemcache.MemcacheError, KeyError, ValueError) as error:
        client.close()
        raise no_memcached(name, repr(error)) from None
    except BaseException:
        client.close()
        raise
