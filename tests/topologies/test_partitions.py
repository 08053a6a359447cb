"""In how many partitions a stream is, as far as it was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tests.topologies.conftest import Engine, feed
from tests.topologies.test_aggregates import carried
from trident.operations.builtin import Count
from trident.spouts.feeder import FeederBatchSpout
from trident.states.maps import MapStateFactory
from trident.stream import Stream
from trident.topology import TridentTopology

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
