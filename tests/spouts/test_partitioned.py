"""Spouts over partitions, on the local engine."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tests.spouts.decades import (
    OpaqueNumbers,
    OpaqueShelf,
    Parts,
    Shelf,
    TransactionalNumbers,
    TransactionalShelf,
)
from trident import Fields, MapGet, Sum, TridentTopology
from trident.backends import sqlite
from trident.batch.errors import BatchFailedError, OutageError
from trident.errors import (
    OperationError,
    OperationTypeError,
    PlanError,
    SourceUnavailableError,
    SpoutPartitionError,
)
from trident.log.errors import MetadataError
from trident.storm import BatchCoordinator, Emitter, ITridentSpout
from trident.testing import fail_at
from trident.testing.servers.process import wait_until

BOTH = pytest.mark.parametrize("spout", [OpaqueShelf, TransactionalShelf])


class Sums:
    """The sum of each partition's numbers, kept through any number of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, spout: Any, **options: Any) -> dict[str, int]:
        topology = TridentTopology()
        stream = topology.newStream("numbers", spout).groupBy("part")
        state = sqlite.opaque(self.folder / "sums.db")
        sums = stream.persistentAggregate(state, "number", Sum(), "sum", name="sums")
        asked = topology.newDRPCStream("sums").flatMap(json.loads, "part")
        asked.stateQuery(sums, "part", MapGet(), "sum").project("part, sum")
        started = topology.start(
            checkpoint=self.folder / "checkpoint", trigger="available", **options
        )
        with started as run:
            run.awaitTermination(60)
            found = json.loads(run.drpc.execute("sums", json.dumps(["a", "b", "c"])))
        return {part: total for part, total in found if total is not None}


@pytest.fixture
def sums(tmp_path: Path) -> Sums:
    return Sums(tmp_path)


@BOTH
def test_every_partition_is_read_to_its_end(spout: Any, sums: Sums) -> None:
    shelf = Shelf({"a": [1, 2, 3], "b": [10], "c": []})
    assert sums.run(spout(shelf)) == {"a": 6, "b": 10}


@BOTH
@pytest.mark.parametrize("point", ["before begin", "after write", "before commit"])
def test_a_failed_batch_is_counted_once(spout: Any, sums: Sums, point: str) -> None:
    with fail_at(point, txid=1):
        assert sums.run(spout(Shelf({"a": [1, 2, 3]}))) == {"a": 6}


@BOTH
def test_a_restart_goes_on_where_each_partition_was(spout: Any, sums: Sums) -> None:
    assert sums.run(spout(Shelf({"a": [1, 2], "b": [10]}))) == {"a": 3, "b": 10}
    later = Shelf({"a": [0, 0, 3], "b": [0, 20], "c": [100]})
    assert sums.run(spout(later)) == {"a": 6, "b": 30, "c": 100}


@BOTH
def test_a_partition_that_comes_back_goes_on_where_it_was(spout: Any, sums: Sums) -> None:
    shelf = Shelf({"a": [1, 2], "b": [10]})
    sums.run(spout(shelf))
    shelf.hidden, shelf.numbers["b"] = {"a"}, [10, 20]
    assert sums.run(spout(shelf)) == {"a": 3, "b": 30}
    shelf.hidden, shelf.numbers["a"] = set(), [1, 2, 4]
    assert sums.run(spout(shelf)) == {"a": 7, "b": 30}


