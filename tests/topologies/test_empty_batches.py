"""Batches without tuples: what aggregates the whole of a batch or partition acts on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from tests.topologies.conftest import Engine, feed
from tests.topologies.test_aggregates import (
    AGGREGATES,
    Earliest,
    EvenAndOdd,
    Longest,
    Spread,
    carried,
)
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.operations.builtin import Count, Sum
from trident.operations.callables import native
from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.spouts.feeder import FeederBatchSpout
from trident.states.maps.factory import MapStateFactory
from trident.tuples import TridentTuple, tuple_type
from trident.tuples.fields import Fields


def committed(factory: MapStateFactory) -> int:
    """The last batch that a state has been told of; 0 before any."""
    state = factory.makeState()
    try:
        record = state.control.read() if state.control else None
        return record.committed if record else 0
    finally:
        state.close()


def test_an_aggregate_of_the_whole_batch_is_its_zero(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    stream = topology.newStream("tuples", spout)
    found = {
        name: engine.capture(stream.aggregate(*inputs, made, "made"), name)
        for name, made, inputs in AGGREGATES
    }
    engine.play(topology, spout, [(2,)], [], [(3,), (1,)])
    assert {name: captured.batches for name, captured in found.items()} == {
        "Count": [[(1,)], [(0,)], [(2,)]],
        "Sum": [[(2,)], [(0,)], [(4,)]],
        "Min": [[(2,)], [(None,)], [(1,)]],
        "Max": [[(2,)], [(None,)], [(3,)]],
        "Spread": [[([2, 2],)], [([],)], [([1, 3],)]],
    }


STEPS: Mapping[str, tuple[Callable[[Stream], Stream], list[Any]]] = {
    "a reducer": (lambda s: s.aggregate("word", Longest(), "longest"), [("",)]),
    "an aggregator": (
        lambda s: s.aggregate("n", EvenAndOdd(), "what, count"),
        [("even", 0), ("odd", 0)],
    ),
    "each partition": (
        lambda s: s.shuffle().partitionAggregate(Count(), "count").parallelismHint(3),
        [(0,)] * 3,
    ),
    "each partition of a source": (
        lambda s: s.parallelismHint(2).partitionAggregate("n", Spread(), "spread"),
        [([],)] * 2,
    ),
    "a partition that was gathered": (
        lambda s: s.global_().partitionAggregate("word", Longest(), "longest"),
        [("",)],
    ),
    "what was aggregated by group": (
        lambda s: s.groupBy("word").aggregate(Count(), "count").aggregate("count", Sum(), "sum"),
        [(0,)],
    ),
    "what was aggregated by group in Python": (
        lambda s: (
            s.groupBy("n").aggregate("word", Earliest(), "first").aggregate("n", Spread(), "spread")
        ),
        [([],)],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_has_no_groups_acts_on_an_empty_batch(engine: Engine, name: str) -> None:
    step, given = STEPS[name]
    found = carried(engine, "word string, n long", step, [("a", 1)], [], [("b", 2), ("cc", 2)])
    assert len(found) == 3
    assert found[1] == given


def test_groups_give_nothing_of_an_empty_batch_and_no_state_begins(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    counts = MemoryMapState.Factory()
    words = topology.newStream("words", spout).groupBy("word")
    state = words.persistentAggregate(counts, Count(), "count")
    captured = engine.capture(state.newValuesStream())
    with engine.start(topology) as run:
        feed(run, spout, [])
        assert committed(counts) == 0
        feed(run, spout, [("a",)], [], [])
        assert committed(counts) == 2
        feed(run, spout, [("a",)])
    assert committed(counts) == 5
    assert captured.batches == [[("a", 1)], [("a", 2)]]


@pytest.mark.parametrize("aggregator", [Count(), Spread()], ids=["native", "python"])
def test_the_single_value_of_a_combiner_exists_after_an_empty_batch(
    engine: Engine, aggregator: Any
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    memory = MemoryMapState.Factory()
    stream = topology.newStream("tuples", spout)
    total = stream.persistentAggregate(memory, "n", aggregator, "total")
    captured = engine.capture(total.newValuesStream())
    zero, one = aggregator.zero(), aggregator.init(tuple_type(Fields("n"))((7,)))
    with engine.start(topology) as run:
        feed(run, spout, [])
        assert committed(memory) == 1
        feed(run, spout, [(7,)], [])
        assert committed(memory) == 3
    assert captured.tuples == [(zero,), (one,), (one,)]


def test_a_reducer_is_not_asked_to_reduce_nothing_onto_a_state(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout)
    kept = stream.persistentAggregate(MemoryMapState.Factory(), "word", Longest(), "longest")
    counts = engine.capture(stream.aggregate(Count(), "count"), "counts")
    changed = engine.capture(kept.newValuesStream(), "changed")
    engine.play(topology, spout, [], [("moon",)], [])
    assert changed.batches == [[("moon",)]]
    assert counts.batches == [[(0,)], [(1,)], [(0,)]]


class Never(StateUpdater[Any]):
    """Is never handed an empty list."""

    output_types = (int,)

    def updateState(
        self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        assert tuples
        collector.emit([len(tuples)])


def test_an_updater_is_not_called_without_tuples_but_what_follows_acts(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    state = topology.newStream("words", spout).partitionPersist(
        MemoryMapState.Factory(), "word", Never(), "written"
    )
    new = state.newValuesStream()
    totals = engine.capture(new.aggregate("written", Sum(), "total"), "totals")
    spreads = engine.capture(new.partitionAggregate("written", Spread(), "spread"), "spreads")
    engine.play(topology, spout, [("a",), ("b",)], [], [("c",)])
    assert totals.batches == [[(2,)], [(0,)], [(1,)]]
    assert spreads.batches == [[([2, 2],)], [([],)], [([1, 1],)]]


def test_streams_of_which_one_is_empty_are_merged(engine: Engine) -> None:
    topology = TridentTopology()
    one, other = FeederBatchSpout("n long"), FeederBatchSpout("n long")
    merged = topology.merge(topology.newStream("one", one), topology.newStream("other", other))
    found = engine.capture(merged.aggregate("n", Spread(), "spread"))
    with engine.start(topology) as run:
        feed(run, one, [(1,)], [])
        feed(run, other, [], [(2,)])
    assert found.batches == [[([1, 1],)], [([],)], [([],)], [([2, 2],)]]


@pytest.mark.spark
@pytest.mark.parametrize("rows", [3, 10_001])
def test_what_spark_filters_away_before_it_runs_leaves_partitions(
    spark: Any, tmp_path: Any, rows: int
) -> None:
    engine = Engine(spark, tmp_path)

    def step(stream: Stream) -> Stream:
        return stream.filter(native("n < 0")).partitionAggregate("n", Spread(), "spread")

    found = carried(engine, "n long", step, [(n,) for n in range(rows)])
    assert found
    assert set(map(repr, found[0])) == {"([],)"}


def test_a_query_whose_tuples_are_all_dropped_counts_none(engine: Engine) -> None:
    topology = TridentTopology()
    asked = topology.newDRPCStream("words").each("args", str.split, "word string")
    asked.filter("word", str.isdigit).aggregate(Count(), "count")
    with engine.start(topology) as run:
        assert run.drpc.execute("words", "the cow") == "[[0]]"


@pytest.mark.spark
@pytest.mark.parametrize("condition", ["false", "c is null"])
def test_a_filter_that_spark_knows_to_keep_nothing_leaves_a_partition(
    spark: Any, tmp_path: Any, condition: str
) -> None:
    def step(stream: Stream) -> Stream:
        counted = stream.aggregate(Count(), "c").filter(native(condition))
        return counted.aggregate("c", Spread(), "spread")

    found = carried(Engine(spark, tmp_path), "n long", step, [(1,)], [])
    assert found == [[([],)], [([],)]]
