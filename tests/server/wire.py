"""What tests of connections read from, and a transport that keeps what is written."""

from __future__ import annotations

import asyncio
import socket
from typing import Any


def everything(client: socket.socket) -> bytes:
    """All that the server sends until it ends the connection."""
    received = b""
    while True:
        try:
            more = client.recv(2**16)
        except ConnectionResetError:
            return received
        if not more:
            return received
        received += more


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    abort = write_eof = close

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...