def test_an_opaque_stream_goes_on_without_a_partition_that_is_away_and_says_so_once(
    sums: Sums, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf({"a": [1, 2, 3, 4, 5], "b": [10]}, away={"b"})
    with caplog.at_level(logging.WARNING, "trident"):
        assert sums.run(OpaqueShelf(shelf)) == {"a": 15}
    told = [
        record.getMessage()
        for record in caplog.records
        if "without partition" in record.getMessage()
    ]
    assert told == ["stream numbers goes on without partition b: shelf b: it is away."]
    shelf.away.clear()
    assert sums.run(OpaqueShelf(shelf)) == {"a": 15, "b": 10}


def test_a_transactional_stream_waits_for_a_partition_that_is_away(sums: Sums) -> None:
    shelf = Shelf({"a": [1, 2, 3], "b": [10]}, away={"b"})
    with pytest.raises(OutageError, match=r"'numbers', partition b: shelf b: it is away"):
        sums.run(TransactionalShelf(shelf), patience=0.01)
    shelf.away.clear()
    assert sums.run(TransactionalShelf(shelf)) == {"a": 6, "b": 10}


def test_a_transactional_batch_is_emitted_again_as_it_was(sums: Sums) -> None:
    shelf = Shelf({"a": [1, 2, 3], "b": [10]})
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        sums.run(Recording(shelf), retries=0)
    shelf.numbers["b"].append(20)
    shelf.numbers["c"] = [100]
    shelf.size = 9
    topology_emits_again = sums.run(Recording(shelf))
    assert topology_emits_again == {"a": 6, "b": 30, "c": 100}
    assert Recording.again == [("a", {"start": 0, "end": 2}), ("b", {"start": 0, "end": 1})]


class Recording(TransactionalShelf):
    """Notes which batches are emitted again."""

    again: list[Any] = []  # noqa: RUF012 - one test's

    def getEmitter(self, conf: Any, context: Any) -> Any:
        recording = Recording.again = []

        class Emitter(TransactionalNumbers):
            def emitPartitionBatchNew(self, tx: Any, collector: Any, part: Any, last: Any) -> Any:
                told = {"start": last["end"] if last else 0}
                told["end"] = told["start"] + len(self.shelf.read(part.name, told["start"]))
                super().emitPartitionBatch(tx, collector, part, told)
                return told

            def emitPartitionBatch(self, tx: Any, collector: Any, part: Any, told: Any) -> None:
                recording.append((part.name, told))
                super().emitPartitionBatch(tx, collector, part, told)

        return Emitter(self.shelf)


def test_a_transactional_stream_waits_for_a_planned_partition_that_is_gone(sums: Sums) -> None:
    shelf = Shelf({"a": [1], "b": [10]})
    with fail_at("after write", txid=1, times=9), pytest.raises(BatchFailedError):
        sums.run(TransactionalShelf(shelf), retries=0)
    shelf.hidden = {"b"}
    with pytest.raises(OutageError, match="partition b: it is part of batch 1"):
        sums.run(TransactionalShelf(shelf), patience=0.01)
    shelf.hidden = set()
    assert sums.run(TransactionalShelf(shelf)) == {"a": 1, "b": 10}


def test_a_partition_without_a_part_in_a_planned_batch_may_be_gone(sums: Sums) -> None:
    shelf = Shelf({"a": [1], "b": [10]})
    assert sums.run(TransactionalShelf(shelf)) == {"a": 1, "b": 10}
    shelf.numbers["a"].append(2)
    with fail_at("after write", times=9), pytest.raises(BatchFailedError):
        sums.run(TransactionalShelf(shelf), retries=0)
    shelf.hidden = {"b"}
    assert sums.run(TransactionalShelf(shelf), patience=0.01) == {"a": 3, "b": 10}


@BOTH
def test_a_partition_listed_twice_is_an_error(spout: Any, sums: Sums) -> None:
    shelf = spout(Shelf({"a": [1]}))
    shelf.getCoordinator = lambda conf, context: TwiceListed()
    with pytest.raises(SpoutPartitionError, match="partition 'a' is listed twice"):
        sums.run(shelf)


class TwiceListed(OpaqueShelf.Coordinator):
    def getPartitionsForBatch(self) -> Any:
        return ["a", "a"]


def test_a_coordinator_learns_what_is_known_before_and_after_each_emission(sums: Sums) -> None:
    known: list[Any] = []

    class Following(Parts):
        def follow(self, metadata: Any) -> None:
            known.append(dict(metadata))

    def run(shelf: Shelf) -> None:
        spout = OpaqueShelf(shelf)
        spout.getCoordinator = lambda conf, context: Following(shelf)  # type: ignore[method-assign]
        sums.run(spout)

    with fail_at("after write", txid=1):
        run(Shelf({"a": [1, 2, 3]}))
    assert known == [{}, {"a": 2}, {}, {"a": 2}, {"a": 2}, {"a": 3}, {"a": 3}, {"a": 3}]
    known.clear()
    run(Shelf({"a": [1, 2, 3], "b": [10]}))
    assert known[:2] == [{"a": 3}, {"a": 3, "b": 1}]


def emitting(**methods: Any) -> OpaqueShelf:
    """A spout of one partition whose emitter has other methods."""
    spout = OpaqueShelf(Shelf({"a": [1]}))
    made = type("Emitter", (OpaqueNumbers,), methods)
    spout.getEmitter = lambda conf, context: made(spout.shelf)  # type: ignore[method-assign]
    return spout


def test_an_exception_of_an_emitter_names_step_and_partition(sums: Sums) -> None:
    spout = emitting(emitPartitionBatch=lambda self, tx, collector, partition, last: 1 / 0)
    with pytest.raises(OperationError, match=r'(?s)ZeroDivisionError.*"numbers".*partition a'):
        sums.run(spout)


def test_a_tuple_of_a_wrong_width_names_spout_and_partition(sums: Sums) -> None:
    def emit(self: Any, tx: Any, collector: Any, partition: Any, last: Any) -> int:
        collector.emit(["a"])
        return 1

    with pytest.raises(OperationError, match="numbers, partition a emitted 1 values for 2"):
        sums.run(emitting(emitPartitionBatch=emit))


def test_columns_of_other_names_or_lengths_are_an_error(sums: Sums) -> None:
    for columns, problem in (
        ({"part": ["a"]}, "emitted the columns part, expected part, number"),
        ({"part": ["a"], "number": [1, 2]}, "differ in length: part: 1, number: 2"),
        (["a"], "expected columns by field"),
    ):

        def emit(self: Any, tx: Any, collector: Any, *_: Any, columns: Any = columns) -> int:
            collector.emitColumns(columns)
            return 1

        with pytest.raises(OperationError, match=problem):
            sums.run(emitting(emitPartitionBatch=emit))


def test_metadata_that_is_no_json_names_the_partition(sums: Sums) -> None:
    spout = emitting(emitPartitionBatch=lambda self, tx, collector, partition, last: {1, 2})
    with pytest.raises(MetadataError, match="'numbers, partition a'"):
        sums.run(spout)


def test_a_transactional_partition_that_tells_nothing_of_its_tuples_is_an_error(
    sums: Sums,
) -> None:
    class Silent(TransactionalNumbers):
        def emitPartitionBatchNew(self, *arguments: Any) -> Any:
            super().emitPartitionBatchNew(*arguments)

    spout = TransactionalShelf(Shelf({"a": [1]}))
    spout.getEmitter = lambda conf, context: Silent(spout.shelf)  # type: ignore[method-assign]
    with pytest.raises(SpoutPartitionError, match="emitted 1 tuples and returned None"):
        sums.run(spout)


def test_emitters_are_told_their_partitions_where_those_change_and_are_closed(sums: Sums) -> None:
    shelf = Shelf({"a": [1, 2, 3]})
    sums.run(OpaqueShelf(shelf))
    assert shelf.calls == [("refresh", "a"), ("close",), ("close",)]


class Rounds(Parts):
    """Counts how often it is asked for partitions."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self.asked = 0

    def getPartitionsForBatch(self) -> Any:
        self.asked += 1
        return super().getPartitionsForBatch()


@BOTH
def test_an_idle_stream_commits_nothing_until_there_is_something(
    spout: Any, sums: Sums, tmp_path: Path
) -> None:
    shelf = Shelf({"a": [1]})
    spout = spout(shelf)
    rounds = Rounds(shelf)
    spout.getCoordinator = lambda conf, context: rounds
    topology = TridentTopology()
    state = sqlite.opaque(tmp_path / "sums.db")
    stream = topology.newStream("numbers", spout).groupBy("part")
    stream.persistentAggregate(state, "number", Sum(), "sum", name="sums")
    with topology.start(checkpoint=tmp_path / "checkpoint") as run:
        run.processAllAvailable()
        group, idle = run.groups["numbers"], rounds.asked
        wait_until(lambda: rounds.asked > idle + 3)
        before = [progress.txid for progress in group.recentProgress]
        shelf.numbers["a"].append(2)
        wait_until(lambda: len(group.recentProgress) > len(before))
        after = group.recentProgress[len(before)]
    assert (after.txid, after.tuples) == (before[-1] + 1, 1)
    assert before in ([1], [1, 2])  # the first one that finds nothing may say more of its place
    assert sums.run(spout) == {"a": 3}


def test_an_opaque_partition_that_tells_nothing_of_its_tuples_is_an_error(sums: Sums) -> None:
    def emit(self: Any, tx: Any, collector: Any, partition: Any, last: Any) -> None:
        collector.emit(["a", 1])

    with pytest.raises(SpoutPartitionError, match="returned None, .* again, for ever"):
        sums.run(emitting(emitPartitionBatch=emit))


@BOTH
@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        (None, "returned NoneType None. Return a list"),
        ("ab", "returned str 'ab'. Return a list"),
        (["a"], "lists str 'a'. Return objects that have a method getId"),
    ],
)
def test_what_is_no_list_of_partitions_is_an_error(
    spout: Any, sums: Sums, listed: Any, problem: str
) -> None:
    spout = spout(Shelf({"a": [1]}))
    emitter = spout.getEmitter({}, None)
    emitter.getOrderedPartitions = lambda info: listed
    spout.getEmitter = lambda conf, context: emitter
    with pytest.raises(SpoutPartitionError, match=f"getOrderedPartitions {problem}"):
        sums.run(spout)


@BOTH
def test_an_emitter_of_another_interface_is_an_error(spout: Any, sums: Sums) -> None:
    other = TransactionalNumbers if spout is OpaqueShelf else OpaqueNumbers
    spout = spout(Shelf({"a": [1]}))
    spout.getEmitter = lambda conf, context: other(spout.shelf)
    with pytest.raises(OperationTypeError, match=f"Emitter, found '{other.__name__}'. Derive its"):
        sums.run(spout)


def test_metadata_of_another_spout_is_an_error(sums: Sums) -> None:
    spout = OpaqueShelf(Shelf({"a": [1]}))

    class Offset(ITridentSpout):
        def getCoordinator(self, txStateId: str, conf: Any, context: Any) -> Any:
            return Once()

        def getEmitter(self, txStateId: str, conf: Any, context: Any) -> Any:
            return OneNumber()

        def getOutputFields(self) -> Fields:
            return spout.getOutputFields()

    class Once(BatchCoordinator):
        def isReady(self, txid: int) -> bool:
            return txid == 1

    class OneNumber(Emitter):
        def emitBatch(self, token: Any, metadata: Any, collector: Any) -> int:
            collector.emit(["a", 1])
            return 7

    assert sums.run(Offset()) == {"a": 1}
    fields = ", ".join(f"{name} {kind}" for name, kind in spout.getOutputFields().types.items())
    with pytest.raises(SpoutPartitionError, match="the log holds int 7 of it"):
        sums.run(spout, accept_change={"numbers": f"OpaqueShelf of {fields}"})


def test_a_spout_is_of_no_kind_that_its_interface_can_not_keep(sums: Sums) -> None:
    class Strong(OpaqueShelf):
        kind = "transactional"

    with pytest.raises(PlanError, match=r"Strong has an attribute kind .*: non-trans.*, opaque"):
        sums.run(Strong(Shelf({"a": [1]})))


def test_a_spout_of_an_unknown_kind_is_an_error(sums: Sums) -> None:
    class Odd(OpaqueShelf):
        kind = "exactly once"  # type: ignore[assignment]

    with pytest.raises(PlanError, match="Odd is of an unknown kind 'exactly once'"):
        sums.run(Odd(Shelf({"a": [1]})))


def test_a_transactional_spout_may_be_of_a_weaker_kind(sums: Sums) -> None:
    class Weak(TransactionalShelf):
        kind = "opaque"

    shelf = Shelf({"a": [1, 2, 3], "b": [10]}, away={"b"})
    with fail_at("after write", txid=1):
        assert sums.run(Weak(shelf)) == {"a": 6}


def test_the_coordinator_is_closed_where_there_is_no_emitter(sums: Sums) -> None:
    spout, closed = OpaqueShelf(Shelf({"a": [1]})), []

    class Closed(Parts):
        def close(self) -> None:
            closed.append(True)

    def no_emitter(conf: Any, context: Any) -> Any:
        raise ConnectionError("no broker")

    spout.getCoordinator = lambda conf, context: Closed(spout.shelf)  # type: ignore[method-assign]
    spout.getEmitter = no_emitter  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        sums.run(spout)
    assert closed == [True]


def test_output_fields_may_be_a_string(sums: Sums) -> None:
    spout = OpaqueShelf(Shelf({"a": [1]}))
    spout.getOutputFields = lambda: "part string, number long"  # type: ignore[assignment,method-assign,return-value]
    assert sums.run(spout) == {"a": 1}


def test_what_a_coordinator_raises_names_stream_and_batch(sums: Sums) -> None:
    spout = OpaqueShelf(Shelf({"a": [1]}))

    class Broken(Parts):
        def getPartitionsForBatch(self) -> Any:
            raise KeyError("topic")

    spout.getCoordinator = lambda conf, context: Broken(spout.shelf)  # type: ignore[method-assign]
    with pytest.raises(KeyError) as raised:
        sums.run(spout)
    assert raised.value.__notes__ == [
        'raised by the spout of the stream "numbers" in batch 1, attempt 0'
    ]


def test_partitions_whose_emitter_can_not_be_told_of_them_are_away(
    sums: Sums, caplog: pytest.LogCaptureFixture
) -> None:
    def refresh(self: Any, partitions: Any) -> None:
        if self.shelf.away:
            raise SourceUnavailableError("shelf a", "no connection")

    spout = emitting(refreshPartitions=refresh)
    spout.shelf.away = {"a"}
    assert sums.run(spout) == {}
    assert "goes on without partition a: shelf a: no connection." in caplog.text
    spout.shelf.away = set()
    assert sums.run(spout) == {"a": 1}
