"""Stores of every kind, each behind a proxy, on servers that tests may hurt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy
from tests.faults.word_count import WordCount
from trident.backends import hbase, memcached, postgres, redis
from trident.states.maps.factory import MapStateFactory
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.memcached import MemcachedServer
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import ServerProcess
from trident.testing.servers.redis import RedisServer


@dataclass(frozen=True)
class Kind:
    """A kind of store.

    Parameters
    ----------
    server : str
        How errors call it.
    factory : callable
        From host, port and a prefix to a state's factory.
    write : bytes
        What is in a request that writes, and in none that reads.
    cut, silent : str
        What errors advise where a connection was cut, and where no answer came.
    """

    server: str
    factory: Callable[[str, int, str], MapStateFactory]
    write: bytes
    cut: str
    silent: str


KINDS = {
    "redis": Kind(
        "redis",
        lambda host, port, prefix: redis.opaque(host, port, timeout=1.0),
        b"MULTI",
        "did it restart, or drop this client?",
        "It may be paused",
    ),
    "memcached": Kind(
        "memcached",
        lambda host, port, prefix: memcached.opaque([f"{host}:{port}"], timeout=1.0),
        b"cas ",
        "Did it restart?",
        "Is it paused or overloaded?",
    ),
    "hbase": Kind(
        "hbase",
        lambda host, port, prefix: hbase.opaque(host, port, prefix=prefix, timeout=2.0),
        b"mutateRowsTs",
        "Look at the gateway's log",
        "give a longer timeout=",
    ),
    "postgres": Kind(
        "postgresql",
        lambda host, port, prefix: postgres.opaque(
            host, "postgres", prefix, port=port, user=PostgresServer.user, timeout=1.0
        ),
        b"INSERT INTO",
        "did it restart, or drop this client?",
        "It may be paused",
    ),
}


@dataclass(frozen=True)
class Store:
    """A store on a server behind a proxy, and a word count in it.

    Parameters
    ----------
    kind : Kind
        What it is.
    server : ServerProcess
        The server.
    proxy : Proxy
        The word count's way to it.
    words : WordCount
        What goes on.
    """

    kind: Kind
    server: ServerProcess
    proxy: Proxy
    words: WordCount

    @property
    def place(self) -> str:
        """How errors name it."""
        return f"{self.kind.server} at {self.proxy.host}:{self.proxy.port}"


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store in turn."""
    kind = KINDS[request.param]
    server: ServerProcess = request.getfixturevalue(f"own_{kind.server}")
    with Proxy(server.host, server.port) as proxy:
        factory = kind.factory(proxy.host, proxy.port, tmp_path.name)
        yield Store(kind, server, proxy, WordCount(factory, tmp_path, batches=6))


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def own_memcached(tmp_path: Path) -> Iterator[MemcachedServer]:
    with MemcachedServer(tmp_path / "memcached") as server:
        yield server


@pytest.fixture(scope="session")
def own_hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBaseServer]:
    """One for all tests here, because it takes long to start; its table is there.

    A process meets files of other folders in between: a package's fixture would end there.
    """
    with HBaseServer(tmp_path_factory.mktemp("hbase")) as server:
        backing = hbase.opaque(server.host, server.port, timeout=60.0).store.open()
        backing.getControl()
        backing.close()
        yield server


@pytest.fixture(scope="session")
def own_postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One for all tests here likewise."""
    with PostgresServer(tmp_path_factory.mktemp("postgres")) as server:
        yield server
