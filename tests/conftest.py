"""What the tests of every folder share, beside the fixtures that users have as well."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests import pairs, scheduling
from tests.servers import spark_kafka
from tests.servers.object_stores import AzuriteServer, MotoServer, StandIn
from tests.servers.postgres import PgBouncer
from tests.spark import java
from trident.testing.servers.memcached import MemcachedServers
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import QUICK
from trident.testing.servers.promised import PromisedServer, Served, served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["trident.pytest_plugin"]

# A slow machine makes no test fail.
settings.register_profile("tests", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=20)
settings.load_profile("quick" if QUICK in os.environ else "tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect no garbage while tests are collected: it would be looked for among ever more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let a report cross to the process that shows it, though its log has half a surrogate pair."""
    return _encodable((yield))


def _encodable(told: Any) -> Any:
    if isinstance(told, str):
        return told.encode("utf-8", "backslashreplace").decode()
    if isinstance(told, dict):
        return {name: _encodable(each) for name, each in told.items()}
    if isinstance(told, list | tuple):
        return type(told)(map(_encodable, told))
    return told


@pytest.fixture(scope="session", autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for temporary files, also of started programs; nothing without a name stays.

    What a process has left that tests killed has a name, by which the next one finds it.
    """
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        yield folder
    left = sorted(path.name for path in folder.glob("tmp*"))
    assert not left, f"{len(left)} temporary files or folders that a test has left: {left[:5]}"


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Have each JVM of Spark be there soon."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in java.submit_environment(*java.OPTIONS, *java.HEAP).items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for the whole run: a second JVM would cost every test seconds."""
    from trident.spark.session import local_session

    session = local_session(**spark_kafka.settings())
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Have the session compile plans as users' do, where results may depend on how they run."""
    for name in java.INTERPRETED:
        spark.conf.unset(name)
    yield
    for name, value in java.INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture(scope="session")
def spark_with_kafka(spark: SparkSession) -> SparkSession:
    """The same session, which can read Kafka; its jars are promised as servers are."""
    spark_kafka.jars()
    return spark


@pytest.fixture(scope="session")
def memcached_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two Memcached nodes that all tests share: each keeps to keys of its own."""
    folder = tmp_path_factory.mktemp("memcached-nodes")
    with served("MEMCACHED_NODES", lambda: MemcachedServers(folder)) as nodes:
        yield nodes


@pytest.fixture(scope="session")
def pgbouncer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of its own behind a pooler of transactions, shared likewise."""
    folder = tmp_path_factory.mktemp("pgbouncer")
    with ExitStack() as running:

        def started() -> PgBouncer:
            server = running.enter_context(PostgresServer(folder / "server"))
            return PgBouncer(folder / "pooler", server)

        with served("PGBOUNCER", started) as pooler:
            yield pooler


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A folder for SQLite's files, as the beginning of a URL."""
    return PromisedServer(f"sqlite:{tmp_path_factory.mktemp('sqlite')}")


@pytest.fixture(scope="session")
def memory() -> Served:
    """The memory of this process, likewise."""
    return PromisedServer("memory:")


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """S3 in memory, which all tests share, each below a path of its own."""
    with served("MOTO", lambda: MotoServer(tmp_path_factory.mktemp("moto"))) as server:
        yield server


@pytest.fixture(scope="session")
def azurite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Azure's store likewise."""
    with served("AZURITE", lambda: AzuriteServer(tmp_path_factory.mktemp("azurite"))) as server:
        yield server


@pytest.fixture(scope="session")
def google_store() -> Iterator[Served]:
    """A stand-in for Google's likewise."""
    with StandIn() as server:
        yield PromisedServer(server.url("gs"))


_ZOOKEEPER = ("zookeeper", "zookeeper_server")
"""Fixtures that a test asks for, or is given the name of."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what asks for the session, so that `-m "not spark"` needs no Java.

    A server of ZooKeeper is started from Spark's jars.
    """
    for item in items:
        asked = {*getattr(item, "fixturenames", ())}
        if callspec := getattr(item, "callspec", None):
            asked |= {value for value in callspec.params.values() if value in _ZOOKEEPER}
        # of a docstring: what it runs
        examples = getattr(getattr(item, "dtest", None), "examples", ())
        starts = any("local_session(" in example.source for example in examples)
        if asked & {"spark", *_ZOOKEEPER} or starts:
            item.add_marker("spark")
    if left := pairs.left_out(items):
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=[*left])
    scheduling.begin_with_the_longest(items)
    # A full collection of garbage would look through ten thousand tests each time.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a file in one process, and those of HBase."""
    if config.getoption("dist") == "loadfile":
        return scheduling.FilesAndHBase(config, log)
    return None
