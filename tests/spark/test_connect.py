"""Spouts on Spark Connect."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests import forks
from tests.faults.proxy import Proxy
from tests.spark import connect_program, java
from tests.spark.connect import connected
from tests.spark.files import FileMap, Files, ListedFiles
from tests.spark.shelves import Part, Shelf
from tests.spark.test_mixed import Counting
from tests.spark.test_partitioned import emitting
from tests.spark.test_tasks import WORDS, in_files, stored
from tests.states.test_parts import write
from tests.topologies.conftest import Engine, contents, feed
from trident import (
    Count,
    FeederBatchSpout,
    MemoryMapState,
    Sum,
    TridentTopology,
    native,
    states_frame,
    writeStream,
)
from trident.backends.urls import state_from_url
from trident.batch.errors import OutageError, TooManyBadTuplesError
from trident.errors import GuaranteeWarning, SpoutPartitionError
from trident.operation_error import OperationError
from trident.spark import versions
from trident.spark.errors import EngineLostError, SparkSessionError
from trident.spark.group_engine import SMALL
from trident.spark.mixed_engine import Costs
from trident.spouts.feeder import FeedError
from trident.states import NonTransactionalMap, OpaqueMap, TransactionalMap
from trident.states.errors import StateUnavailableError
from trident.testing.servers.connect import ConnectServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", **java.INTERPRETED}
    with ConnectServer(tmp_path_factory.mktemp("connect"), settings) as server:
        yield server


@pytest.fixture(scope="module")
def spark(server: ConnectServer) -> Iterator[SparkSession]:
    with connected(server.url) as session:
        yield session


def test_a_state_is_a_frame_that_tasks_read_or_this_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    sqlite = state_from_url(f"sqlite:{tmp_path}/s.db?prefix=x")
    for factory in OpaqueMap.factory(ListedFiles(str(tmp_path)), name="x"), sqlite:
        with closing(factory.makeMap()) as state:
            write(state, 1, {("ä", None): 1, ("b", 2): 2.5})
            frame = states_frame(spark, factory, "word, n, value", partitions=2)
            assert frame.schema["value"].metadata == {"txid": 1}
            rows = [tuple(row) for row in frame.sort("word").collect()]
            assert rows == [("b", 2, 2.5), ("ä", None, 1.0)]
            for txid in 2, 3:
                write(state, txid, {("b", 2): txid})
            assert frame.count() == 2


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
    stream.persistentAggregate(counts, Count(), "count").parallelismHint(2)  # by tasks
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
    with pytest.raises(SparkSessionError, match=r"stream 'ticks'.*read the source by a spout"):
        writeStream(
            spark.readStream.format("rate").load(), "sqlite:a.db", "ticks", checkpoint="nowhere"
        )


def test_partitions_that_do_not_pickle_are_an_error_of_the_spout(
    spark: SparkSession, tmp_path: Path
) -> None:
    def ordered(self: Any, names: Any) -> list[Part]:
        parts = [Part(name) for name in names]
        object.__setattr__(parts[0], "lock", threading.Lock())
        return parts

    Shelf(str(tmp_path)).add("a", [("x", 1)])
    spout = emitting(Shelf(str(tmp_path)), getOrderedPartitions=ordered)
    topology = TridentTopology()
    topology.newStream("rows", spout).peek(print)
    run = topology.start(spark, tmp_path / "log", trigger="available")
    with pytest.raises(SpoutPartitionError, match=r"executors \(.*'_thread.lock'.*plain values"):
        run.awaitTermination(60)


def test_small_batches_run_here_and_large_ones_on_the_server(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def choose(costs: Costs, tuples: int) -> str:
        return "spark" if tuples > SMALL else "local"

    monkeypatch.setattr(Costs, "choose", choose)
    counting, engines = Counting(tmp_path), []
    with Engine(spark, tmp_path).start(counting.topology, engine="auto") as run:
        for batch in ([("a b",)], [("a",)] * 11_000, [("b",)]):
            feed(run, counting.spout, batch)
            assert run.lastProgress is not None
            engines.append(run.lastProgress.engine)
    assert engines == ["local", "spark", "local"]
    assert contents(counting.counts) == {("a",): 11_001, ("b",): 2}


def test_expressions_are_run_by_the_server_and_their_errors_name_the_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("line string, n long")
    split = native("explode(split(line, ' '))")
    words = topology.newStream("lines", spout).each("line", split, "w")
    words = words.filter(native("w <> 'b'")).each("n", native(lambda: F.col("n") + 1), "m long")
    sums = in_files(tmp_path / "sums")
    words.groupBy("w").persistentAggregate(sums, "m", Sum(), "sum")
    words.aggregate("m", Sum(), "all").peek(print)
    run = topology.start(spark, tmp_path / "log")
    feed(run, spout, [("a b a", 1), ("c", 5)], [("a", 1)])
    assert stored(sums, ["a", "b", "c"]) == {"a": 6, "b": None, "c": 6}
    with pytest.raises(OperationError, match=r"(?s)LongOverflowError.*batch 3"):
        feed(run, spout, [("a a", 2**62)])


def test_a_query_that_spark_answers_is_refused_with_its_static_frames(spark: SparkSession) -> None:
    topology = TridentTopology()
    known = topology.newStaticStream(spark.createDataFrame([("a", 1)], "url string, n long"))
    asked = topology.newDRPCStream("asked", engine="spark")
    topology.join(asked, "args", known, "url", "url, n").project("n")
    with pytest.raises(SparkSessionError, match=r"'asked'.* Spark Connect session.*classic"):
        topology.start(spark)


def _fails(word: str) -> str:
    raise ZeroDivisionError(f"{word} is none")


def test_bad_tuples_are_counted_and_kept_and_too_many_of_them_stop_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    letters = MemoryMapState.Factory()
    stream = topology.newStream("words", spout).withColumn("n long", int, "word")
    captured = Engine(spark, tmp_path).capture(
        stream.filter("n", lambda n: 1 // n > 0, on_error="skip").project("n")
    )
    options: dict[str, Any] = {"on_error": "dead-letter", "dead_letters": letters}
    run = Engine(spark, tmp_path).start(topology, max_errors=0.002, **options)
    feed(run, spout, [("1",), ("x",), ("0",)])
    with pytest.raises(TooManyBadTuplesError, match="3 of the last"):
        feed(run, spout, [("1",), ("y",)])
    run.stop()
    [progress] = run.groups["words"].recentProgress
    assert sorted(progress.bad_tuples.values()) == [1, 1]
    assert captured.batches[0] == [(1,)]
    [letter] = contents(letters.named("dead_letters.words")).values()
    assert letter["tuple"] == '{"word": "x"}'


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
        with pytest.raises(EngineLostError, match="Connect server does not answer.*were under way"):
            run.awaitTermination(120)


def test_a_session_ends_though_its_server_hangs(
    server: ConnectServer, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "_RELEASING", 0.1)
    versions.require_answer(spark)  # only then does the server know the session
    session = versions.session_of_server(spark)
    server.pause()
    resuming = threading.Timer(60, server.resume)
    resuming.start()
    try:
        versions.end_session(session)
        assert resuming.is_alive()
    finally:
        resuming.cancel()
        server.resume()
