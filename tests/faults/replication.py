"""How far servers are in what they share."""

from __future__ import annotations

from trident.testing.servers.redis import RedisServer


def offset(server: RedisServer) -> str:
    """Return how far a Redis server is in the history that it shares with its replicas."""
    lines = server.cli("info", "replication").splitlines()
    return next(line for line in lines if line.startswith("master_repl_offset:"))
