"""Spouts over partitions, emitted by Spark's executors."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.faults.word_count import at
from tests.spark.shelves import OpaqueRows, OpaqueShelf, Part, Shelf, TransactionalShelf
from tests.spark.test_forged import BELIEVED
from tests.spouts.test_classic import WORDS, Numbered, NumberedCoordinator, NumberedEmitter
from tests.topologies.capture import Captured, captured_in
from tests.topologies.conftest import Engine
from trident import Aggregator, Sum, TridentTopology
from trident.backends import sqlite
from trident.batch.errors import BatchFailedError, OutageError
from trident.errors import (
    FailedException,
    OperationError,
    OperationTypeError,
    SpoutPartitionError,
)
from trident.log.errors import MetadataError
from trident.spark.error_json import error_to_json
from trident.spark.group_engine import SparkGroupEngine
from trident.spark.seal import Seal
from trident.testing import fail_at

BOTH = pytest.mark.parametrize("spout", [OpaqueShelf, TransactionalShelf])
PATIENCE = 120.0
ROWS = [(None, 1), ("", None), ("ü\u2003🙂", -(2**63)), ("\0", 2**63 - 1), ("a", 5)]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """Two partitions, which are read in three batches."""
    (tmp_path / "shelf").mkdir()
    made = Shelf(str(tmp_path / "shelf"))
    made.add("a", [("x", number) for number in (1, 2, 3, 4, 5)])
    made.add("b", [("y", 10)])
    return made


class Sums:
    """The sum of each partition's numbers, kept through any number of runs, and all tuples."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.factory = sqlite.opaque(folder / "sums.db", "sums")
        self.captured: Captured | None = None

    def run(self, spout: Any, **options: Any) -> dict[str, int]:
        """Run until there is no more; return the sums."""
        topology = TridentTopology()
        stream = topology.newStream("numbers", spout)
        self.captured = captured_in(self.folder / "captured", stream)
        stream.groupBy("part").persistentAggregate(self.factory, "number", Sum(), "sum")
        options = {"trigger": "available", **options}
        with topology.start(self.spark, self.folder / "checkpoint", **options) as run:
            self.run_of_all = run
            assert run.awaitTermination(PATIENCE)
        return self.sums

    @property
    def sums(self) -> dict[str, int]:
        state: Any = self.factory.makeState()
        try:
            return dict(state.getTuples())
        finally:
            state.close()

    @property
    def batches(self) -> list[list[tuple[Any, ...]]]:
        """The tuples of each batch."""
        assert self.captured is not None
        return self.captured.batches

    @property
    def attempts(self) -> list[int]:
        """How many each batch of the last run took."""
        [group] = self.run_of_all.groups.values()
        return [progress.attempts for progress in group.recentProgress]


@pytest.fixture
def sums(spark: SparkSession, tmp_path: Path) -> Sums:
    return Sums(spark, tmp_path)


@pytest.mark.singles
@BOTH
@pytest.mark.parametrize("how", ["rows", "columns", "arrow"])
def test_executors_emit_what_the_driver_emits_on_the_local_engine(
    spout: Any, how: str, spark: SparkSession, tmp_path: Path
) -> None:
    found = []
    for engine in (None, spark):
        folder = tmp_path / ("local" if engine is None else "spark")
        folder.mkdir()
        shelf = Shelf(str(folder), how=how)
        shelf.add("a", ROWS)
        shelf.add("b", ROWS[:3])
        shelf.add("none", [])
        sums = Sums(engine, folder)
        sums.run(spout(shelf))
        [group] = sums.run_of_all.groups.values()
        tuples = [progress.tuples for progress in group.recentProgress]
        found.append((sums.batches, tuples))
        own = [pid for pid, what, *_ in shelf.events if what == "emitted"]
        assert (os.getpid() in own) == (engine is None)
    assert found[0] == found[1]
    assert [count for count in found[0][1] if count] == [4, 3, 1]
    assert Counter(row for batch in found[0][0] for row in batch) == Counter(
        [("a", *row) for row in ROWS] + [("b", *row) for row in ROWS[:3]]
    )


@BOTH
def test_what_was_emitted_is_let_go_of_with_its_attempt(
    spout: Any, sums: Sums, shelf: Shelf, spark: SparkSession
) -> None:
    context: Any = spark.sparkContext._jsc
    before = len(context.getPersistentRDDs())
    with fail_at("before begin", txid=2):
        sums.run(spout(shelf))
    assert len(context.getPersistentRDDs()) == before
    shelf.add("a", [("x", 1)])
    with fail_at("before begin", times=9), pytest.raises(BatchFailedError):
        sums.run(spout(shelf), retries=1)
    assert len(context.getPersistentRDDs()) == before


