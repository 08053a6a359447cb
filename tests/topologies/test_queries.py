"""Queries: what the original's integration tests expect, and queries inside a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.topologies.conftest import Engine, feed
from tests.topologies.test_word_count import WordCount, batch
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import PlanError
from trident.operations.builtin import (
    Count,
    FilterNull,
    MapGet,
    SnapshotGet,
    Split,
    TupleCollectionGet,
)
from trident.operations.interfaces import Aggregator, QueryFunction, TridentCollector
from trident.spouts.feeder import FeederBatchSpout
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType
from trident.tuples import TridentTuple


class CountAsAggregator(Aggregator[int]):
    """Counts in the most general way."""

    output_types = (int,)

    def init(self, batchId: object, collector: TridentCollector) -> int:
        return 0

    def aggregate(self, val: int, tuple: TridentTuple, collector: TridentCollector) -> int:
        return val + 1

    def complete(self, val: int, collector: TridentCollector) -> None:
        collector.emit([val])


def answer(run: Any, function: str, args: str) -> list[list[Any]]:
    """A query's tuples, sorted: their order is no part of the answer."""
    return sorted(json.loads(run.drpc.execute(function, args)), key=repr)


def test_all_tuples_of_a_state(engine: Engine) -> None:
    counted = WordCount()
    (
        counted.topology.newDRPCStream("all-tuples")
        .broadcast()
        .stateQuery(counted.state, "args", TupleCollectionGet(), "word, count")
        .project("word, count")
    )
    with engine.start(counted.topology) as run:
        feed(run, counted.spout, batch("hello the man said", "the"))
        expected = [["hello", 1], ["said", 1], ["the", 2], ["man", 1]]
        assert answer(run, "all-tuples", "man") == sorted(expected, key=repr)
        feed(run, counted.spout, batch("the foo"))
        expected = [["hello", 1], ["said", 1], ["the", 3], ["man", 1], ["foo", 1]]
        assert answer(run, "all-tuples", "man") == sorted(expected, key=repr)


def test_a_plain_aggregator_answers_once_however_many_partitions(engine: Engine) -> None:
    topology = TridentTopology()
    (
        topology.newDRPCStream("numwords")
        .each("args", Split(), "word")
        .parallelismHint(2)
        .aggregate(CountAsAggregator(), "count")
        .parallelismHint(2)
    )
    with engine.start(topology) as run:
        assert [answer(run, "numwords", "the") for _ in range(100)] == [[[1]]] * 100
        assert answer(run, "numwords", "") == [[0]]
        assert answer(run, "numwords", "1 2 3 4 5 6 7 8") == [[8]]


def test_merged_branches_answer_together(engine: Engine) -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("splitter")
    words = stream.each("args", Split(), "word").project("word")
    lengths = stream.each("args", lambda args: [len(args)], "length").project("length")
    topology.merge(words, lengths)
    with engine.start(topology) as run:
        assert answer(run, "splitter", "the man") == [["man"], ["the"], [7]]
        assert answer(run, "splitter", "hello") == [["hello"], [5]]


def test_two_aggregates_of_one_stream_are_merged(engine: Engine) -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("tester")
    first = stream.groupBy("args").aggregate(CountAsAggregator(), "count")
    second = stream.groupBy("args").aggregate(CountAsAggregator(), "count")
    topology.merge(first, second)
    with engine.start(topology) as run:
        assert answer(run, "tester", "the") == [["the", 1], ["the", 1]]
        assert answer(run, "tester", "aaaaa") == [["aaaaa", 1], ["aaaaa", 1]]


def test_moving_tuples_twice_loses_none(engine: Engine) -> None:
    topology = TridentTopology()
    (
        topology.newDRPCStream("tester")
        .each("args", Split(), "word")
        .shuffle()
        .parallelismHint(3)
        .shuffle()
        .parallelismHint(2)
        .aggregate(CountAsAggregator(), "count")
    )
    with engine.start(topology) as run:
        assert answer(run, "tester", "the man") == [[2]]
        assert answer(run, "tester", "aaa") == [[1]]


