"""A connection that answers its requests one after the other, whatever protocol it speaks."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Literal

from trident.server.connection import NEVER, Connections, ServerConnection

_HALF_CLOSED = 1.0
"""Seconds for an answer to a client that sends no more: most of those have hung up."""

Phase = Literal["idle", "coming", "answered", "untaken", "half closed", "ended"]
"""What a connection waits for: a request, the rest of one, its answer, the client to take it, the
answer for a client that sends no more, or the client to close its end."""


class AnsweringConnection(ServerConnection, ABC):
    """A connection that answers its requests one after the other.

    While requests wait, nothing more is read of it; while the client doesn't take an answer, no
    other one is made. `idle` is how many seconds it may be without a request.
    """

    def __init__(self, connections: Connections, idle: float) -> None:
        self.among = connections
        self.limits = connections.limits
        self.until = NEVER
        self.loop = asyncio.get_running_loop()
        self._idle = idle
        self._phase: Phase = "idle"
        self._task: asyncio.Task[None] | None = None
        self.pipeline: deque[Any] = deque()
        """The requests that wait for their turn, from right to left."""
        self._begun = False
        """Whether a request has come in part."""
        self._ends = self._half_closed = False
        self._last = b""
        """The answer to a request that is refused; the connection ends after it."""

    @abstractmethod
    def _take(self, data: bytes) -> None:
        """Find the requests in what has come."""

    @abstractmethod
    def _answer_next(self) -> None:
        """Begin to answer the request whose turn it is, in a task."""

    def _is_answering(self) -> bool:
        """Whether a request is being answered that has come as a whole."""
        return self._task is not None

    def _join(self, transport: asyncio.Transport, seconds: float) -> bool:
        """Become one of the server's connections, whose first request begins within `seconds`;
        False where the server takes no more."""
        self.transport = transport
        if not self.among.add(self):
            self._ends = True
            return False
        transport.set_write_buffer_limits(high=1, low=0)  # so that all untaken bytes are reported
        self.until = self.loop.time() + seconds
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self.among.remove(self)
        self.set_received(0)
        self.until = NEVER
        self._abandon()  # nobody waits for the answer: its call leaves the queue

    def data_received(self, data: bytes) -> None:
        if self._ends:
            return
        self._take(data)
        if self.pipeline and self.among.received > self.limits.received:
            self.abort()
        self._go_on()

    def pause_writing(self) -> None:
        self.look()

    def resume_writing(self) -> None:
        self.look()

    def look(self) -> None:
        super().look()
        self._go_on()

    def out_of_time(self) -> None:
        if self._phase in ("untaken", "ended") or self.transport.is_closing():
            self.abort()
        else:
            self._close()

    def close_when_idle(self) -> None:
        self._ends = True
        if self._task is None and not self.pipeline:
            self._close()

    def _go_on(self) -> None:
        """Begin with the next request, or wait for one."""
        if self._phase == "ended":
            return
        if self._task is None and not self.untaken() and not self.transport.is_closing():
            if self.pipeline:
                self._answer_next()
            elif self._ends:
                self._finish()
                return
        self._set_until()
        if self.pipeline:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()  # so as to see that the client hangs up

    def _set_until(self) -> None:
        """Limit the time of what the client has to do now, counted from the begin of the phase."""
        phase: Phase = "idle"
        seconds = self._idle
        if self.untaken():
            phase, seconds = "untaken", self.limits.slow
        elif self._half_closed:
            phase, seconds = "half closed", min(_HALF_CLOSED, self.limits.slow)
        elif self._is_answering():
            phase, seconds = "answered", NEVER
        elif self._begun:
            phase, seconds = "coming", self.limits.slow
        if phase != self._phase:
            self._phase = phase
            self.until = self.loop.time() + seconds

    def _abandon(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _finish(self) -> None:
        """Send the last answer, and end.

        What the client still sends is thrown away meanwhile: it reads nothing before it has sent
        all, and a closed connection would take the answer from it.
        """
        if self._last:
            self.transport.write(self._last)
        if self._last and self.transport.can_write_eof() and not self._half_closed:
            self.transport.resume_reading()
            self.transport.write_eof()
            self._end()
        else:
            self._close()

    def _close(self) -> None:
        self.transport.close()
        self._end()

    def _end(self) -> None:
        self._phase = "ended"
        self.until = self.loop.time() + self.limits.slow  # then it is aborted
