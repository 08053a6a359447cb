"""Ports that servers can have to themselves."""

from __future__ import annotations

import os
import random
import socket

# Below those that systems give to outgoing connections: a client that knocks at a dead server's
# port there may be connected to itself, and the server could not have its port again.
_LOWEST, _HIGHEST = 12_000, 22_000
_BUS = 10_000


def free_port() -> int:
    """Return a port that is free, and so is the one 10,000 above it, for Redis Cluster's bus."""
    own = _own_ports()
    for port in random.sample(own, len(own)):
        if _is_free(port) and _is_free(port + _BUS):
            return port
    raise RuntimeError(f"no port from {_LOWEST} to {_HIGHEST} is free")


def accepts(host: str, port: int) -> bool:
    """Tell whether someone takes connections there; an IPv6 address may be in brackets."""
    try:
        with socket.create_connection((host.strip("[]"), port), 3):
            return True
    except OSError:  # nobody does, or no host has that name
        return False


def _own_ports() -> range:
    """Those of this process, where tests run in several: no other may find the same one free."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return range(_LOWEST + number, _HIGHEST, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
