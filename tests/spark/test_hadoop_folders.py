"""Spark's own checkpoint at a URL, in S3 and in HDFS: as folders, and where drivers are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark import SparkContext

from tests.forks import Ended
from tests.spark import remote_program
from tests.spark.drivers import Drivers
from tests.spark.files import wait_for
from tests.spark.lines import Lines
from trident.backends import sqlite
from trident.log.errors import LogUnavailableError
from trident.log.folders import Folder
from trident.log.staging import StagedFile, StagingArea
from trident.spark.hadoop_folder import HadoopFolder
from trident.testing.servers import java
from trident.testing.servers.promised import Served
from trident.testing.servers.seaweedfs import SeaweedServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    jars = [jar for name in ("s3a", "hdfs") for jar in java.jars(name).glob("*.jar")]
    with closing(Drivers(tmp_path_factory.mktemp("drivers"), jars)) as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedServer]:
    """A server that tests kill."""
    with SeaweedServer(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="module")
def hdfs(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a small HDFS in the drivers' JVM."""
    hadoop = drivers.jvm.org.apache.hadoop
    settings = hadoop.conf.Configuration()
    settings.set("hdfs.minidfs.basedir", str(tmp_path_factory.mktemp("hdfs")))
    cluster = hadoop.hdfs.MiniDFSCluster.Builder(settings).numDataNodes(1).build()
    yield cluster.getURI().toString()
    cluster.shutdown()


class Counting:
    """A count of words and draws, by drivers that have Spark's checkpoint at a URL."""

    def __init__(
        self, drivers: Drivers, store: SeaweedServer, url: str, checkpoint: str, folder: Path
    ) -> None:
        self.drivers = drivers
        self.store = store
        self.url = url
        self.checkpoint = checkpoint
        self.folder = folder
        no_session: Any = None
        self.lines = Lines(no_session, folder)

    def write(self, batches: int) -> None:
        """Add files, one a batch."""
        self.lines.write(*[f"all batches\nw{number} w{number % 3}" for number in range(batches)])

    def arguments(self, way: str = "", txid: int = 0) -> Sequence[Any]:
        """What the program is run with."""
        hadoop = settings_of(self.store).items()
        settings = {f"spark.hadoop.{name}": value for name, value in hadoop}
        return self.folder, self.checkpoint, self.url, json.dumps(settings), way, txid

    @contextmanager
    def held(self, point: str, txid: int) -> Iterator[Future[Ended]]:
        """Run a driver, which is held at a point by then."""
        with ThreadPoolExecutor() as pool:
            arguments = self.arguments(f"hold {point}", txid)
            running = pool.submit(self.drivers.run, remote_program, *arguments)
            wait_for(self.folder / "reached")
            yield running

    def finish(self) -> None:
        """Run a driver to its end, and check."""
        ended = self.drivers.run(remote_program, *self.arguments())
        assert ended.code == 0, ended.printed
        self.check()

    def check(self) -> None:
        """Everything was counted, once, and each line as it was computed first."""
        assert self.lines.counts == self.lines.expected
        state: Any = sqlite.transactional(self.folder / "drawn.db", "drawn").makeState()
        with closing(state):
            drawn = dict(state.getTuples())
        lines = 2 * len(list(self.lines.texts.iterdir()))
        assert (len(drawn), set(drawn.values())) == (lines, {1})


def settings_of(store: SeaweedServer) -> dict[str, str]:
    """Hadoop's settings for a store, which is not long waited for."""
    settings = {
        "endpoint": store.endpoint,
        "endpoint.region": "us-east-1",
        "access.key": store.key,
        "secret.key": store.secret,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "attempts.maximum": "1",
        "retry.limit": "1",
    }
    return {f"fs.s3a.{name}": value for name, value in settings.items()}


