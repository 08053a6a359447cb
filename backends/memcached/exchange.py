"""Requests to several Memcached nodes, all under way at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Generic, TypeVar

from trident.backends.memcached.connections import NodeConnection, cut, refused, silent
from trident.backends.memcached.wire import IncompleteReplyError, UnexpectedReplyError
from trident.states.asking import Reading, finished

T = TypeVar("T")

_AT_ONCE = 2**18


class NodeRequest(Generic[T]):
    """One request to one node.

    The request ends with a ``version`` command. `read` makes the answer of the reply, and of the
    server's answer to ``version``, which ends it.
    """

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
        """Send what the socket takes now; return whether that was the last of it."""
        try:
            sent = self.connection.socket.send(self._unsent[:_AT_ONCE])
        except OSError as error:
            raise cut(self.connection.node.name, str(error)) from None
        self._unsent = self._unsent[sent:]
        return not self._unsent

    def receive(self) -> bool:
        """Take what has come; return whether the reply is complete."""
        node, end = self.connection.node, self.connection.end
        try:
            got = self.connection.socket.recv(_AT_ONCE)
        except OSError as error:
            raise cut(node.name, str(error)) from None
        if not got:
            raise cut(node.name, "the server closed it")
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
            raise refused(node.name, *error.args) from None
        return True


def exchange(calls: Sequence[NodeRequest[T]], timeout: float) -> list[T]:
    """Make all calls together and return their answers; see :func:`exchanging`."""
    return finished(exchanging(calls, timeout))


def exchanging(calls: Sequence[NodeRequest[T]], timeout: float) -> Reading[list[T]]:
    """Make all calls together and return their answers, as a reading: it yields when they are sent.

    It sends and receives by turns, as each node is ready for it: a node that can't get rid of its
    answers stops reading, and would wait for us as we for it. `timeout` is for how long nothing may
    happen.

    After an error it is unknown what has arrived, and all the connections have to be closed.
    """
    for call in calls:
        call.send()
    yield
    with DefaultSelector() as selector:
        for call in calls:
            selector.register(call.connection.socket, EVENT_READ | EVENT_WRITE, call)
        while waiting := selector.get_map():
            ready = selector.select(timeout)
            if not ready:
                raise silent(next(iter(waiting.values())).data.connection.node.name, timeout)
            for key, events in ready:
                call = key.data
                if events & EVENT_WRITE and call.send():
                    selector.modify(key.fileobj, EVENT_READ, call)
                if events & EVENT_READ and call.receive():
                    selector.unregister(key.fileobj)
    return [call.answer for call in calls]
