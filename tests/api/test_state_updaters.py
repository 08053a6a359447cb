"""What ``persistentAggregate`` does to a state, by the updaters it is made of."""

from __future__ import annotations

from typing import Any

from tests.api.topologies import Longest
from trident.backends.memory import MemoryMapState
from trident.operations.builtin import Count, Sum
from trident.operations.emitted import ListCollector
from trident.operations.state_updaters import (
    CombinerAggStateUpdater,
    MapCombinerAggStateUpdater,
    MapReducerAggStateUpdater,
    ReducerAggStateUpdater,
)
from trident.tuples import tuple_type
from trident.tuples.fields import Fields


def run(state: Any, updater: Any, batch: int, fields: str, *rows: tuple[Any, ...]) -> Any:
    make = tuple_type(Fields.of(fields))
    collector = ListCollector("updater", 2 if "word" in fields else 1)
    state.beginCommit(batch)
    updater.updateState(state, [make(row) for row in rows], collector)
    state.commit(batch)
    return collector.rows


def test_s18_counts_by_key_with_a_replay() -> None:
    state = MemoryMapState.Factory().makeState()
    updater = MapCombinerAggStateUpdater(Count(), Fields("word"), "n")
    first = [("the", 2), ("man", 1)]
    assert run(state, updater, 1, "word, n", *first) == first
    second = run(state, updater, 2, "word, n", ("the", 1), ("dog", 1))
    assert second == [("the", 3), ("dog", 1)]
    assert run(state, updater, 2, "word, n", ("the", 3)) == [("the", 5)]
    state.beginCommit(3)
    assert state.multiGet([("the",), ("man",), ("dog",), ("zzz",)])[:2] == [5, 1]


def test_a_reducer_takes_all_tuples_of_a_key() -> None:
    state = MemoryMapState.Factory().makeState()
    updater = MapReducerAggStateUpdater(Longest(), Fields("word"), Fields("text"))
    rows = [("a", "xx"), ("b", "y"), ("a", "x")]
    assert run(state, updater, 1, "word, text", *rows) == [("a", "xx"), ("b", "y")]
    assert run(state, updater, 2, "word, text", ("a", "xxx")) == [("a", "xxx")]


def test_a_reducer_may_read_its_key() -> None:
    state = MemoryMapState.Factory().makeState()
    updater = MapReducerAggStateUpdater(Longest(), Fields("word"), Fields("word"))
    collector = ListCollector("updater", 2)
    state.beginCommit(1)
    updater.updateState(state, [tuple_type(Fields("word"))(["a"])], collector)
    assert collector.rows == [("a", "a")]


def test_one_value_is_combined_or_reduced() -> None:
    total = MemoryMapState.Factory().makeState()
    assert run(total, CombinerAggStateUpdater(Sum()), 1, "sum", (3,)) == [(3,)]
    assert run(total, CombinerAggStateUpdater(Sum()), 2, "sum", (4,)) == [(7,)]
    longest = MemoryMapState.Factory().makeState()
    assert run(longest, ReducerAggStateUpdater(Longest()), 1, "t", ("a",), ("bb",)) == [("bb",)]
