"""In how many partitions a stream is, as far as it was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

import pytest

from tests.topologies.conftest import Engine, feed
from tests.topologies.test_aggregates import carried
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.errors import OperationError
from trident.operations.builtin import Count
from trident.operations.interfaces import (
    CustomStreamGrouping,
    Function,
    TridentCollector,
    TridentOperationContext,
)
from trident.spouts.feeder import FeederBatchSpout
from trident.states.keys import encode_key
from trident.states.maps.factory import MapStateFactory
from trident.tuples import TridentTuple

GROUPED: Mapping[str, Callable[[Stream], Stream]] = {
    "the aggregate": lambda s: s.groupBy("word").aggregate(Count(), "n").parallelismHint(3),
    "the groups": lambda s: s.groupBy("word").aggregate(Count(), "n").shuffle().parallelismHint(3),
}


@pytest.mark.parametrize("name", GROUPED)
def test_groups_are_in_as_many_as_their_hint_says(engine: Engine, name: str) -> None:
    def step(stream: Stream) -> Stream:
        return GROUPED[name](stream).partitionAggregate(Count(), "groups")

    words = [(word,) for word in "abca"]
    first, nothing = carried(engine, "word string", step, words, [])
    assert (len(first), sum(count for (count,) in first)) == (3, 3)
    assert nothing == [(0,)] * 3


def test_new_values_are_in_as_many_as_the_hint_of_the_update_says(
    engine: Engine, kept: MapStateFactory
) -> None:
    def step(stream: Stream) -> Stream:
        counts = stream.groupBy("word").persistentAggregate(kept, Count(), "count")
        changed = counts.parallelismHint(3).newValuesStream()
        return changed.partitionAggregate(Count(), "changed")

    first, nothing = carried(engine, "word string", step, [("a",), ("b",)], [])
    assert (len(first), sum(count for (count,) in first)) == (3, 2)
    assert nothing == [(0,)] * 3


MERGED: Mapping[str, tuple[int | None, int | None, int | None, int]] = {
    "none of them is told": (None, None, None, 1),
    "one of them is told": (2, None, None, 3),
    "both are told": (2, 3, None, 5),
    "the merge is told": (2, 3, 4, 4),
    "the merge is told of less": (3, None, 2, 2),
}


@pytest.mark.parametrize("name", MERGED)
def test_a_merge_has_the_partitions_of_all_its_streams(engine: Engine, name: str) -> None:
    first, second, own, expected = MERGED[name]
    topology = TridentTopology()
    one, other = FeederBatchSpout("n long"), FeederBatchSpout("n long")
    streams = [topology.newStream("one", one), topology.newStream("other", other)]
    if first:
        streams[0] = streams[0].parallelismHint(first)
    if second:
        streams[1] = streams[1].parallelismHint(second)
    merged = topology.merge(*streams)
    if own:
        merged = merged.parallelismHint(own)
    captured = engine.capture(merged.partitionAggregate(Count(), "count"))
    with engine.start(topology) as run:
        feed(run, one, [(n,) for n in range(7)])
        feed(run, other, [(1,)])
    assert [len(batch) for batch in captured.batches] == [expected] * 2
    assert [sum(count for (count,) in batch) for batch in captured.batches] == [7, 1]


class ByRest(CustomStreamGrouping):
    """Tuples by what is left of their number; 0 into no partition, 1 into all of them."""

    def chooseTasks(self, targetTasks: Sequence[int], values: TridentTuple) -> Sequence[int]:
        n = values.getLongByField("n") or 0
        return [[], list(targetTasks)][n] if n < 2 else [targetTasks[n % len(targetTasks)]]


class Beyond(CustomStreamGrouping):
    positional = True

    def chooseTasks(self, targetTasks: Sequence[int], values: TridentTuple) -> Sequence[int]:
        return [len(targetTasks)] if values[0] == 2 else [0]


class Place(Function):
    """Which partition a tuple is in."""

    output_types = (int,)

    def prepare(self, conf: object, context: TridentOperationContext) -> None:
        self.index = context.getPartitionIndex()

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        collector.emit([self.index])


def test_a_grouping_chooses_none_one_or_several_partitions(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        spread = stream.shuffle().parallelismHint(2)
        chosen = spread.partition(ByRest()).parallelismHint(3).each(Place(), "at")
        return chosen.project("n, at")

    [found] = carried(engine, "s string, n long", step, [("x", n) for n in range(6)])
    assert found == [(1, 0), (1, 1), (1, 2), (2, 2), (3, 0), (4, 1), (5, 2)]


def test_a_grouping_chooses_where_there_is_one_partition(engine: Engine) -> None:
    found = carried(
        engine, "n long", lambda s: s.partition(ByRest()).parallelismHint(1), [(0,), (1,), (2,)]
    )
    assert found == [[(1,), (2,)]]


def test_a_partition_that_is_not_there_names_the_grouping_and_the_tuple(engine: Engine) -> None:
    with pytest.raises(OperationError, match=r"Beyond\(\) chose \[3\]") as raised:
        carried(engine, "n long", lambda s: s.partition(Beyond()).parallelismHint(3), [(1,), (2,)])
    assert "n=2" in str(raised.value)


@pytest.mark.parametrize(("before", "after"), [(3, 3), (1, 3), (3, 2)])
def test_local_or_shuffle_makes_as_many_partitions_as_its_hint_says(
    engine: Engine, before: int, after: int
) -> None:
    def step(stream: Stream) -> Stream:
        moved = stream.shuffle().parallelismHint(before).localOrShuffle().parallelismHint(after)
        return moved.partitionAggregate(Count(), "n")

    [found] = carried(engine, "n long", step, [(n,) for n in range(12)])
    assert (len(found), sum(count for (count,) in found)) == (after, 12)


def test_local_or_shuffle_leaves_tuples_in_as_many_partitions(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        by = stream.partitionBy("n").parallelismHint(3).each(Place(), "before")
        return by.localOrShuffle().parallelismHint(3).each(Place(), "after")

    [found] = carried(engine, "n long", step, [(n,) for n in range(12)])
    assert len({at for _, at, _ in found}) == 3
    assert all(before == after for _, before, after in found)


def test_partition_by_is_crc32_of_the_encoded_key(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return stream.partitionBy("word").parallelismHint(4).each(Place(), "at").project("word, at")

    words = ["cat", "dog", "cow", None]
    [found] = carried(engine, "word string", step, [(word,) for word in words])
    assert dict(found) == {word: crc32(encode_key((word,))) % 4 for word in words}


def test_identity_partition_adds_no_step() -> None:
    stream = TridentTopology().newStream("s", FeederBatchSpout("n long")).parallelismHint(3)
    before = stream.shuffle()
    assert before.identityPartition() is before
