"""Memcached: one node, or several."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from trident.testing.servers.process import ServerGroup, ServerProcess, installed, is_root


class MemcachedServer(ServerProcess):
    """One Memcached server.

    Options are those of its command line: ``"-m", "1"`` for a megabyte of memory.
    """

    scheme = "memcached"
    program = "memcached"
    package = "memcached"

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder)
        self.options = options

    def command(self) -> Sequence[str]:
        place = ["-l", self.host, "-p", str(self.port), "-U", "0"]
        # It refuses to run as root.
        user = ["-u", "nobody"] if is_root() else []
        return [installed(self.program, self.package), *place, *user, *self.options]

    def answers(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as asked:
                asked.sendall(b"version\r\n")
                return asked.recv(100).startswith(b"VERSION")
        except OSError:
            return False


class MemcachedServers(ServerGroup[MemcachedServer]):
    """Two nodes, which know nothing of each other."""

    scheme = "memcached"

    def __init__(self, folder: Path) -> None:
        super().__init__([MemcachedServer(folder / f"node{number}") for number in range(2)])
