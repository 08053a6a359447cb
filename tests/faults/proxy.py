"""A way to a server on which connections are cut and requests are held up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from trident.testing.servers.process import wait_until

_AT_ONCE = 2**16


class Proxy:
    """Hands on what client and server say to each other, until told otherwise.

    Parameters
    ----------
    host, port : str, int
        The server.

    Attributes
    ----------
    host, port : str, int
        Where the proxy itself listens.
    replied : int
        How many bytes of replies it has handed on.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self._listening.getsockname()
        self.replied = 0
        self._cut_at: int | None = None
        self._asked: _Asked | None = None
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def cut(self, after: int) -> None:
        """Cut the connection on which the reply comes that has the byte `after` so many."""
        with self._lock:
            self._cut_at = self.replied + after

    def when_asked(self, text: bytes, do: Callable[[], object], times: int = 1) -> None:
        """Do something before a request with `text` is handed on, the one after so many."""
        with self._lock:
            self._asked = _Asked(text, do, times)

    def hold_when_asked(self, text: bytes) -> None:
        """Keep back a request with `text`, and what follows it on its way, until `release`."""
        self._released.clear()
        self.when_asked(text, self._released.wait)

    def release(self) -> None:
        """Let what was kept back arrive, and return when the server has answered it."""
        replied = self.replied
        self._released.set()
        wait_until(lambda: self.replied > replied)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        with self._lock:
            for end in [self._listening, *self._ends]:
                _shut(end)
        for thread in self._threads:
            thread.join()
        for end in [self._listening, *self._ends]:
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the end
            while True:
                client, _ = self._listening.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        with self._lock:
            self._ends += [client, server]
            for pump in (self._requests, self._replies):
                thread = threading.Thread(target=pump, args=(client, server), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_AT_ONCE):
                with self._lock:
                    asked = self._asked
                    due = asked is not None and asked.is_due(data)
                    if due:
                        self._asked = None
                if due:
                    asked.do()
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_AT_ONCE):
                with self._lock:
                    left = len(data) if self._cut_at is None else self._cut_at - self.replied
                    cut = left < len(data)
                    if cut:
                        self._cut_at = None
                    self.replied += len(data)
                with suppress(OSError):  # who asks has gone; the server goes on
                    client.sendall(data[:left])
                if cut:
                    break
        _shut(client)
        _shut(server)


class _Asked:
    """What is waited for in requests."""

    def __init__(self, text: bytes, do: Callable[[], object], times: int) -> None:
        self.do = do
        self._text = text
        self._left = times
        self._tail = b""

    def is_due(self, data: bytes) -> bool:
        seen = self._tail + data
        self._left -= seen.count(self._text)
        self._tail = seen[-len(self._text) + 1 :]
        return self._left <= 0


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
