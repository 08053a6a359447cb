"""A server that says what a test wants it to, for what a real one does too rarely."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Replies:
    """Answers ``+OK`` to the driver's greeting, then `reply` to all else, and hangs up.

    Parameters
    ----------
    reply : bytes
        What is sent.
    pause : float
        Seconds until it is.
    """

    host = "127.0.0.1"

    def __init__(self, reply: bytes, pause: float = 0.0) -> None:
        self._reply = reply
        self._pause = pause
        self._ended = threading.Event()
        self._listener = socket.create_server((self.host, 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}"

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                while data := connection.recv(65536):
                    if b"SETINFO" in data:
                        connection.sendall(b"+OK\r\n")
                    elif b"QUIT" in data:
                        return
                    else:
                        self._ended.wait(self._pause)
                        connection.sendall(self._reply)
                        break

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        with socket.create_connection((self.host, self.port)) as last:
            last.sendall(b"QUIT")
        self._thread.join()
        self._listener.close()
