"""A connection whose TLS handshake is under way: it counts as any other, from its first byte."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from trident.server.connection import Connections, Wired


class Handshake(asyncio.Protocol):
    """Makes a connection of a client that has come through the handshake in time."""

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext,
        protocol: Callable[[], Wired],
    ) -> None:
        self.until = float("inf")  # the handshake ends in time by itself
        self._connections = connections
        self._context = context
        self._protocol = protocol
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._connections.add(self):
            transport.abort()
            return
        self._transport = transport
        transport.pause_reading()  # the handshake reads
        self._task = asyncio.get_running_loop().create_task(self._shake(transport))

    def connection_lost(self, error: Exception | None) -> None:
        self._connections.remove(self)

    def out_of_time(self) -> None:
        self.abort()

    def close_when_idle(self) -> None:
        self.abort()

    def untaken(self) -> int:
        return 0

    def look(self) -> None: ...

    def abort(self) -> None:
        """End at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _shake(self, transport: asyncio.Transport) -> None:
        early = _Early()
        if transport.is_closing():  # by a server that ends; nobody would tell the handshake
            self._connections.remove(self)
            return
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                early,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._connections.limits.slow,
            )
        except (OSError, asyncio.CancelledError):  # of which ssl.SSLError and time-outs are
            transport.abort()
            return
        finally:
            self._connections.remove(self)
        if secured is None:  # it was lost meanwhile
            return
        connection = self._protocol()
        connection.wire = transport
        secured.set_protocol(connection)
        connection.connection_made(secured)
        if early.data:
            connection.data_received(bytes(early.data))
        if early.ended:
            connection.eof_received()


class _Early(asyncio.Protocol):
    """Keeps what comes with the end of the handshake, before there is a connection to take it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.ended = False

    def data_received(self, data: bytes) -> None:
        self.data += data

    def eof_received(self) -> bool:
        self.ended = True
        return False
