"""Connections to HBase's Thrift gateway: lent for a call, kept by the process in between."""

from __future__ import annotations

import atexit
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from trident.backends.hbase.driver import await_answer, client_over, thrift
from trident.backends.hbase.errors import explained_connecting, silent

_PATIENCE = 2.0
# The gateway closes a connection that was idle for a minute, and might do so as we write to it.
_IDLE = 45.0


@dataclass(frozen=True)
class Gateway:
    """The address of HBase's Thrift gateway, and which protocol it speaks; picklable.

    Parameters
    ----------
    host, port
        Its address.
    timeout : float
        Seconds to wait for an answer.
    transport, protocol : str
        Which of Thrift's it was started with.
    """

    host: str
    port: int
    timeout: float
    transport: str
    protocol: str

    def __str__(self) -> str:
        return f"hbase at {self.host}:{self.port}"

    @contextmanager
    def lend(self) -> Iterator[Any]:
        """Lend a Thrift client that nobody else uses; it is dropped where a call fails.

        Raises
        ------
        StateUnavailableError
            When the gateway can't be reached.
        ImportError
            When the driver is not installed.
        """
        connection = _kept(self) or Connection(self)
        try:
            yield connection.client
        except BaseException:
            connection.close()
            raise
        _keep(self, connection)


class Connection:
    """A connection to the gateway, open from the beginning.

    Parameters
    ----------
    gateway : Gateway
        Where to.

    Attributes
    ----------
    client : object
        Has the gateway's calls as methods, and is for one thread at a time.
    """

    def __init__(self, gateway: Gateway) -> None:
        thrift()  # a missing driver is told before a missing server
        address = gateway.host, gateway.port
        try:
            # The driver's own connections know no IPv6, and one time-out for everything.
            self._socket = socket.create_connection(address, _PATIENCE)
        except OSError as error:
            raise explained_connecting(str(gateway), gateway.port, _PATIENCE, error) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client = client_over(self._socket, gateway.transport, gateway.protocol)
        try:
            self._greet(gateway)
        except BaseException:
            self.close()
            raise
        self.used = time.monotonic()

    def _greet(self, gateway: Gateway) -> None:
        """Wait briefly for a first answer: a gateway may accept connections and stay silent."""
        patience = min(_PATIENCE, gateway.timeout)
        self._socket.settimeout(patience)
        try:
            await_answer(self.client)
        except TimeoutError:
            raise silent(str(gateway), patience) from None
        self._socket.settimeout(gateway.timeout)

    @property
    def expired(self) -> bool:
        """Whether it was idle for so long that the gateway may close it any moment."""
        return time.monotonic() - self.used > _IDLE

    @property
    def closed(self) -> bool:
        """Whether the gateway has closed it, or sent something that nobody asked for."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(0))

    def close(self) -> None:
        self._socket.close()


_idle: dict[Gateway, deque[Connection]] = {}
"""Of each gateway, the connections that nobody uses now; the last used at the end."""
_lock = threading.Lock()


def _kept(gateway: Gateway) -> Connection | None:
    while True:
        with _lock:
            idle = _idle.get(gateway)
            connection = idle.pop() if idle else None
        if connection is None or not (connection.expired or connection.closed):
            return connection
        connection.close()


def _keep(gateway: Gateway, connection: Connection) -> None:
    connection.used = time.monotonic()
    with _lock:
        idle = _idle.setdefault(gateway, deque())
        idle.append(connection)
        while idle and idle[0].expired:
            idle.popleft().close()


def close_idle() -> None:
    """Close the connections that this process keeps; those that are lent stay open."""
    with _lock:
        for idle in _idle.values():
            while idle:
                idle.pop().close()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # another thread of the parent may have held it
    close_idle()  # only the copies: the parent goes on using its own


atexit.register(close_idle)
os.register_at_fork(after_in_child=_after_fork)
