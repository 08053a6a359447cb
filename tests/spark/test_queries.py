"""Queries that Spark answers: as this process would, over static DataFrames, and cancelled."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from urllib.request import urlopen

import pytest

from tests.drpc.asking import PATIENCE, counts, until
from tests.spark.files import wait_for
from trident import (
    Aggregator,
    CombinerAggregator,
    Count,
    FeederBatchSpout,
    FilterNull,
    JoinType,
    MapGet,
    MemoryMapState,
    SnapshotGet,
    Split,
    Sum,
    TridentTopology,
    native,
)
from trident.drpc.errors import (
    DRPCClosedError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
)
from trident.drpc.service import LocalDRPC
from trident.errors import PlanError
from trident.spark.job_queue import JobQueue
from trident.states.errors import FailedException, StateUnavailableError

TWEETERS = [("a.com", "ann"), ("a.com", "ben"), ("b.com", "cem"), ("quiet.com", "eli"), (None, "x")]
FOLLOWERS = [("ann", "p1"), ("ann", "p2"), ("ben", "p2"), ("ben", "p3"), ("cem", "ü✓")]


class Longest(CombinerAggregator[str]):
    """The longest text, of Python alone."""

    output_types = (str,)

    def init(self, tuple: Sequence[Any]) -> str:
        return tuple[0]

    def combine(self, a: str, b: str) -> str:
        return max(a, b, key=lambda text: (len(text), text))

    def zero(self) -> str:
        return ""


class Number(Aggregator[list[int]]):
    """Counts in the most general way, where there is nothing too."""

    output_types = (int,)

    def init(self, batchId: object, collector: Any) -> list[int]:
        return [0]

    def aggregate(self, val: list[int], tuple: Any, collector: Any) -> list[int]:
        val[0] += 1
        return val

    def complete(self, val: list[int], collector: Any) -> None:
        collector.emit(val)


def words(stream: Any) -> Any:
    return stream.each("args", Split(), "word")


SHAPES: dict[str, Callable[[TridentTopology, Any], Any]] = {
    "functions": lambda _, s: words(s).map(lambda args, word: word.upper(), "upper string"),
    "groups": lambda _, s: words(s).groupBy("word").aggregate(Count(), "n"),
    "a count of nothing": lambda _, s: (
        words(s).filter("word", lambda word: word > "t").aggregate(Count(), "n")
    ),
    "a combiner of Python": lambda _, s: words(s).shuffle().aggregate("word", Longest(), "longest"),
    "a combiner in groups": lambda _, s: (
        words(s)
        .each("word", lambda word: [len(word)], "length long")
        .groupBy("length")
        .aggregate("word", Longest(), "longest")
    ),
    "an aggregator": lambda _, s: words(s).shuffle().aggregate(Number(), "n"),
    "partitions": lambda _, s: (
        words(s).partitionBy("word").partitionAggregate(Count(), "n").aggregate("n", Sum(), "sum")
    ),
    "copies": lambda _, s: words(s).broadcast().parallelismHint(3).aggregate(Count(), "n"),
    "merged": lambda t, s: t.merge(words(s).project("word"), words(s).project("word")),
    "joined": lambda t, s: t.join(words(s), "word", words(s), "word", "word, one, other"),
}


def asked(topology: TridentTopology, name: str, engine: str) -> None:
    SHAPES[name](topology, topology.newDRPCStream(f"{name} {engine}", engine=engine))  # type: ignore[arg-type]


def rows(answer: str) -> list[list[Any]]:
    """The tuples of an answer, sorted: their order is no part of it."""
    return sorted(json.loads(answer), key=repr)


@pytest.fixture(scope="module")
def both(spark: Any) -> Iterator[LocalDRPC]:
    """All shapes, on both engines."""
    topology = TridentTopology()
    for name in SHAPES:
        asked(topology, name, "local")
        asked(topology, name, "spark")
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        yield drpc


@pytest.mark.spark
@pytest.mark.parametrize("name", SHAPES)
def test_spark_answers_what_this_process_does(both: LocalDRPC, name: str) -> None:
    for args in ("the cat the ünï ✓", ""):
        here, there = (
            both.execute(f"{name} {engine}", args, timeout=PATIENCE)
            for engine in ("local", "spark")
        )
        assert rows(there) == rows(here)


def reach(topology: TridentTopology, tweeters: Any, followers: Any, function: str) -> None:
    stream = topology.newDRPCStream(function, engine="spark")
    known = topology.join(stream, "args", topology.newStaticStream(tweeters), "url", "url, tweeter")
    (
        topology.join(
            known, "tweeter", topology.newStaticStream(followers), "tweeter", "tweeter, url, who"
        )
        .groupBy("who")
        .aggregate(Count(), "times")
        .aggregate(Count(), "reach")
    )


@pytest.fixture
def tables(spark: Any) -> tuple[Any, Any]:
    return (
        spark.createDataFrame(TWEETERS, "url string, tweeter string"),
        spark.createDataFrame(FOLLOWERS, "tweeter string, follower string"),
    )


def test_reach_is_counted_over_static_frames_in_process_and_over_http(tables: Any) -> None:
    topology = TridentTopology()
    reach(topology, *tables, "reach")
    with topology.start() as run:
        for url, found in (("a.com", 3), ("b.com", 1), ("quiet.com", 0), ("unknown", 0)):
            assert run.drpc.execute("reach", url, timeout=PATIENCE) == f"[[{found}]]"
        server = run.serve(port=0, thrift_port=None)
        assert urlopen(f"{server.url}/drpc/reach/a.com").read() == b"[[3]]"


def test_calls_that_come_together_have_their_own_answers(tables: Any) -> None:
    topology = TridentTopology()
    reach(topology, *tables, "reach")
    urls = ["a.com", "b.com", "quiet.com"] * 4
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc, ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda url: drpc.execute("reach", url, timeout=PATIENCE), urls)
        assert list(found) == ["[[3]]", "[[1]]", "[[0]]"] * 4


def test_files_expressions_and_outer_joins_are_sparks_own(spark: Any, tmp_path: Path) -> None:
    rows_of = "\n".join(f"{word},{len(word)}" for word in ("the", "cat", "ünï"))
    for part in "ab":
        (tmp_path / f"{part}.csv").write_text(rows_of)
    lengths = spark.read.schema("word string, length int").csv(str(tmp_path))
    topology = TridentTopology()
    known = topology.newStaticStream(lengths).each("length", native("length + 1"), "more")
    topology.join(
        words(topology.newDRPCStream("lengths", engine="spark")).project("word"),
        "word",
        known,
        "word",
        "word, length, more",
        JoinType.mixed(JoinType.INNER, JoinType.OUTER),
    )
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        found = rows(drpc.execute("lengths", "ünï dog", timeout=PATIENCE))
    assert found == sorted([["dog", None, None], *[["ünï", 3, 4]] * 2], key=repr)


def test_of_a_frame_only_the_columns_are_read_that_a_step_needs(spark: Any) -> None:
    frame = spark.sql("select 'a' who, 1 n, interval 1 month unknown")  # which Python can't take
    topology = TridentTopology()
    one, other = topology.newStaticStream(frame), topology.newStaticStream(frame)
    asked = topology.newDRPCStream("merged", engine="spark")
    who = one.filter("n", lambda n: n > 0).project("who")
    topology.merge(other.project("who"), asked, who)
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        found = drpc.execute("merged", "b", timeout=PATIENCE)
    assert rows(found) == [["a"], ["a"], ["b"]]


def test_a_static_stream_looks_states_up_that_batches_update(spark: Any) -> None:
    spout = FeederBatchSpout("word string")
    topology = TridentTopology()
    known = (
        topology.newStream("words", spout)
        .groupBy("word")
        .persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    )
    frame = topology.newStaticStream(spark.createDataFrame([("a",), ("b",)], "word string"))
    counted = frame.stateQuery(known, "word", MapGet(), "count")
    query = topology.newDRPCStream("counted", engine="spark")
    topology.join(query, "args", counted, "word", "word, count")
    with topology.start() as run:
        spout.feed([["a"], ["a"]])
        run.processAllAvailable()
        assert run.drpc.execute("counted", "a", timeout=PATIENCE) == '[["a",2]]'
        assert run.drpc.execute("counted", "b", timeout=PATIENCE) == '[["b",null]]'


def test_what_a_query_keeps_for_a_request_is_no_copy_of_a_users(spark: Any) -> None:
    frame = spark.createDataFrame([("a", "x"), ("a", "y")], "url string, who string")
    cached = frame.where("who > 'x'").cache()
    assert cached.count() == 1
    topology = TridentTopology()
    later = topology.newStaticStream(frame).filter(native("who > 'x'"))
    asked = topology.newDRPCStream("f", engine="spark")
    once = topology.join(asked, "args", later, "url", "url, who")
    topology.join(once, "who", later.project("who"), "who", "who, url")  # so later is taken twice
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc, ThreadPoolExecutor(4) as threads:
        before = spark.sparkContext._jsc.getPersistentRDDs().size()
        found = threads.map(lambda _: drpc.execute("f", "a", timeout=PATIENCE), range(12))
        assert set(found) == {'[["y","a"]]'}
    assert cached.storageLevel.useMemory
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= before
    cached.unpersist()


def test_two_queries_read_one_frame_which_stays_cached(tables: Any) -> None:
    tweeters, followers = tables
    cached = followers.cache()
    topology = TridentTopology()
    for function in ("one", "other"):
        reach(topology, tweeters, cached, function)
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        for function in ("one", "other"):
            assert drpc.execute(function, "a.com", timeout=PATIENCE) == "[[3]]"
    assert cached.storageLevel.useMemory
    cached.unpersist()


def test_a_state_is_looked_up_as_of_a_committed_batch(spark: Any, tmp_path: Path) -> None:
    spout = FeederBatchSpout("word string")
    topology = TridentTopology()
    known = (
        topology.newStream("words", spout)
        .groupBy("word")
        .persistentAggregate(f"sqlite:{tmp_path}/counts.db", Count(), "count")
    )
    (
        words(topology.newDRPCStream("sum", engine="spark"))
        .shuffle()
        .stateQuery(known, "word", MapGet(), "count")
        .filter("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    with topology.start() as run:
        for expected in (3, 6):
            spout.feed([["the"], ["the"], ["cat"]])
            run.processAllAvailable()
            found = run.drpc.execute("sum", "the cat dog the", timeout=PATIENCE)
            assert found == f"[[{expected + 2 * expected // 3}]]"
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as elsewhere:
        assert elsewhere.execute("sum", "cat", timeout=PATIENCE) == "[[2]]"


def test_static_states_may_be_looked_up_one_after_the_other(spark: Any) -> None:
    topology = TridentTopology()
    one = topology.newStaticState(counts({"a": 1}), name="one")
    other = topology.newStaticState(counts({"a": 10}), name="other")
    (
        words(topology.newDRPCStream("both", engine="spark"))
        .stateQuery(one, "word", MapGet(), "first long")
        .stateQuery(other, "word", MapGet(), "second long")
        .project("word, first, second")
    )
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        found = drpc.execute("both", "a b", timeout=PATIENCE)
    assert rows(found) == [["a", 1, 10], ["b", None, None]]


class Open(MapGet):
    """Counts how often it is prepared, and asks only while it is."""

    def __init__(self) -> None:
        self.prepared = 0

    def prepare(self, conf: Any, context: Any) -> None:
        self.prepared += 1
        self.conf = conf

    def cleanup(self) -> None:
        self.prepared -= 1

    def batchRetrieve(self, state: Any, tuples: Any) -> Any:
        assert self.prepared == 1
        return [self.conf["answer"]] * len(tuples)


def test_what_asks_a_state_is_prepared_once_for_all_requests(spark: Any) -> None:
    topology = TridentTopology()
    get = Open()
    known = topology.newStaticState(counts({}), name="known")
    query = topology.newDRPCStream("f", engine="spark")
    query.stateQuery(known, "args", get, "found long").project("found")
    with (
        LocalDRPC(topology.plan(), {"answer": 7}, on_spark=JobQueue) as drpc,
        ThreadPoolExecutor(4) as threads,
    ):
        calls = threads.map(lambda args: drpc.execute("f", args, timeout=PATIENCE), "abcdefgh")
        assert set(calls) == {"[[7]]"}
    assert get.prepared == 0


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (FailedException("not now"), DRPCExecutionError),
        (StateUnavailableError("redis://h:1", "refused"), DRPCUnavailableError),
        (ValueError("no word"), DRPCExecutionError),
    ],
)
def test_what_a_look_up_raises_fails_the_call_as_in_this_process(
    spark: Any, raised: Exception, kind: type
) -> None:
    class Failing(MapGet):
        def batchRetrieve(self, state: Any, tuples: Any) -> Any:
            raise raised

    topology = TridentTopology()
    known = topology.newStaticState(counts({}), name="known")
    query = topology.newDRPCStream("f", engine="spark")
    query.stateQuery(known, "args", Failing(), "found long").project("found")
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        with pytest.raises(kind) as told:
            drpc.execute("f", "a", timeout=PATIENCE)
        assert type(told.value) is kind


def test_a_query_without_frames_runs_in_the_session_of_the_run(spark: Any) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    topology = TridentTopology()
    query = topology.newDRPCStream("zone", engine="spark")
    query.each("args", native("current_timezone()"), "zone").project("zone")
    with topology.start(session) as run:
        assert run.drpc.execute("zone", "", timeout=PATIENCE) == '[["Asia/Tokyo"]]'


def test_a_query_may_be_opened_in_any_thread(tables: Any) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f", engine="spark").aggregate(Count(), "n")
    with (
        ThreadPoolExecutor(1) as thread,
        thread.submit(lambda: LocalDRPC(topology.plan(), on_spark=JobQueue)).result() as drpc,
    ):
        assert drpc.execute("f", "", timeout=PATIENCE) == "[[1]]"


def test_what_ends_a_worker_is_no_fault_of_a_store(spark: Any) -> None:
    def end(args: str) -> list[str]:
        os._exit(1)

    topology = TridentTopology()
    topology.newDRPCStream("ends", engine="spark").each("args", end, "never string")
    with (
        LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc,
        pytest.raises(DRPCInternalError, match="Spark lost the request"),
    ):
        drpc.execute("ends", "a", timeout=PATIENCE)


def jobs(spark: Any) -> Sequence[int]:
    found: Sequence[int] = spark.sparkContext.statusTracker().getActiveJobsIds()
    return found


def held_up(folder: Path) -> TridentTopology:
    """A query whose step ends only where a file is written."""

    def held(args: str) -> list[str]:
        (folder / f"begun {args}").touch()
        wait_for(folder / "go on")
        return [args]

    topology = TridentTopology()
    topology.newDRPCStream("held", engine="spark").each("args", held, "echo string").project("echo")
    return topology


def test_a_call_whose_time_is_over_is_cancelled_in_spark(spark: Any, tmp_path: Path) -> None:
    drpc = LocalDRPC(held_up(tmp_path).plan(), on_spark=JobQueue)
    with drpc, ThreadPoolExecutor(1) as threads:
        call = threads.submit(drpc.execute, "held", "a", timeout=5)
        until(lambda: (tmp_path / "begun a").exists())
        assert jobs(spark)
        with pytest.raises(DRPCTimeoutError):
            call.result(PATIENCE)
        until(lambda: not jobs(spark))
    assert not (tmp_path / "go on").exists()


def test_so_is_one_whose_task_is_cancelled(spark: Any, tmp_path: Path) -> None:
    async def asked(drpc: LocalDRPC) -> None:
        call = asyncio.create_task(drpc.execute_async("held", "b", timeout=PATIENCE))
        while not (tmp_path / "begun b").exists():
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with LocalDRPC(held_up(tmp_path).plan(), on_spark=JobQueue) as drpc:
        asyncio.run(asked(drpc))
        until(lambda: not jobs(spark))


def test_a_service_that_is_closed_answers_what_is_here_or_cancels_it(
    spark: Any, tmp_path: Path
) -> None:
    drpc = LocalDRPC(held_up(tmp_path).plan(), on_spark=JobQueue)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(drpc.execute, "held", "c", timeout=PATIENCE)
        until(lambda: (tmp_path / "begun c").exists())
        drpc.close(drain=0.01)
        with pytest.raises(DRPCClosedError):
            call.result(PATIENCE)
        until(lambda: not jobs(spark))
    with pytest.raises(DRPCClosedError):
        drpc.execute("held", "d")


def test_calls_beyond_the_queue_are_refused(spark: Any, tmp_path: Path) -> None:
    with (
        LocalDRPC(held_up(tmp_path).plan(), most_waiting=1, on_spark=JobQueue) as drpc,
        ThreadPoolExecutor(10) as threads,
    ):
        calls = [threads.submit(drpc.execute, "held", f"{n}", timeout=PATIENCE) for n in range(10)]
        refused = Event()
        for call in calls:
            call.add_done_callback(lambda call: call.exception() and refused.set())
        assert refused.wait(PATIENCE)
        (tmp_path / "go on").touch()
        found = [call.exception(PATIENCE) for call in calls]
    assert {type(each) for each in found} == {type(None), DRPCQueueFullError}


def test_what_a_step_raises_is_told_with_the_step_and_no_frame(spark: Any) -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("one", engine="spark")
    stream.each("args", lambda args: [1 // len(args)], "n long").project("n")
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        assert drpc.execute("one", "a", timeout=PATIENCE) == "[[1]]"
        with pytest.raises(DRPCExecutionError, match="modulo by zero") as raised:
            drpc.execute("one", "", timeout=PATIENCE)
    assert type(raised.value) is DRPCExecutionError
    assert 'each("args"' in raised.value.summary or "each(args" in raised.value.summary


def test_what_spark_raises_is_no_fault_of_the_caller(spark: Any) -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("broken", engine="spark")
    stream.each("args", native("raise_error(args)"), "never").project("never")
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc, pytest.raises(DRPCInternalError):
        drpc.execute("broken", "a", timeout=PATIENCE)


def test_the_answer_needs_no_argument_and_no_tuple(spark: Any) -> None:
    topology = TridentTopology()
    topology.newDRPCStream("args", engine="spark").aggregate(Count(), "n")
    state = topology.newStaticState(single(7), name="single")
    (
        topology.newDRPCStream("single", engine="spark")
        .stateQuery(state, SnapshotGet(), "value long")
        .project("value")
    )
    with LocalDRPC(topology.plan(), on_spark=JobQueue) as drpc:
        assert drpc.execute("args", "", timeout=PATIENCE) == "[[1]]"
        assert drpc.execute("single", "", timeout=PATIENCE) == "[[7]]"


def single(value: int) -> Any:
    factory = MemoryMapState.Factory()
    state: Any = factory.makeState({}, None, 0, 1)
    state.beginCommit(1)
    state.set(value)
    state.commit(1)
    return factory


def test_an_operation_that_cannot_be_sent_is_found_before_the_first_call(spark: Any) -> None:
    topology = TridentTopology()
    event = Event()  # holds a lock
    topology.newDRPCStream("sent", engine="spark").each(
        "args", lambda _: event.is_set(), "set boolean"
    )
    with pytest.raises(PlanError, match="can't be sent to executors"):
        LocalDRPC(topology.plan(), on_spark=JobQueue)