@pytest.fixture(params=["local", "s3a", "hdfs"])
def folder(
    request: pytest.FixtureRequest,
    drivers: Drivers,
    store: SeaweedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Folder:
    if request.param == "local":
        return Folder(tmp_path / "a%2Fb")
    # PySpark asks its context's JVM about errors; the tests' own session has another one.
    monkeypatch.setattr(SparkContext, "_gateway", drivers.gateway)
    monkeypatch.setattr(SparkContext, "_jvm", drivers.jvm)
    hadoop = drivers.jvm.org.apache.hadoop
    settings = hadoop.conf.Configuration()
    for name, value in settings_of(store).items():
        settings.set(name, value)
    place = request.getfixturevalue("hdfs") if request.param == "hdfs" else "s3a://trident"
    url = f"{place}/{uuid4().hex}"
    files = hadoop.fs.Path(url).getFileSystem(settings)
    return HadoopFolder(drivers.jvm, files, url).below("a%2Fb")


def test_a_folder_has_what_was_written_and_not_removed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident.spark.hadoop_folder._CHUNK", 1000)
    for _ in range(2):
        assert (folder.names(), folder.read("one")) == ([], None)
        folder.make()
    folder.write("one", [b"", b"a" * 2500, memoryview(b"b\0\xff")])
    assert folder.read("one") == b"a" * 2500 + b"b\0\xff"
    folder.write("one", [b"another"])
    folder.below("two").write("three", [])
    assert (folder.read("one"), folder.below("two").read("three")) == (b"another", b"")
    assert sorted(folder.names()) == ["one", "two"]
    for _ in range(2):
        folder.remove("one")
    assert folder.names() == ["two"]


def test_a_write_that_fails_leaves_nothing(folder: Folder) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise InterruptedError

    with pytest.raises((InterruptedError, LogUnavailableError)):
        folder.write("one", parts())
    assert folder.names() == []


@pytest.mark.parametrize("folder", ["s3a", "hdfs"], indirect=True)
def test_a_file_that_is_removed_while_it_is_read_is_none(folder: HadoopFolder) -> None:
    files = folder._files

    class Removing:
        def open(self, path: Any) -> Any:
            files.delete(path, False)
            return files.open(path)

        def __getattr__(self, name: str) -> Any:
            return getattr(files, name)

    folder.write("one", [b"all"])
    folder._files = Removing()
    assert folder.read("one") is None


@pytest.mark.parametrize("folder", ["s3a"], indirect=True)
def test_errors_name_the_place_and_no_secret(folder: HadoopFolder) -> None:
    login = HadoopFolder(folder._jvm, folder._files, "wrong://me:hidden@bucket/a b").below("c")
    with pytest.raises(LogUnavailableError) as raised:
        login.read("one")
    assert "wrong://***@bucket/a b/c" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_of_two_files_of_a_batch_the_later_runs_counts(folder: Folder) -> None:
    area = StagingArea(folder)
    for claim in (12, 3):
        area.stage(StagedFile("a1", claim, "q1", 7, "5f3a", "91c0", {"count": b"%d" % claim}))
    folder.write("0123456789abcdef.tmp", [b"half"])
    [last] = area.staged()
    assert (last.claim, bytes(last.parts["count"])) == (12, b"12")
    assert len(folder.names()) == 2
    area.remove(last)
    assert folder.names() == []


@pytest.fixture
def counting(drivers: Drivers, store: SeaweedServer, tmp_path: Path) -> Counting:
    name = uuid4().hex
    checkpoint = store.url.replace("?", f"/log/{name}?")
    return Counting(drivers, store, f"s3a://{store.bucket}/spark/{name}", checkpoint, tmp_path)


def test_every_line_counts_once_over_kills_of_drivers(counting: Counting) -> None:
    counting.write(5)
    for point, txid in (("after stage", 2), ("after write", 4)):
        counting.drivers.kill(remote_program, *counting.arguments(f"kill {point}", txid))
    counting.finish()


def test_so_it_does_in_hdfs(counting: Counting, hdfs: str) -> None:
    counting.url = f"{hdfs}/words"
    counting.write(3)
    counting.drivers.kill(remote_program, *counting.arguments("kill after stage", 1))
    counting.finish()


def test_a_batch_waits_for_the_store_that_it_is_staged_in(counting: Counting) -> None:
    counting.write(3)
    with counting.held("before stage", 2) as running:
        counting.store.kill()
        (counting.folder / "release").touch()
        wait_for(counting.folder / "waits")
        counting.store.start()
        ended = running.result()
    assert ended.code == 0, ended.printed
    counting.check()


def test_a_run_ends_where_spark_cannot_write_and_the_next_one_goes_on(
    counting: Counting, redis_server: Served
) -> None:
    counting.checkpoint = f"{redis_server.url}?prefix={uuid4().hex}"
    counting.write(3)
    with counting.held("after stage", 2) as running:
        counting.store.kill()
        (counting.folder / "release").touch()
        ended = running.result()
        counting.store.start()
    assert ended.code == 1
    assert "Spark could not run the batch" in ended.printed
    assert f"{counting.url}/lines/spark/commits" in ended.printed
    counting.finish()