def test_the_step_declared_last_answers_whatever_branch_it_is_on(engine: Engine) -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("branches")
    stream.each("args", Split(), "word").aggregate(Count(), "count")
    stream.each("args", lambda args: [args.upper()], "upper").project("upper")
    with engine.start(topology) as run:
        assert answer(run, "branches", "a b") == [["A B"]]


@pytest.mark.parametrize("kind", [StateType.OPAQUE, StateType.TRANSACTIONAL])
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_a_query_inside_a_batch_sees_the_batch_before(engine: Engine, kind: StateType) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    memory = MemoryMapState.Factory()
    stream = topology.newStream("words", spout)
    state = stream.groupBy("word").persistentAggregate(
        MapStateFactory(memory.store, kind), Count(), "count"
    )
    query = stream.stateQuery(state, "word", MapGet(), "known").project("word, known")
    captured = engine.capture(query)
    engine.play(topology, spout, [("a",), ("a",), ("b",)], [("a",), ("c",)], [("a",), ("b",)])
    assert captured.batches == [
        [("a", None), ("a", None), ("b", None)],
        [("a", 2), ("c", None)],
        [("a", 3), ("b", 1)],
    ]


def test_a_static_state_is_read_as_it_is(engine: Engine) -> None:
    memory = MemoryMapState.Factory()
    prices = memory.makeState()
    prices.beginCommit(1)
    prices.multiPut([("tea",), ("milk",)], [3, 2])
    prices.commit(1)
    topology = TridentTopology()
    spout = FeederBatchSpout("item string")
    static = topology.newStaticState(memory)
    stream = topology.newStream("sold", spout)
    captured = engine.capture(
        stream.stateQuery(static, "item", MapGet(), "price long").each("price", FilterNull())
    )
    topology.newDRPCStream("price").stateQuery(static, "args", MapGet(), "price").project("price")
    with engine.start(topology) as run:
        feed(run, spout, [("tea",), ("salt",), ("milk",)])
        assert answer(run, "price", "tea") == [[3]]
    assert captured.tuples == [("milk", 2), ("tea", 3)]


