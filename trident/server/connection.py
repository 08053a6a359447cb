"""A connection of a client, of whatever protocol: what it may hold, and for how long."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Protocol

from trident.server.limits import DRPCLimits

_SWEEPS = 4
"""How often in the shortest time that a client has it is looked whether it is over."""
NEVER = float("inf")
_KEPT_BESIDES = 500
"""Bytes that a request takes besides its own, while it waits for the one before it."""


class Counted(Protocol):
    """What counts as a connection."""

    until: float
    """When its time is over."""

    def out_of_time(self) -> None:
        """Its time is over."""

    def close_when_idle(self) -> None:
        """The server ends."""

    def abort(self) -> None:
        """End at once."""

    def untaken(self) -> int:
        """How many bytes of answers its client has not taken."""

    def look(self) -> None:
        """Find out whether that has changed."""


class Wired(asyncio.Protocol):
    """A connection, which may be within TLS."""

    transport: asyncio.Transport
    wire: asyncio.Transport | None = None
    """What carries TLS."""

    def untaken(self) -> int:
        """How many bytes of answers the client has not taken; with TLS they wait in the wire."""
        size: int = self.transport.get_write_buffer_size()
        return size + self.wire.get_write_buffer_size() if self.wire else size


class Connections:
    """All connections of a server."""

    def __init__(self, limits: DRPCLimits) -> None:
        self.limits = limits
        self.received = 0
        self.closing = False
        self._open: set[Counted] = set()
        self._untaken: dict[Counted, int] = {}
        self._untaken_bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Counted) -> bool:
        """Whether there is room for one more."""
        if self.closing or len(self._open) >= self.limits.connections:
            return False
        self._open.add(connection)
        return True

    def remove(self, connection: Counted) -> None:
        """A connection has ended."""
        self._open.discard(connection)
        self.not_taken(connection, 0)

    def not_taken(self, connection: Counted, size: int) -> None:
        """How many bytes of its answers a client has not taken.

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
        """Let the requests that are here be answered, `seconds` at most, and end all."""
        self.closing = True
        for connection in list(self._open):
            connection.close_when_idle()
        until = asyncio.get_running_loop().time() + seconds
        while self._open and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.005)
        for connection in list(self._open):
            connection.abort()


class Connection(Wired, ABC):
    """One connection; answers its requests one after the other.

    While requests wait, and while the client doesn't take answers, nothing more is read of it.
    """

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.limits = connections.limits
        self.idle = self.limits.idle
        self.until = NEVER
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # until it is made
        self._requests: deque[tuple[Any, int]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._received = 0
        self._can_write = True
        self._reads = True
        self._ends = False
        self._last = b""

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self._task is not None

    @abstractmethod
    def take(self, data: bytes) -> None:
        """Take what has come, and call :meth:`request` for each request that is complete."""

    @abstractmethod
    async def answer(self, request: Any) -> bytes:
        """The answer to a request; never raises."""

    @abstractmethod
    def refuse(self) -> bytes:
        """What a client is told for whom there is no room."""

    @abstractmethod
    def too_slow(self) -> bytes:
        """What a client is told whose request has not come in time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if not self.connections.add(self):
            transport.write(self.refuse())
            transport.close()
            return
        self.until = self.loop.time() + self.limits.slow

    def connection_lost(self, error: Exception | None) -> None:
        self.connections.remove(self)
        self.held(0)
        while self._requests:
            self._next()
        self.until = NEVER
        if self._task is not None:
            self._task.cancel()  # nobody waits for the answer: its call leaves the queue

    def data_received(self, data: bytes) -> None:
        if self._ends:
            return
        if self._task is None:
            # Counted from the first byte: a client that sends one now and then is slow too.
            self.until = min(self.until, self.loop.time() + self.limits.slow)
        self.take(data)
        if self._requests and self.connections.received > self.limits.received:
            self.abort()
        self._go_on()

    def eof_received(self) -> bool:
        """A client that has hung up, also where it does so while it is answered."""
        return False

    def pause_writing(self) -> None:
        self._can_write = False
        self.until = self.loop.time() + self.limits.slow
        self.look()

    def resume_writing(self) -> None:
        self._can_write = True
        self.look()
        self.until = NEVER if self.busy else self.loop.time() + self.idle
        self._go_on()

    def request(self, request: Any, size: int) -> None:
        """A request has come, completely, of so many bytes; it waits for its turn."""
        kept = size + _KEPT_BESIDES
        self._requests.append((request, kept))
        self.connections.received += kept

    def _next(self) -> Any:
        """Take the request out of those that wait whose turn it is."""
        request, kept = self._requests.popleft()
        self.connections.received -= kept
        return request

    def held(self, size: int) -> bool:
        """How many bytes of a request have come in part; whether there is room for them."""
        self.connections.received += size - self._received
        self._received = size
        return self.connections.received <= self.limits.received

    def end(self, last: bytes = b"") -> None:
        """Take no more of this client, and end when its requests are answered.

        It is told `last`. What it still sends is thrown away meanwhile: it reads nothing before it
        has sent all, and a closed connection would take the answer from it.
        """
        self._ends = True
        self._last = last
        self.held(0)

    def out_of_time(self) -> None:
        """The client has let its time go by."""
        if not self._can_write or self.transport.is_closing():
            self.abort()
            return
        if self._received or self._partly():
            self.transport.write(self.too_slow())
        self.until = self.loop.time() + self.limits.slow  # then it is gone, whatever it takes
        self.transport.close()

    def close_when_idle(self) -> None:
        """The server ends: answer what is here."""
        self._ends = True
        if self._task is None and not self._requests:
            self.transport.close()

    def abort(self) -> None:
        """End at once."""
        self.transport.abort()

    def look(self) -> None:
        """Count them."""
        self.connections.not_taken(self, self.untaken())

    def _partly(self) -> bool:
        """Whether a part of a request has come."""
        return False

    def _go_on(self) -> None:
        """Begin to answer the next request, or wait for one."""
        if self._task is not None or not self._can_write or self.transport.is_closing():
            self._read(not self._requests)
            return
        if self._requests:
            self.until = NEVER
            self._task = self.loop.create_task(self._answer(self._next()))
            self._read(not self._requests)  # so as to see that the client hangs up
        elif self._ends:
            self.until = self.loop.time() + self.limits.slow
            last, self._last = self._last, b""
            if last:
                self.transport.write(last)
            if last and self.transport.can_write_eof():
                self._read(True)
                self.transport.write_eof()
            else:
                self.transport.close()
        else:
            self._read(True)

    async def _answer(self, request: Any) -> None:
        made = await self.answer(request)
        self._task = None
        if self.transport.is_closing():
            return
        self.transport.write(made)
        self.look()
        if self._can_write:
            partly = self._received or self._partly()
            self.until = self.loop.time() + (self.limits.slow if partly else self.idle)
        self._go_on()

    def _read(self, reads: bool) -> None:
        if reads != self._reads and not self.transport.is_closing():
            self._reads = reads
            if reads:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()
