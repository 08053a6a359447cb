"""States that are updated in tasks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.files import FileMap, Files, wait_for
from tests.spark.lines import PATIENCE, Lines
from tests.topologies.capture import Capture, Captured
from tests.topologies.conftest import feed
from trident import (
    CombinerAggregator,
    Count,
    FeederBatchSpout,
    MapGet,
    ReducerAggregator,
    StateUpdater,
    TridentCollector,
    TridentOperationContext,
    TridentTopology,
    TridentTuple,
)
from trident.backends import StateSpec
from trident.errors import FailedException
from trident.operation_error import OperationError
from trident.spark import group_engine, job_run
from trident.spark.versions import collect_table
from trident.states import OpaqueMap
from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError, StateUnavailableError
from trident.states.map_state import MapState
from trident.states.maps.factory import MapStateFactory
from trident.testing import hold_at


def in_files(folder: Path) -> MapStateFactory:
    """An opaque map that tasks update."""
    folder.mkdir(exist_ok=True)
    return OpaqueMap.factory(Files(str(folder)), name=folder.name)


def stored(factory: MapStateFactory, keys: Sequence[Any]) -> dict[Any, Any]:
    found = factory.makeState().multiGet([(key,) for key in keys])
    return dict(zip(keys, found, strict=True))


class Longest(CombinerAggregator[Any]):
    """The longest word, a combiner of the user's."""

    output_types = (str,)

    def init(self, tuple: TridentTuple) -> Any:
        return tuple[0]

    def combine(self, a: Any, b: Any) -> Any:
        return max(a, b, key=lambda word: (len(word), word))

    def zero(self) -> Any:
        return ""


class Joined(ReducerAggregator[str]):
    output_types = (str,)

    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: TridentTuple) -> str:
        return "".join(sorted(curr + tuple[0]))


WORDS = [word for n in range(40) for word in [f"w{n}"] * (n % 7 + 1)]


@pytest.mark.parametrize("hint", [None, 1, 3])
def test_tasks_update_each_key_once(spark: SparkSession, tmp_path: Path, hint: int | None) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    factory = in_files(tmp_path / "state")
    counts = (
        topology.newStream("words", spout)
        .groupBy("word")
        .persistentAggregate(factory, Count(), "count")
    )
    if hint is not None:
        counts.parallelismHint(hint)
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        feed(run, spout, [(word,) for word in WORDS], [("w3",), ("new",)])
        progress = run.lastProgress
    assert progress is not None
    assert (progress.keys_read, progress.keys_written) == (2, 2)
    expected = Counter([*WORDS, "w3", "new"])
    assert stored(factory, [*expected, "none"]) == {**expected, "none": None}


@dataclass(frozen=True)
class WatchedFiles(Files):
    """Opens a map that notes which process writes."""

    def __call__(self) -> FileMap:
        return WatchedMap(Path(self.folder))


class WatchedMap(FileMap):
    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        with (self._folder / "writers").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return super().multiPutFenced(keys, values, fence)


def test_the_driver_writes_aggregates_after_a_batch_of_few_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_engine, "SMALL", 2)
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    (tmp_path / "state").mkdir()
    factory = OpaqueMap.factory(WatchedFiles(str(tmp_path / "state")), name="state")
    words = topology.newStream("words", spout).groupBy("word")
    words.persistentAggregate(factory, Count(), "count")
    here = []
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        for batch in ("abc", "aaa", "abcd", "aaa"):
            feed(run, spout, [(word,) for word in batch])
            writers = (tmp_path / "state" / "writers").read_text().splitlines()
            here.append(set(writers) == {str(os.getpid())})
            (tmp_path / "state" / "writers").unlink()
        failures = iter([FailedException("Spark lost the batch: its result is too large")])

        def table(frame: DataFrame) -> pa.Table:
            for failure in failures:
                raise failure
            return collect_table(frame)

        monkeypatch.setattr(job_run, "collect_table", table)
        feed(run, spout, [(word,) for word in "abcd"])
        progress = run.lastProgress
    writers = (tmp_path / "state" / "writers").read_text().splitlines()
    assert here == [False, False, True, False]
    assert progress is not None
    assert (progress.attempts, str(os.getpid()) in writers) == (2, False)
    assert stored(factory, list("abcd")) == {"a": 9, "b": 3, "c": 3, "d": 2}