def test_what_was_emitted_of_a_batch_that_is_given_up_is_let_go_of(
    sums: Sums, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[Any] = []
    close = SparkGroupEngine.close

    def look_and_close(self: SparkGroupEngine) -> None:
        left.append(dict(self._kept))
        close(self)

    monkeypatch.setattr(SparkGroupEngine, "close", look_and_close)
    topology = TridentTopology()
    numbers = topology.newStream("numbers", OpaqueShelf(shelf))
    numbers.groupBy("part").persistentAggregate(sums.factory, "number", Sum(), "sum")
    options: dict[str, Any] = {"trigger": "available", "retries": 0, "on_failure": "dead-letter"}
    with (
        fail_at("after write", 2),
        topology.start(sums.spark, sums.folder / "checkpoint", **options) as run,
    ):
        assert run.awaitTermination(PATIENCE)
    assert [each.dead_letter is None for each in run.groups["numbers"].recentProgress][:2] == [
        *(True, False)
    ]
    assert left
    assert not any(left)


@pytest.mark.singles
@BOTH
@pytest.mark.parametrize("point", ["before begin", "after write", "before commit"])
def test_a_failed_batch_counts_once(spout: Any, point: str, sums: Sums, shelf: Shelf) -> None:
    with fail_at(point, txid=2):
        assert sums.run(spout(shelf)) == {"a": 15, "b": 10}
    assert sums.attempts[:3] == [1, 2, 1]


@BOTH
def test_a_restart_goes_on_where_each_partition_was(spout: Any, sums: Sums, shelf: Shelf) -> None:
    assert sums.run(spout(shelf)) == {"a": 15, "b": 10}
    shelf.add("b", [("z", 20)])
    shelf.add("c", [("z", 100)])
    assert sums.run(spout(shelf)) == {"a": 15, "b": 30, "c": 100}
    assert sums.batches[3] == [("b", "z", 20), ("c", "z", 100)]


@BOTH
def test_partitions_come_and_go_and_go_on_where_they_were(
    spout: Any, sums: Sums, shelf: Shelf
) -> None:
    hidden = shelf.put("hidden-a")
    assert sums.run(spout(shelf)) == {"b": 10}
    hidden.unlink()
    hidden = shelf.put("hidden-b")
    shelf.add("b", [("z", 20)])
    assert sums.run(spout(shelf)) == {"a": 15, "b": 10}
    hidden.unlink()
    assert sums.run(spout(shelf)) == {"a": 15, "b": 30}


@BOTH
def test_a_source_without_partitions_has_no_tuples(spout: Any, sums: Sums, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert sums.run(spout(Shelf(str(tmp_path / "empty")))) == {}


def test_a_transactional_batch_is_emitted_again_as_it_was(sums: Sums, shelf: Shelf) -> None:
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        sums.run(TransactionalShelf(shelf), retries=0)
    first = sums.batches[0]
    shelf.add("b", [("z", 20)])
    shelf.add("c", [("z", 100)])
    larger = Shelf(shelf.folder, size=9)
    assert sums.run(TransactionalShelf(larger)) == {"a": 15, "b": 30, "c": 100}
    assert sums.batches[0] == first
    assert len(sums.batches[0]) == 3


def test_an_opaque_stream_goes_on_without_a_partition_that_is_away_and_says_so_once(
    sums: Sums, shelf: Shelf, caplog: pytest.LogCaptureFixture
) -> None:
    away = shelf.put("away-b")
    with caplog.at_level(logging.WARNING, "trident"):
        assert sums.run(OpaqueShelf(shelf)) == {"a": 15}
    told = [
        record.getMessage()
        for record in caplog.records
        if "without partition" in record.getMessage()
    ]
    assert told == ["stream numbers goes on without partition b: shelf b: it is away."]
    away.unlink()
    assert sums.run(OpaqueShelf(shelf)) == {"a": 15, "b": 10}


def test_a_transactional_stream_waits_for_a_partition_that_is_away(
    sums: Sums, shelf: Shelf
) -> None:
    away = shelf.put("away-b")
    with pytest.raises(OutageError, match=r"'numbers', partition b: shelf b: it is away"):
        sums.run(TransactionalShelf(shelf), patience=0.01)
    away.unlink()
    assert sums.run(TransactionalShelf(shelf)) == {"a": 15, "b": 10}


@BOTH
def test_a_worker_that_is_killed_while_it_emits_costs_an_attempt(
    spout: Any, sums: Sums, shelf: Shelf
) -> None:
    shelf.put("kill-a")
    assert sums.run(spout(shelf)) == {"a": 15, "b": 10}
    assert sums.attempts[:3] == [2, 1, 1]  # Spark on one machine retries no task


@BOTH
def test_tuples_that_executors_lose_before_they_are_read_cost_an_attempt(
    spout: Any, sums: Sums, shelf: Shelf, spark: SparkSession
) -> None:
    context: Any = spark.sparkContext._jsc
    others = set(context.getPersistentRDDs())

    def lose() -> None:
        for rdd in set(context.getPersistentRDDs()) - others:
            context.sc().unpersistRDD(rdd, True)

    with at("before begin", 2, 0, lose):
        assert sums.run(spout(shelf)) == {"a": 15, "b": 10}
    assert sums.attempts[:3] == [1, 2, 1]


def test_partitions_of_spouts_of_transactional_topologies_are_emitted_by_executors_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    NumberedCoordinator.emitted = 0
    NumberedEmitter.again.clear()
    topology = TridentTopology()
    stream = topology.newStream("numbered", Numbered())
    captured = captured_in(tmp_path / "captured", stream)
    with (
        fail_at("after write", txid=1),
        topology.start(spark, tmp_path / "checkpoint", trigger="available") as run,
    ):
        assert run.awaitTermination(PATIENCE)
    assert sorted(word for (word,) in captured.tuples) == sorted(WORDS)
    assert NumberedEmitter.again == []  # which executors emitted again


# Errors.


def emitting(shelf: Shelf, **methods: Any) -> OpaqueShelf:
    """A spout whose emitters have other methods."""
    spout = OpaqueShelf(shelf)
    made = type("Emitter", (OpaqueRows,), methods)
    spout.getEmitter = lambda conf, context: made(shelf)  # type: ignore[method-assign]
    return spout


def test_an_exception_of_an_emitter_names_step_partition_and_batch(
    sums: Sums, shelf: Shelf
) -> None:
    spout = emitting(shelf, emitPartitionBatch=lambda self, tx, *_: 1 / 0)
    with pytest.raises(OperationError, match=r'"numbers".*partition a') as raised:
        sums.run(spout)
    assert raised.value.error.startswith("ZeroDivisionError")
    assert raised.value.txid == 1


def test_an_emitter_that_can_not_be_made_in_an_executor_names_the_step(
    sums: Sums, shelf: Shelf
) -> None:
    spout, driver = OpaqueShelf(shelf), os.getpid()

    def make(conf: Any, context: Any) -> OpaqueRows:
        if os.getpid() != driver:
            raise ConnectionError("nobody is there")
        return OpaqueRows(shelf)

    spout.getEmitter = make  # type: ignore[method-assign]
    with pytest.raises(OperationError, match="ConnectionError: nobody is there") as raised:
        sums.run(spout)
    assert raised.value.step == 'newStream("numbers", OpaqueShelf), getEmitter()'


def test_a_failed_exception_of_an_emitter_fails_the_attempt(
    sums: Sums, shelf: Shelf, tmp_path: Path
) -> None:
    failed = str(tmp_path / "failed")

    def emit(self: Any, tx: Any, collector: Any, partition: Any, last: Any) -> Any:
        try:  # it keeps its number, as its batch hasn't begun
            os.mkdir(f"{failed}-{tx.txid}")
        except FileExistsError:
            pass
        else:
            raise FailedException("not now")
        return OpaqueRows.emitPartitionBatch(self, tx, collector, partition, last)

    assert sums.run(emitting(shelf, emitPartitionBatch=emit)) == {"a": 15, "b": 10}
    assert sums.attempts == [2, 2, 2]


@pytest.mark.parametrize("how", ["rows", "columns", "arrow"])
def test_a_value_of_a_wrong_type_names_spout_partition_and_field(
    sums: Sums, shelf: Shelf, how: str
) -> None:
    def emit(self: Any, tx: Any, collector: Any, partition: Any, last: Any) -> int:
        columns = {"part": ["a"], "text": ["x"], "number": ["one"]}
        if how == "rows":
            collector.emit(["a", "x", "one"])
        else:
            arrow = pa.RecordBatch.from_pydict(columns)
            collector.emitColumns(columns if how == "columns" else arrow)
        return 1

    problem = "the spout of numbers, partition a emitted str 'one' for the field 'number'"
    with pytest.raises(OperationError, match=problem):
        sums.run(emitting(shelf, emitPartitionBatch=emit))


def test_metadata_that_is_no_json_names_the_partition(sums: Sums, shelf: Shelf) -> None:
    spout = emitting(shelf, emitPartitionBatch=lambda self, *_: {1, 2})
    with pytest.raises(MetadataError, match="'numbers, partition a'"):
        sums.run(spout)


def test_a_spout_that_does_not_pickle_is_refused_at_start(sums: Sums, shelf: Shelf) -> None:
    spout = OpaqueShelf(shelf)
    spout.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(OperationTypeError, match=r"newStream at .*can't be sent to executors"):
        sums.run(spout)


def test_partitions_that_do_not_pickle_are_an_error_of_the_spout(sums: Sums, shelf: Shelf) -> None:
    def ordered(self: Any, names: Any) -> list[Part]:
        parts = [Part(name) for name in names]
        for part in parts:
            object.__setattr__(part, "lock", threading.Lock())
        return parts

    with pytest.raises(SpoutPartitionError, match="partitions can't be sent to executors"):
        sums.run(emitting(shelf, getOrderedPartitions=ordered))


def test_values_and_metadata_that_look_like_statuses_are_values_and_metadata(
    sums: Sums, shelf: Shelf
) -> None:
    seal = Seal()
    lines = [seal.sign(error_to_json(error)) for error in BELIEVED]
    lines += [seal.sign({"done": {"run": "x", "emitted": [["a", 0, None, None]]}})]
    shelf.add("c", [(line, 1) for line in lines])

    def emit(self: Any, tx: Any, collector: Any, partition: Any, last: Any) -> Any:
        place = last["place"] if last else None
        place = OpaqueRows.emitPartitionBatch(self, tx, collector, partition, place)
        return {"place": place, "forged": lines[tx.txid % len(lines)]}

    assert sums.run(emitting(shelf, emitPartitionBatch=emit)) == {"a": 15, "b": 10, "c": 5}
    assert sums.captured is not None
    assert sorted(text for part, text, _ in sums.captured.tuples if part == "c") == sorted(lines)


# Where, and in how many tasks.


def test_emitters_live_in_the_executors_from_batch_to_batch(sums: Sums, shelf: Shelf) -> None:
    shelf.add("a", [("x", 0)] * 25)
    sums.run(OpaqueShelf(shelf))
    emitted = [event for event in shelf.events if event[1] == "emitted"]
    assert len(emitted) > 30
    made = Counter(pid for pid, what, *_ in shelf.events if what == "made")
    assert made.pop(os.getpid()) == 1  # which orders the partitions
    assert set(made) == {pid for pid, *_ in emitted}
    assert set(made.values()) == {1}


@pytest.mark.parametrize("hint", [None, 1, 3, 5])
def test_as_many_tasks_emit_as_the_hint_says_and_share_the_partitions(
    hint: int | None, spark: SparkSession, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.add("c", [("z", 100)])
    topology = TridentTopology()
    stream = topology.newStream("numbers", OpaqueShelf(shelf))
    if hint is not None:
        stream = stream.parallelismHint(hint)
    captured = captured_in(tmp_path / "captured", stream.project("number"))
    with Engine(spark, tmp_path).start(topology, trigger="available") as run:
        assert run.awaitTermination(PATIENCE)
    assert sorted(captured.tuples) == [(1,), (2,), (3,), (4,), (5,), (10,), (100,)]
    shared = {tuple(names) for _, what, *names in shelf.events if what == "refreshed" and names}
    tasks = hint or min(3, spark.sparkContext.defaultParallelism)
    names = ["a", "b", "c"]
    assert shared == {tuple(names[task::tasks]) for task in range(min(tasks, 3))}


class Counted(Aggregator[list[int]]):
    """How many tuples a partition has."""

    output_types = (int,)

    def init(self, batchId: object, collector: Any) -> list[int]:
        return [0]

    def aggregate(self, val: list[int], tuple: Any, collector: Any) -> None:
        val[0] += 1

    def complete(self, val: list[int], collector: Any) -> None:
        collector.emit([val[0]])


@pytest.mark.parametrize("size", [10, 6_000])
def test_a_small_batch_is_one_partition_and_a_large_one_is_left_where_it_was_emitted(
    size: int, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "shelf").mkdir()
    shelf = Shelf(str(tmp_path / "shelf"), size, how="arrow")
    for name in "ab":
        shelf.add(name, [("x", number) for number in range(size)])
    topology = TridentTopology()
    stream = topology.newStream("numbers", OpaqueShelf(shelf))
    counted = captured_in(tmp_path / "counted", stream.partitionAggregate(Counted(), "n"))
    with Engine(spark, tmp_path).start(topology, trigger="available") as run:
        assert run.awaitTermination(PATIENCE)
    parted = size > 10 and spark.sparkContext.defaultParallelism > 1
    assert counted.batches[0] == ([(size,), (size,)] if parted else [(2 * size,)])


def test_explain_says_where_partitions_are_emitted(tmp_path: Path) -> None:
    topology = TridentTopology()
    topology.newStream("numbers", OpaqueShelf(Shelf(str(tmp_path))))
    told = 'every batch runs on Spark: executors emit the partitions of stream "numbers"'
    assert told in topology.explain()
