"""The plugin for pytest: fixtures for tests of topologies, and servers that start when asked for.

pytest loads it in every project of an environment that has this package, so that it imports the
rest late, and lies outside of `trident.testing`, which loads the API.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from trident.api.topology import TridentTopology
    from trident.testing import Tester
    from trident.testing.servers.process import MissingServer
    from trident.testing.servers.promised import Served

__all__ = [
    "checkpoint",
    "hbase_server",
    "kafka_broker",
    "memcached_server",
    "postgres_server",
    "redis_cluster",
    "redis_server",
    "seaweedfs_server",
    "tester",
    "zookeeper_server",
]


@pytest.fixture
def tester() -> Iterator[Callable[..., Tester]]:
    """Make testers of topologies, by the arguments of `Tester`; the test's end closes them."""
    from trident.testing import Tester

    with ExitStack() as made:

        def make(topology: TridentTopology, spark: Any = None, **options: Any) -> Tester:
            return made.enter_context(Tester(topology, spark, **options))

        yield make


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """The path of an empty folder, for ``start(checkpoint=…)``."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    return str(folder)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Redis server that all tests share, each with a prefix of its own."""
    with _served("REDIS", "redis:RedisServer", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Redis Cluster, of three masters, that all tests share, each with a prefix of its own."""
    with _served("REDIS_CLUSTER", "redis:RedisCluster", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def memcached_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Memcached node that all tests share, each with a prefix of its own."""
    with _served("MEMCACHED", "memcached:MemcachedServer", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def hbase_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """HBase behind its Thrift gateway, which all tests share, each with a prefix of its own."""
    with _served("HBASE", "hbase:HBaseServer", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A PostgreSQL server that all tests share, each with a prefix of its own."""
    with _served("POSTGRES", "postgres:PostgresServer", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Kafka broker that all tests share, each with topics of its own."""
    with _served("KAFKA", "kafka:KafkaServer", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A ZooKeeper server, which all tests share, each below a path of its own."""
    with _served("ZOOKEEPER", "zookeeper:ZooKeeperServer", tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def seaweedfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """An object store that speaks S3, which all tests share, each below a path of its own."""
    with _served("SEAWEEDFS", "seaweedfs:SeaweedServer", tmp_path_factory) as server:
        yield server


def _served(
    name: str, home: str, folders: pytest.TempPathFactory
) -> AbstractContextManager[Served]:
    """Return the server of a name; its class, `home`, is imported by those that need it."""
    from trident.testing.servers.promised import served

    module, _, server = home.partition(":")
    made = getattr(import_module(f"trident.testing.servers.{module}"), server)
    return served(name, lambda: made(folders.mktemp(module)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Skip a test whose server can't be had, or fail it where one is promised."""
    if call.excinfo is None or "trident.testing.servers.process" not in sys.modules:
        return
    from trident.testing.servers.process import MissingServer
    from trident.testing.servers.promised import BrokenPromise

    error = call.excinfo.value
    if isinstance(error, MissingServer):
        call.excinfo = pytest.CallInfo.from_call(lambda: _do_without(error), call.when).excinfo
    elif isinstance(error, BrokenPromise):
        call.excinfo = pytest.CallInfo.from_call(lambda: _fail(str(error)), call.when).excinfo


def _do_without(missing: MissingServer) -> NoReturn:
    from trident.testing.servers.process import QUICK

    if os.environ.get("CI") == "true" and QUICK not in os.environ:
        _fail(f"CI is true, so nothing may be skipped: {missing}")
    pytest.skip(str(missing))


def _fail(reason: str) -> NoReturn:
    pytest.fail(reason, pytrace=False)  # also as a trace might show the address, with a password