def test_a_key_of_another_type_is_found_as_the_error_about_it_says(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("id long, text string")
    stream = topology.newStream("ids", spout)
    state = stream.groupBy("id").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    query = topology.newDRPCStream("count")
    with pytest.raises(PlanError, match=re.escape('.each("args", lambda v: [int(v)], "id long")')):
        query.stateQuery(state, "args", MapGet(), "count")
    query = query.each("args", lambda v: [int(v)], "id long")
    query.stateQuery(state, "id", MapGet(), "count").project("count")
    written = '.each("text", lambda v: [None if v is None else int(v)], "id_2 long")'
    with pytest.raises(PlanError, match=re.escape(written)):
        stream.stateQuery(state, "text", MapGet(), "before")
    stream = stream.each("text", lambda v: [None if v is None else int(v)], "id_2 long")
    before = stream.stateQuery(state, "id_2", MapGet(), "before").project("before")
    captured = engine.capture(before)
    with engine.start(topology) as run:
        feed(run, spout, [(1, None), (1, "1")], [(2, "1"), (None, None)])
        assert answer(run, "count", "1") == [[2]]
    assert captured.batches == [[(None,), (None,)], [(2,), (None,)]]


def test_the_single_value_of_an_ungrouped_state(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    total = topology.newStream("words", spout).persistentAggregate(
        MemoryMapState.Factory(), Count(), "count"
    )
    topology.newDRPCStream("total").stateQuery(total, SnapshotGet(), "count").project("count")
    with engine.start(topology) as run:
        assert answer(run, "total", "") == [[None]]
        feed(run, spout, [("a",), ("b",)], [("a",)])
        assert answer(run, "total", "") == [[3]]


def test_a_query_of_new_values_sees_the_batch_before_too(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).groupBy("word")
    state = stream.persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    changed = state.newValuesStream().stateQuery(state, "word", MapGet(), "before")
    captured = engine.capture(changed)
    engine.play(topology, spout, [("a",), ("a",), ("b",)], [("a",), ("c",)])
    assert captured.batches == [[("a", 2, None), ("b", 1, None)], [("a", 3, 2), ("c", 1, None)]]


@pytest.mark.parametrize("kind", StateType)
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_each_of_two_states_may_be_asked_for_the_others_new_values(
    engine: Engine, kind: StateType
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).groupBy("word")
    states = [
        stream.persistentAggregate(
            MapStateFactory(MemoryMapState.Factory().store, kind), Count(), name
        )
        for name in ("one", "other")
    ]
    found = [
        engine.capture(
            a.newValuesStream().stateQuery(b, "word", MapGet(), "before"), f"of {a.name}"
        )
        for a, b in (states, states[::-1])
    ]
    engine.play(topology, spout, [("a",), ("a",)], [("a",)])
    for captured in found:
        assert captured.batches == [[("a", 2, None)], [("a", 3, 2)]]


def test_what_is_found_counts_though_no_field_of_it_is_needed(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    words = topology.newStream("words", spout)
    total = words.persistentAggregate(MemoryMapState.Factory(), Count(), "total")
    asked = words.stateQuery(total, SnapshotGet(), "seen").aggregate(Count(), "asked")
    captured = engine.capture(asked)
    engine.play(topology, spout, [("a",), ("b",)], [("a",)])
    assert captured.batches == [[(2,)], [(1,)]]


class Least(QueryFunction[Any, str]):
    """Finds the least of the tuples it is asked for, of which there has to be one."""

    output_types = (str,)

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> list[str]:
        return [min(row[0] for row in tuples)] * len(tuples)

    def execute(self, tuple: TridentTuple, result: str, collector: TridentCollector) -> None:
        collector.emit([result])


def test_a_state_is_not_asked_for_nothing(engine: Engine, kept: MapStateFactory) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    words = topology.newStream("words", spout)
    known = words.groupBy("word").persistentAggregate(kept, Count(), "count")
    asked = words.filter("word", str.isdigit).stateQuery(known, "word", Least(), "least")
    captured = engine.capture(asked)
    engine.play(topology, spout, [("1",)], [("a",)], [])
    assert captured.batches == [[("1", "1")]]


def test_of_many_tuples_with_one_key_a_state_is_asked_once(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    words = topology.newStream("words", spout)
    known = words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    captured = engine.capture(words.stateQuery(known, "word", MapGet(), "before"))
    with engine.start(topology) as run:
        feed(run, spout, [("a",)] * 9, [("a",)] * 9 + [("b",)])
        progress = run.lastProgress
    assert captured.batches[1] == [("a", 9)] * 9 + [("b", None)]
    assert progress is not None
    assert progress.keys_read == 2 + 2, "both keys for the query, and both for the update"


def test_requests_update_a_state_beside_streams_and_are_known_after_a_restart(
    engine: Engine,
) -> None:
    counted = WordCount()
    answers, totals = MemoryMapState.Factory(), MemoryMapState.Factory()
    noted = (
        counted.topology.newDRPCStream("note", answers=answers)
        .each("args", Split(), "word")
        .groupBy("word")
        .persistentAggregate(totals, Count(), "noted")
    )
    counted.topology.newDRPCStream("noted").stateQuery(noted, "args", MapGet(), "noted").project(
        "noted"
    )
    for restarted in (False, True):
        with engine.start(counted.topology) as run:
            feed(run, counted.spout, batch("the cow"))
            for id, times in (("a", 1), ("b", 2)):
                rows = run.drpc.execute("note", "the the cow", request_id=id)
                assert sorted(json.loads(rows)) == [["cow", times], ["the", 2 * times]]
            assert answer(run, "noted", "the") == [[4]]
            assert answer(run, "words", "the") == [[1 + restarted]]
            assert run.groups["drpc/note"].lastProgress.engine == "local"
