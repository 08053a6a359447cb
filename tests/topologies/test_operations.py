"""Steps that work on one tuple at a time, and how tuples move between partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from tests.topologies.conftest import Engine
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.errors import OperationError
from trident.operations.builtin import Count, Debug, Equals, FilterNull, Negate, Split, Sum
from trident.operations.interfaces import (
    Aggregator,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    TridentCollector,
    TridentOperationContext,
)
from trident.spouts.feeder import FeederBatchSpout
from trident.states.keys import encode_key
from trident.states.sharding import shard_of
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields


class UpTo(Function):
    """Emits 0, 1 … one less than the field."""

    output_types = (int,)

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        for number in range(tuple.getInteger(0) or 0):
            collector.emit([number])


class OneAndTwo(Filter):
    def isKeep(self, tuple: TridentTuple) -> bool:
        return bool(tuple.getIntegerByField("a") == 1 and tuple.getIntegerByField("b") == 2)


class Swapped(MapFunction):
    def execute(self, tuple: TridentTuple) -> Sequence[Any]:
        return [tuple["c"], tuple["b"], tuple["a"]]


class Each(FlatMapFunction):
    output_types = (int,)

    def execute(self, tuple: TridentTuple) -> Iterable[Sequence[Any]]:
        return [[value] for value in tuple if value]


def carried(engine: Engine, rows: Iterable[Sequence[Any]], *, step: Any, fields: str) -> Any:
    """What one batch is after some steps."""
    topology = TridentTopology()
    spout = FeederBatchSpout(fields)
    made: Stream = step(topology.newStream("tuples", spout))
    captured = engine.capture(made)
    engine.play(topology, spout, rows)
    return captured.tuples


def test_a_function_appends_what_it_emits(engine: Engine) -> None:
    rows = [(1, 2, 3), (4, 1, 6), (3, 0, 8)]
    assert carried(
        engine,
        rows,
        step=lambda stream: stream.each("b", UpTo(), "d"),
        fields="a long, b long, c long",
    ) == [(1, 2, 3, 0), (1, 2, 3, 1), (4, 1, 6, 0)]


def test_a_filter_keeps_tuples_as_they_are(engine: Engine) -> None:
    rows = [(1, 2, 3), (2, 1, 1), (2, 3, 4)]
    assert carried(
        engine,
        rows,
        step=lambda stream: stream.each("a, b", OneAndTwo()),
        fields="a long, b long, c long",
    ) == [(1, 2, 3)]


def test_map_replaces_each_tuple_and_flat_map_each_by_many(engine: Engine) -> None:
    rows = [(1, 2, 3), (0, 0, 8)]

    def step(stream: Stream) -> Stream:
        return stream.map(Swapped()).flatMap(Each(), "value")

    fields = "a long, b long, c long"
    assert carried(engine, rows, step=step, fields=fields) == [(1,), (2,), (3,), (8,)]


def test_plain_callables_take_values(engine: Engine) -> None:
    rows = [("a b", 1), ("c", 2), (None, 3)]

    def step(stream: Stream) -> Stream:
        return (
            stream.each("text", lambda text: text and text.split(), "word string")
            .filter("n", lambda n: n < 3)
            .each("word, n", lambda word, n: [(word * n, n + 1)], "words string, next long")
            .map(lambda text, n, word, words, following: (words, following), "w string, n long")
            .peek(lambda word, n: None)
            .filter("w", lambda word: word != "b")
        )

    fields = "text string, n long"
    assert carried(engine, rows, step=step, fields=fields) == [("a", 2), ("cc", 3)]


def test_with_column_appends_one_value(engine: Engine) -> None:
    rows = [("ab", 1), ("c", 2), (None, 3)]

    def step(stream: Stream) -> Stream:
        return (
            stream.withColumn("doubled long", lambda n: 2 * n, "n")
            .withColumn("letters array<string>", lambda text: text and list(text), "text")
            .withColumn("all string", lambda text, n, doubled, letters: f"{text}{n}{doubled}")
        )

    assert carried(engine, rows, step=step, fields="text string, n long") == [
        ("ab", 1, 2, ["a", "b"], "ab12"),
        ("c", 2, 4, ["c"], "c24"),
        (None, 3, 6, None, "None36"),
    ]


def test_project_selects_and_orders(engine: Engine) -> None:
    rows = [(3, "x", 1.5), (None, None, None)]
    assert carried(
        engine,
        rows,
        step=lambda stream: stream.project("c, a"),
        fields="a long, b string, c double",
    ) == [(1.5, 3), (None, None)]


def test_null_is_a_value_like_any_other(engine: Engine) -> None:
    rows = [(None, None), (1, None), (1, 1), (None, 1)]
    fields = "a long, b long"
    assert carried(
        engine, rows, step=lambda s: s.each("a", Negate(FilterNull())), fields=fields
    ) == [(None, 1), (None, None)]


def test_equal_values_pass(engine: Engine) -> None:
    rows = [(None, None), (1, None), (1, 1), (1, 2)]
    fields = "a long, b long"
    assert carried(
        engine, rows, step=lambda s: s.each("a, b", Equals()).each(Debug("equal")), fields=fields
    ) == [(1, 1), (None, None)]


def test_values_keep_their_types(engine: Engine) -> None:
    fields = "text string, n long, x double, yes boolean, raw binary, some array<long>"
    rows = [("ÿ🐄", -(2**63), 0.1, True, b"\0\xff", [1, None]), (None,) * 6]
    assert carried(engine, rows, step=lambda s: s.filter(lambda *_: True), fields=fields) == [
        *sorted(rows, key=repr)
    ]


def places(count: int) -> list[str]:
    """A key for each of so many partitions, in their order."""
    keys = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    return [
        next(key for key in keys if shard_of(encode_key((key,)), count) == n) for n in range(count)
    ]


def partitioned(stream: Stream, count: int) -> Stream:
    return stream.partitionBy("p").parallelismHint(count)


def test_partition_aggregate_sums_each_partition(engine: Engine) -> None:
    p0, p1, p2 = places(3)
    rows = [
        *[(p0, "a", 1), (p0, "b", 2), (p1, "a", 3), (p1, "c", 8)],
        *[(p2, "e", 1), (p2, "d", 9), (p2, "d", 10)],
    ]

    def step(stream: Stream) -> Stream:
        return partitioned(stream, 3).partitionAggregate("b", Sum(), "sum")

    fields = "p string, a string, b long"
    assert carried(engine, rows, step=step, fields=fields) == [(11,), (20,), (3,)]


def test_partition_aggregate_runs_for_partitions_without_tuples_too(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        return partitioned(stream, 3).partitionAggregate(Count(), "count")

    rows = [(places(3)[1],)] * 2
    assert carried(engine, rows, step=step, fields="p string") == [(0,), (0,), (2,)]


def test_broadcast_copies_every_tuple_into_every_partition(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        counts = stream.broadcast().partitionAggregate(Count(), "count").parallelismHint(3)
        return counts.batchGlobal()

    assert carried(engine, [("x",), ("y",)], step=step, fields="w string") == [(2,)] * 3


def test_what_is_gathered_is_in_one_partition(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        spread = stream.shuffle().parallelismHint(3)
        return spread.global_().partitionAggregate(Count(), "count")

    assert carried(engine, [("x",)] * 7, step=step, fields="w string") == [(7,)]


class Placed(Function):
    """Emits where it was prepared."""

    output_types = (int, int)

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self.place = context.getPartitionIndex(), context.numPartitions()

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        collector.emit(self.place)


class Place(Aggregator[None]):
    """Emits where it was prepared, once a batch and partition."""

    output_types = (int, int)

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self.place = context.getPartitionIndex(), context.numPartitions()

    def init(self, batchId: object, collector: TridentCollector) -> None:
        pass

    def aggregate(self, val: None, tuple: TridentTuple, collector: TridentCollector) -> None:
        pass

    def complete(self, val: None, collector: TridentCollector) -> None:
        collector.emit(self.place)


def test_an_operation_is_told_the_partition_of_its_tuples(engine: Engine) -> None:
    rows = [(place,) for place in places(3)]

    def step(stream: Stream) -> Stream:
        return partitioned(stream, 3).each("p", Placed(), "index, partitions")

    expected = [(place, index, 3) for index, (place,) in enumerate(rows)]
    assert carried(engine, rows, step=step, fields="p string") == sorted(expected)


def test_every_partition_is_told_its_index_and_how_many_there_are(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("p string")
    stream = topology.newStream("tuples", spout).parallelismHint(2)
    shuffled = stream.shuffle().parallelismHint(3)
    seen = "index long, partitions long"
    merged = topology.merge(
        shuffled.partitionAggregate(Place(), seen),
        stream.shuffle().parallelismHint(2).partitionAggregate(Place(), seen),
    )
    streams = {
        "source": stream.partitionAggregate(Place(), seen),
        "shuffled": shuffled.partitionAggregate(Place(), seen),
        "gathered": shuffled.global_().partitionAggregate(Place(), seen),
        "before the merge": merged,
        "after the merge": merged.partitionAggregate(Place(), seen).parallelismHint(4),
        "whole": shuffled.aggregate(Place(), seen),
    }
    found = {name: engine.capture(made, name) for name, made in streams.items()}
    engine.play(topology, spout, [("a",)] * 9)
    assert {name: captured.tuples for name, captured in found.items()} == {
        "source": [(0, 2), (1, 2)],
        "shuffled": [(0, 3), (1, 3), (2, 3)],
        "gathered": [(0, 1)],
        "before the merge": [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
        "after the merge": [(0, 4), (1, 4), (2, 4), (3, 4)],
        "whole": [(0, 1)],
    }


def test_merge_takes_all_tuples_and_the_first_names(engine: Engine) -> None:
    topology = TridentTopology()
    one, other = FeederBatchSpout("a string"), FeederBatchSpout("b string")
    merged = topology.merge(
        topology.newStream("one", one).each("a", Split(), "word").project("word"),
        topology.newStream("other", other),
    )
    assert merged.getOutputFields() == Fields(word=str)
    captured = engine.capture(merged)
    with engine.start(topology):
        one.feed([("x y",)], 60)
        other.feed([("z",), ("x",)], 60)
    assert captured.batches == [[("x",), ("y",)], [("x",), ("z",)]]


@pytest.mark.parametrize(("declared", "made"), [("long", 1.5), ("long", "1"), ("string", 1)])
def test_a_value_of_another_type_than_declared_stops_the_run(
    engine: Engine, declared: str, made: Any
) -> None:
    with pytest.raises(OperationError, match=f"for the field 'b', which is declared {declared}"):
        carried(
            engine,
            [(1,)],
            step=lambda stream: stream.each("a", lambda a: [made], f"b {declared}"),
            fields="a long",
        )


def test_a_whole_number_is_a_float_where_one_is_declared(engine: Engine) -> None:
    found = carried(
        engine,
        [(1,), (1.0,)],
        step=lambda stream: (
            stream.each("a", lambda a: [2], "b double").groupBy("a, b").aggregate(Count(), "count")
        ),
        fields="a double",
    )
    assert repr(found) == "[(1.0, 2.0, 2)]"


def test_maps_are_dictionaries(engine: Engine) -> None:
    assert carried(
        engine,
        [({"a": 1}, [{"b": None}])],
        step=lambda stream: stream.each(
            "one, more", lambda one, more: [{**one, **more[0]}], "all map<string,long>"
        ),
        fields="one map<string,long>, more array<map<string,long>>",
    ) == [({"a": 1}, [{"b": None}], {"a": 1, "b": None})]
