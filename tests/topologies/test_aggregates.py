"""Aggregates of a batch and of groups, kept and not kept in a state."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.topologies.conftest import Engine, contents
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import LongOverflowError, OperationError
from trident.operations.builtin import Count, Max, Min, Sum
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    TridentCollector,
)
from trident.spouts.feeder import FeederBatchSpout
from trident.tuples import TridentTuple


class Longest(ReducerAggregator[str]):
    """The longest word, the first in order where several are."""

    output_types = (str,)

    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: TridentTuple) -> str:
        return min(curr, tuple.getString(0) or "", key=lambda word: (-len(word), word))


class Spread(CombinerAggregator[list[int]]):
    """The smallest and the greatest number, in a list that is empty where there is none."""

    output_types = ("array<long>",)

    def init(self, tuple: TridentTuple) -> list[int]:
        number = tuple.getLong(0)
        return [] if number is None else [number, number]

    def combine(self, a: list[int], b: list[int]) -> list[int]:
        return [min(a[0], b[0]), max(a[1], b[1])] if a and b else a or b

    def zero(self) -> list[int]:
        return []


class EvenAndOdd(Aggregator[dict[str, int]]):
    """Emits how many are even and how many odd, and the odd ones at once."""

    output_types = (str, int)

    def init(self, batchId: object, collector: TridentCollector) -> dict[str, int]:
        return {"even": 0, "odd": 0}

    def aggregate(
        self, val: dict[str, int], tuple: TridentTuple, collector: TridentCollector
    ) -> None:
        number = tuple.getLong(0) or 0
        val["odd" if number % 2 else "even"] += 1
        if number % 2:
            collector.emit(["number", number])

    def complete(self, val: dict[str, int], collector: TridentCollector) -> None:
        for name, count in val.items():
            collector.emit([name, count])


Step = Callable[[Stream], Stream]


def carried(engine: Engine, fields: str, step: Step, *batches: Any) -> list[list[Any]]:
    topology = TridentTopology()
    spout = FeederBatchSpout(fields)
    captured = engine.capture(step(topology.newStream("tuples", spout)))
    engine.play(topology, spout, *batches)
    return captured.batches


AGGREGATES: Sequence[tuple[str, Any, tuple[str, ...]]] = [
    ("Count", Count(), ()),
    ("Sum", Sum(), ("n",)),
    ("Min", Min(), ("n",)),
    ("Max", Max(), ("n",)),
    ("Spread", Spread(), ("n",)),
]
NUMBERS = [("a", 1), ("b", None), ("a", 5), ("c", None), ("a", None), ("b", -7)]


@pytest.mark.parametrize("hint", [1, 3])
def test_null_counts_for_nothing(engine: Engine, hint: int) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, n long")
    stream = topology.newStream("tuples", spout).shuffle().parallelismHint(hint).groupBy("k")
    found = {
        name: engine.capture(stream.aggregate(*inputs, made, "made").parallelismHint(hint), name)
        for name, made, inputs in AGGREGATES
    }
    engine.play(topology, spout, NUMBERS)
    assert {name: dict(captured.tuples) for name, captured in found.items()} == {
        "Count": {"a": 3, "b": 2, "c": 1},
        "Sum": {"a": 6, "b": -7, "c": 0},
        "Min": {"a": 1, "b": -7, "c": None},
        "Max": {"a": 5, "b": -7, "c": None},
        "Spread": {"a": [1, 5], "b": [-7, -7], "c": []},
    }


def test_a_grouped_aggregate_of_nothing_gives_nothing(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return stream.filter("n", lambda n: n > 0).groupBy("n").aggregate(Count(), "count")

    assert carried(engine, "n long", step, [(0,)], [(1,)]) == [[(1, 1)]]


@pytest.mark.parametrize("hint", [1, 3])
def test_an_ungrouped_aggregate_of_nothing_is_its_zero_once(engine: Engine, hint: int) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    spread = topology.newStream("tuples", spout).shuffle().filter("n", lambda n: n > 0)
    spread = spread.parallelismHint(hint)
    found = {
        name: engine.capture(spread.aggregate(*inputs, made, "made"), name)
        for name, made, inputs in AGGREGATES
    }
    engine.play(topology, spout, [(0,), (-1,)], [(4,), (0,)])
    assert {name: captured.batches for name, captured in found.items()} == {
        "Count": [[(0,)], [(1,)]],
        "Sum": [[(0,)], [(4,)]],
        "Min": [[(None,)], [(4,)]],
        "Max": [[(None,)], [(4,)]],
        "Spread": [[([],)], [([4, 4],)]],
    }


def test_a_plain_aggregator_emits_when_it_likes(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return stream.shuffle().parallelismHint(3).aggregate("n", EvenAndOdd(), "what, count")

    assert carried(engine, "n long", step, [(1,), (2,), (4,), (7,)]) == [
        [("even", 2), ("number", 1), ("number", 7), ("odd", 2)]
    ]


def test_a_plain_aggregator_of_groups(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return stream.groupBy("k").aggregate("n", EvenAndOdd(), "what, count").parallelismHint(2)

    assert carried(engine, "k string, n long", step, [("x", 1), ("y", 2), ("x", 2)]) == [
        [
            *[("x", "even", 1), ("x", "number", 1), ("x", "odd", 1)],
            *[("y", "even", 1), ("y", "odd", 0)],
        ]
    ]


def test_a_reducer_of_groups_and_of_the_batch(engine: Engine) -> None:
    rows = [("x", "the"), ("x", "moon"), ("y", "a"), ("x", "cows"), ("y", None)]
    by_key = carried(
        engine,
        "k string, word string",
        lambda s: s.groupBy("k").aggregate("word", Longest(), "longest"),
        rows,
    )
    assert by_key == [[("x", "cows"), ("y", "a")]]


def test_keys_are_equal_only_in_encoded_form(engine: Engine) -> None:
    rows = [(0.0,), (-0.0,), (1.0,), (None,), (1.0,), (None,)]
    found = carried(engine, "x double", lambda s: s.groupBy("x").aggregate(Count(), "count"), rows)
    assert found == [[(0.0, 2), (1.0, 2), (None, 2)]]


def test_keys_of_several_fields(engine: Engine) -> None:
    choose = random.Random(3)
    rows = [
        (choose.choice(["a", None, "ü"]), choose.choice([1, 2, None]), choose.choice([True, False]))
        for _ in range(200)
    ]
    topology = TridentTopology()
    spout = FeederBatchSpout("a string, b long, c boolean")
    memory = MemoryMapState.Factory()
    stream = topology.newStream("tuples", spout).groupBy("a, b, c")
    stream.persistentAggregate(memory, Count(), "count").parallelismHint(3)
    engine.play(topology, spout, rows[:150], rows[150:])
    assert contents(memory) == {row: rows.count(row) for row in set(rows)}


def test_a_sum_that_leaves_64_bits_stops_the_run(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long")
    memory = MemoryMapState.Factory()
    stream = topology.newStream("tuples", spout)
    stream.persistentAggregate(memory, "n", Sum(), "sum")
    with pytest.raises((LongOverflowError, OperationError), match="64 bits"):
        engine.play(topology, spout, [(2**62,), (2**62 - 1,)], [(1,)])


class Earliest(CombinerAggregator[str | None]):
    """The first word in order; its `combine` knows words only, as zero is never combined."""

    output_types = (str,)

    def init(self, tuple: TridentTuple) -> str | None:
        return tuple.getString(0)

    def combine(self, a: str | None, b: str | None) -> str:
        assert a is not None
        assert b is not None
        return min(a, b)

    def zero(self) -> None:
        return None


@pytest.mark.parametrize("hint", [1, 3])
def test_zero_is_for_no_tuples_only(engine: Engine, hint: int) -> None:
    def step(stream: Stream) -> Stream:
        words = stream.filter(str.isalpha).shuffle().parallelismHint(hint)
        return words.aggregate("word", Earliest(), "earliest")

    found = carried(engine, "word string", step, [("dog",), ("cat",)], [("cow",)], [("1",)])
    assert found == [[("cat",)], [("cow",)], [(None,)]]


@pytest.mark.parametrize("words", [0, 20_000])
def test_a_combiner_of_ones_own_takes_any_number_of_keys(engine: Engine, words: int) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    earliest = MemoryMapState.Factory()
    stream = topology.newStream("words", spout).filter(str.isalpha).groupBy("word")
    stream.persistentAggregate(earliest, "word", Earliest(), "earliest")
    made = ["".join(chr(ord("a") + int(digit)) for digit in str(n)) for n in range(words)]
    engine.play(topology, spout, [("1",), *((word,) for word in made)])
    assert contents(earliest) == {(word,): word for word in made}


def test_nan_is_greater_than_any_number(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("x double")
    stream = topology.newStream("tuples", spout)
    found = [
        engine.capture(stream.aggregate("x", made, "made"), name)
        for name, made in (("least", Min()), ("most", Max()))
    ]
    engine.play(topology, spout, [(float("nan"),), (1.0,)], [(1.0,), (float("nan"),)])
    assert [repr(captured.batches) for captured in found] == [
        "[[(1.0,)], [(1.0,)]]",
        "[[(nan,)], [(nan,)]]",
    ]


def test_a_sum_is_of_its_declared_type_whatever_is_added(engine: Engine) -> None:
    found = carried(engine, "x double", lambda s: s.aggregate("x", Sum(), "sum"), [(None,)], [(2,)])
    assert repr(found) == "[[(0.0,)], [(2.0,)]]"


@pytest.mark.spark
def test_a_batch_has_one_aggregate_however_many_partitions_spark_reads(
    spark: Any, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    rows = [(n,) for n in range(20_000)]
    found = carried(
        Engine(session, tmp_path), "n long", lambda s: s.aggregate("n", Spread(), "spread"), rows
    )
    assert found == [[([0, 19_999],)]]
