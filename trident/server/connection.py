"""The connections of a server, of whatever protocol: how many, and what they may hold together."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from trident.server.limits import DRPCLimits

_SWEEPS = 4
"""How often the connections are swept in the shortest time that a client may have."""
NEVER = float("inf")


class ServerConnection(asyncio.Protocol):
    """A connection of a server, which may be within TLS."""

    until: float
    """When its time is over, by the event loop's clock."""
    among: Connections
    """All connections of the server, with this one."""
    transport: asyncio.Transport
    wire: asyncio.Transport | None = None
    """What carries TLS."""
    _received = 0

    def out_of_time(self) -> None:
        """Do what has to be done when its time is over."""
        self.abort()

    def close_when_idle(self) -> None:
        """Take no more requests, and end when those that have come are answered."""
        self.abort()

    def abort(self) -> None:
        """End at once."""
        self.transport.abort()

    def untaken(self) -> int:
        """Return how many bytes of answers the client has not taken; with TLS the wire has them."""
        size: int = self.transport.get_write_buffer_size()
        return size + self.wire.get_write_buffer_size() if self.wire else size

    def look(self) -> None:
        """Count the bytes that the client has not taken by now."""
        self.among.set_untaken(self, self.untaken())

    def set_received(self, size: int) -> bool:
        """Count the bytes of a request that has come in part; return whether there is room."""
        self.among.received += size - self._received
        self._received = size
        return self.among.received <= self.among.limits.received


class Connections:
    """All connections of a server."""

    def __init__(self, limits: DRPCLimits) -> None:
        self.limits = limits
        self.received = 0
        self.closing = False
        self._open: set[ServerConnection] = set()
        self._untaken: dict[ServerConnection, int] = {}
        self._untaken_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: ServerConnection) -> bool:
        """Add a connection; False where the server takes no more."""
        if self.closing or len(self._open) >= self.limits.connections:
            return False
        self._open.add(connection)
        return True

    def remove(self, connection: ServerConnection) -> None:
        """Forget a connection that has ended."""
        self._open.discard(connection)
        self.set_untaken(connection, 0)

    def set_untaken(self, connection: ServerConnection, size: int) -> None:
        """Count the bytes of answers that a client has not taken.

        Where all together are over the limit, those end that have waited longest.
        """
        self._untaken_bytes += size - self._untaken.get(connection, 0)
        if size:
            self._untaken[connection] = size
        else:
            self._untaken.pop(connection, None)
        while self._untaken_bytes > self.limits.untaken and len(self._untaken) > 1:
            oldest = next(iter(self._untaken))
            self._untaken_bytes -= self._untaken.pop(oldest)
            oldest.abort()

    async def sweep(self) -> None:
        """End the connections whose time is over, for as long as this runs."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(self.limits.slow, self.limits.idle, 1.0) / _SWEEPS)
            now = loop.time()
            for connection in list(self._untaken):
                connection.look()
            for connection in [each for each in self._open if each.until < now]:
                connection.out_of_time()

    async def close(self, seconds: float) -> None:
        """Let the requests that have come be answered, `seconds` at most, and end all."""
        self.closing = True
        for connection in list(self._open):
            connection.close_when_idle()
        until = asyncio.get_running_loop().time() + seconds
        while self._open and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.005)
        for connection in list(self._open):
            connection.abort()


class Handshake(ServerConnection):
    """Makes a connection for a client that completes the handshake in time."""

    def __init__(
        self,
        connections: Connections,
        context: ssl.SSLContext,
        protocol: Callable[[], ServerConnection],
    ) -> None:
        self.until = NEVER  # the handshake ends in time by itself
        self.among = connections
        self._context = context
        self._protocol = protocol
        self._task: asyncio.Task[None] | None = None
        # What comes with the end of the handshake, before the connection is made:
        self._early = bytearray()
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if not self.among.add(self):
            self.abort()
            return
        transport.pause_reading()  # the handshake reads
        self._task = asyncio.get_running_loop().create_task(self._shake(transport))

    def connection_lost(self, error: Exception | None) -> None:
        self.among.remove(self)

    def data_received(self, data: bytes) -> None:
        self._early += data

    def eof_received(self) -> bool:
        self._ended = True
        return False

    async def _shake(self, transport: asyncio.Transport) -> None:
        if transport.is_closing():  # by a server that ends: the handshake would never return
            self.among.remove(self)
            return
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self.among.limits.slow,
            )
        except (OSError, asyncio.CancelledError):  # OSError includes ssl.SSLError and time-outs
            transport.abort()
            return
        finally:
            self.among.remove(self)
        if secured is None:  # it was lost meanwhile
            return
        connection = self._protocol()
        connection.wire = transport
        secured.set_protocol(connection)
        connection.connection_made(secured)
        if self._early:
            connection.data_received(bytes(self._early))
        if self._ended:
            connection.eof_received()
