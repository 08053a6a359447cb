"""Spouts on Spark Connect."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests import forks
from tests.faults.proxy import Proxy
from tests.spark import connect_program
from tests.spark.connect import connected
from tests.spark.files import FileMap, Files
from tests.spark.shelves import Shelf
from tests.spark.test_tasks import WORDS, in_files, stored
from tests.topologies.conftest import feed
from trident import Count, FeederBatchSpout, MemoryMapState, TridentTopology
from trident.batch.errors import OutageError
from trident.errors import GuaranteeWarning
from trident.operation_error import OperationError
from trident.spark.errors import EngineLostError, SparkSessionError
from trident.spouts.feeder import FeedError
from trident.states import NonTransactionalMap, OpaqueMap, TransactionalMap
from trident.states.errors import StateUnavailableError
from trident.testing.servers.connect import ConnectServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}
    with ConnectServer(tmp_path_factory.mktemp("connect"), settings) as server:
        yield server


@pytest.fixture(scope="module")
def spark(server: ConnectServer) -> Iterator[SparkSession]:
    with connected(server.url) as session:
        yield session


def test_tasks_count_words_once_in_states_of_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).groupBy("word")
    counts = []
    for kind in (OpaqueMap, TransactionalMap, NonTransactionalMap):
        (tmp_path / kind.__name__).mkdir()
        counts.append(kind.factory(Files(str(tmp_path / kind.__name__)), name=kind.__name__))
        stream.persistentAggregate(counts[-1], Count(), kind.__name__)
    with pytest.warns(GuaranteeWarning):
        run = topology.start(spark, tmp_path / "log", engine="spark")
    with run:
        feed(run, spout, [(word,) for word in WORDS], [("w3",), ("new",)])
    expected = Counter([*WORDS, "w3", "new"])
    for factory in counts:
        assert stored(factory, [*expected, "none"]) == {**expected, "none": None}


@dataclass(frozen=True)
class OnlyHere(Files):
    """A map that only the process which has made this reaches."""

    process: int = field(default_factory=os.getpid)

    def __call__(self) -> FileMap:
        if os.getpid() != self.process:
            raise StateUnavailableError("the map", "no network here")
        return super().__call__()


def test_states_that_no_task_reaches_are_hosted_by_the_driver_where_a_start_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    counts = OpaqueMap.factory(OnlyHere(str(tmp_path)), name="counts")
    stream = topology.newStream("words", spout).groupBy("word")
    stream.persistentAggregate(counts, Count(), "count")
    with topology.start(spark, tmp_path / "log", engine="spark", patience=0) as run:
        with pytest.raises(FeedError):
            spout.feed([("a",)])
        with pytest.raises(OutageError, match=r"no network here.*start\(hosted='driver'\)"):
            run.awaitTermination(60)
    with topology.start(spark, tmp_path / "log", engine="spark", hosted="driver") as run:
        feed(run, spout, [("a",), ("b",)], [("a",)])
    assert stored(counts, ["a", "b"]) == {"a": 2, "b": 1}


def test_a_killed_driver_leaves_nothing_that_counts_twice(
    server: ConnectServer, spark: SparkSession, tmp_path: Path
) -> None:
    shelf = Shelf(str(tmp_path))
    for name in "abc":
        shelf.add(name, [(text, 1) for text in "xyxzx"])
    killed = forks.run(connect_program, server.url, tmp_path, "before commit", 2, timeout=280)
    assert killed.code == -signal.SIGKILL, killed.printed
    connect_program.count(spark, tmp_path)
    assert stored(in_files(tmp_path / "state"), list("xyz")) == {"x": 9, "y": 3, "z": 3}
    emitted = {process for process, what, *_ in shelf.events if what == "emitted"}
    assert emitted
    assert os.getpid() not in emitted


def test_a_streaming_frame_is_refused_with_what_to_do(spark: SparkSession) -> None:
    topology = TridentTopology()
    topology.newStream("ticks", spark.readStream.format("rate").load()).peek(print)
    with pytest.raises(SparkSessionError, match=r"stream 'ticks'.*read the source by a spout"):
        topology.start(spark)


def _fails(word: str) -> str:
    raise ZeroDivisionError(f"{word} is none")


def test_what_an_operation_raises_is_told_with_its_tuple(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).each("word", _fails, "other string")
    stream.groupBy("other").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    run = topology.start(spark, engine="spark")
    with pytest.raises(FeedError):
        spout.feed([("zero",)])
    with pytest.raises(OperationError, match=r"(?s)ZeroDivisionError: zero is none.*batch 1"):
        run.awaitTermination(60)
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED:UserWarning")
def test_a_server_that_answers_no_more_is_said_and_the_batch_is_kept(
    server: ConnectServer,
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    topology.newStream("words", spout).each("word", str.upper, "other string").peek(print)
    with ExitStack() as ending:
        with Proxy(server.host, server.port) as proxy:
            session = ending.enter_context(connected(f"sc://{proxy.host}:{proxy.port}"))
            run = topology.start(session, engine="spark")
        with pytest.raises(FeedError):
            spout.feed([("zero",)])
        with pytest.raises(EngineLostError, match="Connect server does not answer.*are kept"):
            run.awaitTermination(120)
