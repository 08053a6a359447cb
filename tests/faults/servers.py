"""Servers that a test may hurt, because nobody else uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from trident.testing.servers.promised import served
from trident.testing.servers.redis import RedisServer

Server = TypeVar("Server", bound=AbstractContextManager[Any])


@contextmanager
def own(made: Callable[[], Server]) -> Iterator[Server]:
    """Give the server that `made` makes, started; where it can't be had the test is skipped."""
    with served("OWN_SERVER", made) as server:
        yield server  # type: ignore[misc]


def offset(server: RedisServer) -> str:
    """Return how far a Redis server is in the history that it shares with its replicas."""
    lines = server.cli("info", "replication").splitlines()
    return next(line for line in lines if line.startswith("master_repl_offset:"))
