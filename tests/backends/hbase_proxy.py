"""A stretch of network before a server, which tests can hurt."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Proxy:
    """Passes connections on to a server, and does to answers what a network can do to them.

    Parameters
    ----------
    host, port
        The server.

    Attributes
    ----------
    port : int
        Where clients connect to, on this machine.
    accepted : int
        How many connections were made.
    requests : int
        How often clients have sent something.
    """

    host = "127.0.0.1"

    def __init__(self, host: str, port: int) -> None:
        self._server = host, port
        self._listener = socket.create_server((self.host, 0))
        self.port = self._listener.getsockname()[1]
        self.accepted = 0
        self.requests = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._cut: int | None = None
        self._flows = threading.Event()
        self._flows.set()

    def cut_the_next_answer(self, after: int) -> None:
        """Let `after` bytes of it through, and close the connection."""
        self._cut = after

    def hold(self) -> None:
        """Keep answers back until :meth:`release`."""
        self._flows.clear()

    def release(self) -> None:
        self._flows.set()

    def close_connections(self) -> None:
        """Close all of them, as a server does that finds them idle."""
        for pair in self._pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_connections()
        self._threads[0].join()
        for pair in self._pairs:
            for end in pair:
                end.close()

    def _run(self, work: object, *arguments: object) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._pairs.append((client, server))
                self.accepted += 1
                self._run(self._pass_requests, client, server)
                self._run(self._pass_answers, server, client)

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(2**16):
                self.requests += 1
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(2**16):
                self._flows.wait()
                if self._cut is not None:
                    client.sendall(data[: self._cut])
                    self._cut = None
                    break
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)
            server.shutdown(socket.SHUT_RDWR)