def test_a_task_updates_a_single_value_by_a_batch_without_tuples(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    longest, count = in_files(tmp_path / "longest"), in_files(tmp_path / "count")
    stream = topology.newStream("words", spout)
    stream.persistentAggregate(longest, "word", Longest(), "longest")
    stream.persistentAggregate(count, Count(), "count")

    def values() -> list[Any]:
        states: list[Any] = [longest.makeState(), count.makeState()]
        return [state.get() for state in states]

    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        feed(run, spout, [])
        assert values() == ["", 0]
        feed(run, spout, [("moon",)], [])
        assert values() == ["moon", 1]


@pytest.mark.parametrize("hint", [1, 2])
def test_own_combiners_and_reducers_end_in_tasks_too(
    spark: SparkSession, tmp_path: Path, hint: int
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("key long, word string")
    longest, joined = in_files(tmp_path / "longest"), in_files(tmp_path / "joined")
    stream = topology.newStream("words", spout)
    grouped = stream.groupBy("key")
    grouped.persistentAggregate(longest, "word", Longest(), "longest").parallelismHint(hint)
    grouped.persistentAggregate(joined, "word", Joined(), "joined").parallelismHint(hint)
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        feed(run, spout, [(1, "a"), (2, "bb"), (1, "ccc")], [(1, "dd"), (None, "e")])
    assert stored(longest, [1, 2, None]) == {1: "ccc", 2: "bb", None: "e"}
    assert stored(joined, [1, 2, None]) == {1: "acccdd", 2: "bb", None: "e"}


def test_new_values_of_tasks_go_on_and_queries_see_the_batch_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    stream = topology.newStream("words", spout)
    counts = stream.groupBy("word").persistentAggregate(
        in_files(tmp_path / "state"), Count(), "count"
    )
    new = Captured(tmp_path / "new")
    counts.newValuesStream().partitionPersist(new, "word, count", Capture(), name="new")
    old = Captured(tmp_path / "old")
    stream.stateQuery(counts, "word", MapGet(), "known").partitionPersist(
        old, "word, known", Capture(), name="old"
    )
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        feed(run, spout, [("a",), ("b",), ("a",)], [("a",)])
    assert new.batches == [[("a", 2), ("b", 1)], [("a", 3)]]
    assert old.batches == [[("a", None), ("a", None), ("b", None)], [("a", 2)]]


class Stumbling(StateUpdater[MapState]):
    """Raises what it is given, once."""

    def __init__(self, folder: Path, error: Exception) -> None:
        self.folder = str(folder)
        self.error = error

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        state.multiPut([(t[0],) for t in tuples], [1] * len(tuples))
        marker = Path(self.folder) / "stumbled"
        if not marker.exists():
            marker.touch()
            raise self.error


@pytest.mark.parametrize("error", [FailedException("later"), ValueError("never")])
def test_the_driver_decides_what_an_error_of_an_update_means(
    spark: SparkSession, tmp_path: Path, error: Exception
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    factory = in_files(tmp_path / "state")
    topology.newStream("words", spout).partitionBy("word").partitionPersist(
        factory, "word", Stumbling(tmp_path, error), name="words"
    )
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        if isinstance(error, FailedException):
            feed(run, spout, [("a",)])
            progress = run.lastProgress
            assert progress is not None
            assert progress.attempts == 2
            assert stored(factory, ["a"]) == {"a": 1}
        else:
            with pytest.raises(OperationError, match="ValueError: never"):
                feed(run, spout, [("a",)])
            assert stored(factory, ["a"]) == {"a": None}


def test_a_store_that_only_a_task_finds_away_costs_no_retry(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    factory, away = in_files(tmp_path / "state"), StateUnavailableError("here", "it is away")
    topology.newStream("words", spout).partitionBy("word").partitionPersist(
        factory, "word", Stumbling(tmp_path, away), name="words"
    )
    with topology.start(spark, tmp_path / "checkpoint", retries=0, engine="spark") as run:
        feed(run, spout, [("a",)])
        assert run.lastProgress is not None
        assert run.lastProgress.attempts == 2
    assert stored(factory, ["a"]) == {"a": 1}
    assert "batch 1 of words waits: here: it is away." in caplog.text


class Differing(StateUpdater[MapState]):
    """In the first attempt each task raises an error of its own."""

    def __init__(self, folder: Path, *errors: Exception) -> None:
        self.folder = folder
        self.errors = errors

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self.index = context.getPartitionIndex()

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        marker = self.folder / f"stumbled-{self.index}"
        if not marker.exists():
            marker.touch()
            raise self.errors[self.index]
        state.multiPut([(t[0],) for t in tuples], [1] * len(tuples))


def test_a_task_that_fails_while_another_finds_its_store_away_costs_no_retry(
    spark: SparkSession, tmp_path: Path
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    factory = in_files(tmp_path / "state")
    errors = FailedException("not found"), StateUnavailableError("here", "it is away")
    topology.newStream("words", spout).partitionBy("word").partitionPersist(
        StateSpec(factory, 2), "word", Differing(tmp_path, *errors), name="words"
    )
    words = [str(number) for number in range(20)]
    with topology.start(spark, tmp_path / "checkpoint", retries=0, engine="spark") as run:
        feed(run, spout, [(word,) for word in words])
    assert len(list(tmp_path.glob("stumbled-*"))) == 2
    assert stored(factory, words) == dict.fromkeys(words, 1)


@dataclass(frozen=True)
class LateTask:
    """A second run of a task that updates a state: held while it writes."""

    factory: MapStateFactory
    record: ControlRecord

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            state = self.factory.makeState()
            state.beginCommit(self.record)
            state.multiPut([("a",)], [99])
            try:
                state.commit(self.record)
                text = "written"
            except StaleBatchError:
                text = "overtaken"
            yield pa.RecordBatch.from_pydict({"text": [text]})


def test_a_task_that_writes_after_the_next_batch_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines, state = Lines(spark, tmp_path), tmp_path / "state"
    lines.factory = in_files(state)
    lines.write("a b")
    one = spark.createDataFrame([(1,)], "n long").coalesce(1)
    with (
        ThreadPoolExecutor(1) as pool,
        hold_at("before write", txid=1) as hold,
        lines.start(trigger=None) as run,
    ):
        hold.wait_reached()
        (state / "hold").touch()
        record = lines.factory.makeState().control.read()
        assert record is not None
        late = pool.submit(one.mapInArrow(LateTask(lines.factory, record), "text string").collect)
        wait_for(state / "held")
        hold.release()
        run.processAllAvailable()
        lines.write("a c")
        run.processAllAvailable()
        (state / "release").touch()
        assert [row.text for row in late.result(PATIENCE)] == ["overtaken"]
    assert stored(lines.factory, ["a", "b", "c"]) == {"a": 2, "b": 1, "c": 1}
