"""Connections to Memcached nodes, lent to one call at a time, and their requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any, Generic, TypeVar

from trident.backends.memcached.errors import (
    START,
    connection_cut,
    no_answer,
    not_memcached,
    refusal,
)
from trident.backends.memcached.wire import IncompleteReplyError, UnexpectedReplyError
from trident.backends.pool import Pool, closed_after_error
from trident.backends.sockets import CONNECT_SECONDS, connect, is_quiet
from trident.states.asking import Reading, finish_read
from trident.states.errors import MissingDriverError

# What an item needs beside its key and value: a header of 48 bytes, the version's 8, a NUL behind
# the key, a line break behind the value.
_OVERHEAD = 59
PORT = 11211
_NODE = re.compile(r"(\[[^\[\]]+\]|[^\[\]:]+)(?::([0-9]{1,5}))?")
_AT_ONCE = 2**18
T = TypeVar("T")


class NodeConnection:
    """A connection to one node; used by one thread at a time.

    `end` is the node's answer to ``version``, `item_limit` the most bytes of a key and its value.
    """

    end: bytes
    item_limit: int

    def __init__(self, node: NodeAddress) -> None:
        try:
            pymemcache = import_module("pymemcache")
        except ImportError as error:
            raise MissingDriverError("state in Memcached", "memcached", str(error)) from None
        self.node = node
        # The driver tries one address of a name: ``localhost`` may be ``::1``, where none listens.
        self.socket = connect(node.name, node.host, node.port, START.format(port=node.port))
        with closed_after_error(self):
            self._greet(pymemcache)

    def _greet(self, pymemcache: Any) -> None:
        client = pymemcache.Client((self.node.host, self.node.port))
        client.sock = self.socket
        try:
            self.end = b"VERSION %b\r\n" % client.version()
            self.item_limit = int(client.stats("settings")[b"item_size_max"]) - _OVERHEAD
        except TimeoutError:
            raise no_answer(self.node.name, CONNECT_SECONDS) from None
        except OSError as error:
            raise connection_cut(self.node.name, str(error)) from None
        except (pymemcache.MemcacheError, KeyError, ValueError) as error:
            raise not_memcached(self.node.name, repr(error)) from None

    def is_quiet(self) -> bool:
        """Return whether the node has neither closed it nor sent late bytes."""
        return is_quiet(self.socket)

    def close(self) -> None:
        self.socket.close()


pool = Pool(NodeConnection, NodeConnection.is_quiet)
"""The idle connections of this process."""


@contextmanager
def lend_each(nodes: Sequence[NodeAddress]) -> Iterator[list[NodeConnection]]:
    """Lend a connection to each node; an error closes them, as late answers may come on them."""
    with ExitStack() as lending:
        yield [lending.enter_context(pool.lend(node)) for node in nodes]


@dataclass(frozen=True, order=True)
class NodeAddress:
    """Where one Memcached server listens."""

    host: str
    port: int

    @staticmethod
    def parse(given: NodeLike) -> NodeAddress:
        """Return the node written ``host``, ``host:port``, ``[IPv6]:port`` or ``(host, port)``."""
        match given:
            case str():
                text = given
            case (str(name), int(number)):
                text = str(NodeAddress(name, number))
            case _:
                raise _not_a_node(given)
        found = _NODE.fullmatch(text)
        port = int(found[2] or PORT) if found else 0
        if not found or not 0 < port < 65536:
            raise _not_a_node(given)
        return NodeAddress(found[1].strip("[]"), port)

    @property
    def name(self) -> str:
        """How errors name it."""
        return f"memcached at {self}"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


NodeLike = str | tuple[str, int]
"""How a node may be given: as text, or as pymemcache takes it."""


def _not_a_node(given: object) -> ValueError:
    return ValueError(
        f"memcached: {given!r} is not a node; give a list of them, each written host:port, an IPv6 "
        "address in brackets, or as a pair (host, port)"
    )


class NodeRequest(Generic[T]):
    """One request to one node, which ends with ``version``; `read` makes the answer of a reply."""

    answer: T

    def __init__(
        self, connection: NodeConnection, request: bytes, read: Callable[[bytes, bytes], T]
    ) -> None:
        self.connection = connection
        self._unsent = memoryview(request)
        self._read = read
        self._got: list[bytes] = []
        self._tail = b""

    def send(self) -> bool:
        """Send what the socket takes now; return whether all is sent."""
        try:
            sent = self.connection.socket.send(self._unsent[:_AT_ONCE])
        except OSError as error:
            raise connection_cut(self.connection.node.name, str(error)) from None
        self._unsent = self._unsent[sent:]
        return not self._unsent

    def receive(self) -> bool:
        """Receive what has come; return whether the reply is complete."""
        node, end = self.connection.node, self.connection.end
        try:
            got = self.connection.socket.recv(_AT_ONCE)
        except OSError as error:
            raise connection_cut(node.name, str(error)) from None
        if not got:
            raise connection_cut(node.name, "the server closed it")
        self._got.append(got)
        self._tail = (self._tail + got[-len(end) :])[-len(end) :]
        if self._tail != end:
            return False
        self._got = [b"".join(self._got)]
        try:
            self.answer = self._read(self._got[0], end)
        except IncompleteReplyError:
            return False
        except UnexpectedReplyError as error:
            raise refusal(node.name, *error.args) from None
        return True


def exchange(requests: Sequence[NodeRequest[T]], timeout: float) -> list[T]:
    """Make all requests together and return their answers; see :func:`exchanging`."""
    return finish_read(exchanging(requests, timeout))


def exchanging(requests: Sequence[NodeRequest[T]], timeout: float) -> Reading[list[T]]:
    """Do the same as a reading, which yields when all requests are sent.

    It sends and receives by turns, as each node is ready for it. A node that can't send its answers
    stops reading, and would wait for us while we wait for it. `timeout` is for how long nothing may
    happen.

    After an error it is unknown what has arrived, and all the connections have to be closed.
    """
    for request in requests:
        request.send()
    yield
    with DefaultSelector() as selector:
        for request in requests:
            selector.register(request.connection.socket, EVENT_READ | EVENT_WRITE, request)
        while waiting := selector.get_map():
            ready = selector.select(timeout)
            if not ready:
                raise no_answer(next(iter(waiting.values())).data.connection.node.name, timeout)
            for key, events in ready:
                request = key.data
                if events & EVENT_WRITE and request.send():
                    selector.modify(key.fileobj, EVENT_READ, request)
                if events & EVENT_READ and request.receive():
                    selector.unregister(key.fileobj)
    return [request.answer for request in requests]
