"""The plugin for pytest: fixtures for tests of topologies, and servers that start when asked for.

pytest loads it in every project of an environment that has this package, so that it imports the
rest late, and lies outside of `trident.testing`, which loads the API.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
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
    "mariadb_server",
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


def _shared(name: str, home: str, what: str, apart: str = "with a prefix") -> Any:
    """A fixture of the server of a name; its class, `home`, is imported by those that need it."""

    def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
        from trident.testing.servers.promised import served

        module, _, kind = home.partition(":")
        made = getattr(import_module(f"trident.testing.servers.{module}"), kind)
        with served(name, lambda: made(tmp_path_factory.mktemp(module))) as running:
            yield running

    server.__doc__ = f"{what}, which all tests share, each {apart} of its own."
    return pytest.fixture(scope="session")(server)


redis_server = _shared("REDIS", "redis:RedisServer", "A Redis server")
redis_cluster = _shared("REDIS_CLUSTER", "redis:RedisCluster", "A Redis Cluster of three masters")
memcached_server = _shared("MEMCACHED", "memcached:MemcachedServer", "A Memcached node")
hbase_server = _shared("HBASE", "hbase:HBaseServer", "HBase behind its Thrift gateway")
postgres_server = _shared("POSTGRES", "postgres:PostgresServer", "A PostgreSQL server")
mariadb_server = _shared("MARIADB", "mariadb:MariaDBServer", "A MariaDB server", "with tables")
kafka_broker = _shared("KAFKA", "kafka:KafkaServer", "A Kafka broker", "with topics")
zookeeper_server = _shared(
    "ZOOKEEPER", "zookeeper:ZooKeeperServer", "A ZooKeeper server", "below a path"
)
seaweedfs_server = _shared(
    "SEAWEEDFS", "seaweedfs:SeaweedServer", "An object store that speaks S3", "below a path"
)


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
