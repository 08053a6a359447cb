"""A response over HTTP that has come as a whole at a given time, or never."""

from __future__ import annotations

import socket
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from time import monotonic
from typing import Any


class TimedResponse(HTTPResponse):
    """A response, of a server that may send a byte now and then, and has no more time for that.

    Parameters
    ----------
    sock : socket
        Where it comes from.
    until : float
        When it must have come, by ``time.monotonic()``.
    """

    def __init__(self, sock: socket.socket, *given: Any, until: float, **named: Any) -> None:
        super().__init__(sock, *given, **named)
        timed: Any = BufferedReader(_Until(sock, until))
        self.fp.close()
        self.fp = timed


class _Until(RawIOBase):
    """What a socket receives until a given time."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        # Open for as long as this is, though the connection closes the socket before the body.
        self._received = sock.makefile("rb", buffering=0)
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(max(0.001, self._until - monotonic()))
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()
