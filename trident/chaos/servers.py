"""Servers that the command starts, and what it does to each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol

from trident.backends.state_url import StateURL
from trident.states.errors import UsageError
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.mariadb import MariaDBServer
from trident.testing.servers.memcached import MemcachedServers
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import MissingServer, wait_until
from trident.testing.servers.redis import RedisCluster, RedisServer
from trident.testing.servers.seaweedfs import SeaweedServer

_DURABLE = ("--appendonly", "yes", "--appendfsync", "always")

TIMEOUT = 0.4
"""Seconds that an answer of a server that was started here may take."""
_PATIENCE = 30.0
Trouble = Callable[[], str]
"""Does something to a server, and returns what."""


@dataclass(frozen=True)
class Started:
    """A server that runs; `options` are further ones of the state's URL."""

    url: str
    troubles: Sequence[Trouble] = ()
    timeout: float | None = None
    options: Mapping[str, str] = field(default_factory=dict)


class ReplicatedCluster(RedisCluster):
    """Three masters, each with a replica."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, replicas=1, node_timeout=1000)
        self._choose = random.Random(1)

    def fail_over(self) -> str:
        """Kill a master, and start it again when its replica has taken over."""
        master = self._choose.choice([node for node in self.nodes if _role(node) == "master"])
        others = [node for node in self.nodes if node is not master]
        masters = sum(_role(node) == "master" for node in others)
        master.kill()
        wait_until(lambda: sum(_role(node) == "master" for node in others) > masters, 60)
        master.start()
        wait_until(self.is_complete, 60)
        return "failed over"


def _role(node: RedisServer) -> str:
    lines = node.cli("info", "replication").splitlines()
    return next((line[5:] for line in lines if line.startswith("role:")), "")


StartServer = Callable[[Path], AbstractContextManager[Started]]


def _alone(
    make: Callable[[Path], Any],
    away: float = 2 * TIMEOUT,
    timeout: float | None = None,
    what: str = "",
) -> StartServer:
    """Start one server, which is paused for `away` seconds at a time, and restarted."""

    @contextmanager
    def run(folder: Path) -> Iterator[Started]:
        with make(folder) as server:
            troubles = [
                lambda: f"{what}{pause(server, away)}",
                lambda: f"{what}{restart(server)}",
            ]
            yield Started(server.url, troubles, timeout)

    return run


@contextmanager
def _memcached(folder: Path) -> Iterator[Started]:
    # It keeps nothing over a restart, so it is only paused.
    with MemcachedServers(folder) as servers:
        yield Started(servers.url, [partial(pause, node) for node in servers.nodes])


@contextmanager
def _redis_cluster(folder: Path) -> Iterator[Started]:
    with ReplicatedCluster(folder) as cluster:
        troubles: list[Trouble] = [cluster.fail_over, partial(pause, cluster.nodes[0])]
        # A write that no replica has yet would be lost with its master.
        options = {"wait_replicas": "1", "wait_timeout": "0.3", "partitions": "6"}
        yield Started(cluster.url, troubles, options=options)


Servers = Mapping[str, StartServer]
STORES: Servers = {
    "redis": _alone(lambda folder: RedisServer(folder, *_DURABLE)),
    "redis+cluster": _redis_cluster,
    "memcached": _memcached,
    "postgresql": _alone(PostgresServer),
    "hbase": _alone(HBaseServer, 3.0, 2.0),
}
# A transaction, or the wait for another one's locks, takes longer than an answer.
DATABASES: Servers = {
    **dict.fromkeys(("postgresql", "postgres"), _alone(PostgresServer, 3.0, 2.0)),
    **dict.fromkeys(("mysql", "mariadb"), _alone(MariaDBServer, 3.0, 2.0)),
}
LOGS: Servers = {"s3": _alone(SeaweedServer, 1.5, what="checkpoint ")}
SOURCES: Servers = {"kafka": _alone(KafkaServer, 3.0, what="broker ")}


@contextmanager
def started(option: str, scheme: str, servers: Servers, folder: Path) -> Iterator[Started]:
    """Start the server of a scheme, which an option of the command names."""
    if scheme not in servers:
        raise UsageError(
            f"{option}: the URL names no host, and no server is started for", scheme, [*servers]
        )
    try:
        with servers[scheme](folder / scheme) as server:
            yield server
    except MissingServer as missing:
        raise UsageError(f"{option} {scheme}: {missing}") from None


@contextmanager
def checkpoints(text: str | None, folder: Path) -> Iterator[Started]:
    """Give where checkpoints are, each below a path of its own; start a SeaweedFS for ``s3:``."""
    url = StateURL.parse(text) if text else None
    if url is None or (url.hosts and url.scheme in ("s3", "az", "gs", "zookeeper")):
        yield Started(text or "")
    elif text != "s3:":
        what = "--checkpoint: it is s3:, for which a server is started, or a URL with a path, found"
        raise UsageError(what, str(url))
    else:
        with started("--checkpoint", "s3", LOGS, folder) as server:
            yield replace(server, url=f"{server.url}&timeout=1")


class Hurtable(Protocol):
    """A server that is ours."""

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


def pause(server: Hurtable, seconds: float = 2 * TIMEOUT) -> str:
    """Stop a server for longer than its clients wait for an answer."""
    server.pause()
    sleep(seconds)
    server.resume()
    return "paused"


def restart(server: Hurtable) -> str:
    server.kill()
    deadline = monotonic() + _PATIENCE
    while True:
        try:
            server.start()
        except RuntimeError:
            # Of PostgreSQL's processes one may live for a moment longer, and has its memory.
            if monotonic() > deadline:
                raise
            sleep(0.2)
        else:
            return "restarted"
