"""Every wrong call fails where it is made, names what would be right, and adds nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.api.topologies import (
    Both,
    Column,
    Everything,
    Frame,
    LogFactory,
    Longest,
    Same,
    Tally,
    TwoMethods,
    Write,
    sentences,
    word_count,
)
from trident.api.assemblies import FirstN
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends import memcached, redis
from trident.backends.memory import MemoryMapState
from trident.backends.state_spec import StateSpec
from trident.errors import DuplicateNameError, FieldError, OperationTypeError, PlanError
from trident.operations.builtin import (
    Count,
    FilterNull,
    MapGet,
    Max,
    SnapshotGet,
    Split,
    Sum,
    TupleCollectionGet,
)
from trident.operations.callables import native
from trident.operations.joining import JoinType
from trident.operations.vectorised import vectorised
from trident.spouts.fixed import FixedBatchSpout
from trident.states.maps.factory import OpaqueMap
from trident.tuples.fields import Fields

Call = Callable[[TridentTopology, Stream], Any]


class Unsure(FixedBatchSpout):
    kind = "opaque"

    def __init__(self) -> None:
        super().__init__("a", 1)


class Letters:
    def __call__(self, id: int, sentence: str) -> list[str]:
        return list(sentence)


def memory() -> MemoryMapState.Factory:
    return MemoryMapState.Factory()


def fails(call: Call, error: type[PlanError], text: str) -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    before = topology.plan().nodes
    with pytest.raises(error, match=text):
        call(topology, stream)
    assert topology.plan().nodes == before


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (lambda t, s: s.each("sentense", Split(), "word"), "each"),
        (lambda t, s: s.each("sentense", FilterNull()), "each"),
        (lambda t, s: s.each("sentense", native("upper(sentence)"), "word"), "each"),
        (lambda t, s: s.filter("sentense", FilterNull()), "filter"),
        (lambda t, s: s.withColumn("n", len, "sentense"), "withColumn"),
        (lambda t, s: s.project("id, sentense"), "project"),
        (lambda t, s: s.groupBy("sentense"), "groupBy"),
        (lambda t, s: s.partitionBy("sentense"), "partitionBy"),
        (lambda t, s: s.aggregate("sentense", Max(), "max"), "aggregate"),
        (lambda t, s: s.groupBy("id").aggregate("sentense", Max(), "max"), "aggregate"),
        (lambda t, s: s.partitionAggregate("sentense", Max(), "max"), "partitionAggregate"),
        (lambda t, s: s.persistentAggregate(memory(), "sentense", Max(), "max"), "persistent"),
        (lambda t, s: s.persistentAggregate(memory(), "sentense", Longest(), "m"), "persistent"),
        (lambda t, s: s.partitionPersist(memory(), "sentense", Write()), "partitionPersist"),
    ],
)
def test_an_unknown_field_is_named_with_the_nearest(call: Call, method: str) -> None:
    text = rf"{method}\w*: unknown field 'sentense'.* id, sentence\. Did you mean 'sentence'\?"
    fails(call, FieldError, text)


def test_a_query_of_an_unknown_field_is_named() -> None:
    topology = TridentTopology()
    counts = word_count(sentences(topology))
    with pytest.raises(FieldError, match=r"stateQuery: unknown field 'arg'.*Did you mean 'args'"):
        topology.newDRPCStream("words").stateQuery(counts, "arg", MapGet(), "count")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: s.each("sentence", Split(), "id"), "each: there is already a field 'id'"),
        (lambda t, s: s.withColumn("id", len, "sentence"), "withColumn: .* already a field 'id'"),
        (lambda t, s: s.groupBy("id").aggregate(Count(), "id"), "already a field 'id'"),
        (
            lambda t, s: s.groupBy("id").persistentAggregate(memory(), "id", Longest(), "id"),
            "already a field 'id'",
        ),
        (lambda t, s: s.each("sentence", Split(), "a, a"), "duplicate field 'a'"),
        (lambda t, s: s.project("id, id"), "duplicate field 'id'"),
        (lambda t, s: t.merge("a, a", s, s.project("id, sentence")), "duplicate field 'a'"),
    ],
)
def test_a_field_is_there_once(call: Call, text: str) -> None:
    topology = TridentTopology()
    with pytest.raises(FieldError, match=text):
        call(topology, sentences(topology))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda t, s: s.each("sentence", Split, "w"),
            r"the class Split'\. Pass an instance: Split",
        ),
        (lambda t, s: s.each("sentence", "upper(sentence)", "w"), r'native\("upper\(sentence\)"\)'),
        (lambda t, s: s.filter("id > 3"), r'filter: expected a filter.*native\("id > 3"\)'),
        (lambda t, s: s.each("sentence", FilterNull(), "w"), "belongs into each.inputs, filter"),
        (lambda t, s: s.each("sentence", Split()), "Name the output fields"),
        (lambda t, s: s.each("sentence", Count(), "n"), "belongs into aggregate"),
        (lambda t, s: s.each("sentence", 7, "n"), "found 'int 7'. A plain callable will do"),
        (lambda t, s: s.map(Split(), "n"), r"map: expected a function.*belongs into each"),
        (lambda t, s: s.map(native("upper(word)")), r"go into each\(native"),
        (lambda t, s: s.flatMap(Letters), "flatMap: expected a function, .* 'the class Letters'"),
        (lambda t, s: s.peek(Everything()), "peek: expected a consumer"),
        (lambda t, s: s.aggregate(Count, "n"), "the class Count"),
        (lambda t, s: s.aggregate(len, "n"), "a CombinerAggregator or ReducerAggregator or"),
        (lambda t, s: s.persistentAggregate(memory(), Tally(), "n"), "belongs into aggregate or p"),
        (lambda t, s: s.partitionPersist(memory(), Count()), "expected a StateUpdater, found"),
        (lambda t, s: s.each(), "each: takes .inputs,. function, outputs; found '0 arguments'"),
        (lambda t, s: s.aggregate("id", Sum(), "n", "m"), "found '4 arguments'"),
        (
            lambda t, s: s.withColumn(len, "n"),
            r"withColumn: the name of the new field comes first\. Write withColumn\(",
        ),
        (lambda t, s: s.withColumn("n", "id * 2"), r'native\("id \* 2"\)'),
        (lambda t, s: s.withColumn("n", Split()), "withColumn: .*belongs into each"),
        (
            lambda t, s: s.each(Split(), "sentence", "word"),
            r"each: the fields that are read come first.* found in their place 'Split\(\)'",
        ),
        (
            lambda t, s: s.groupBy("id").persistentAggregate(Count(), "count"),
            r"expected a StateFactory, its URL or a StateSpec, found 'Count\(\)'",
        ),
        (lambda t, s: s.aggregate("count", "n"), r"the string 'n'\". Pass the object itself\.$"),
    ],
)
def test_what_is_no_operation_is_told_how_to_be_one(call: Call, text: str) -> None:
    fails(call, OperationTypeError, text)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: s.aggregate(Sum(), "sum"), r"Sum\(\) takes 1 input field, found 'none'"),
        (lambda t, s: s.aggregate("id, sentence", Max(), "m"), "found 'id, sentence'"),
        (lambda t, s: s.aggregate(Count(), "n, m"), r"Count\(\) makes one value"),
        (lambda t, s: s.persistentAggregate(memory(), "id", Longest(), "n, m"), "makes one value"),
        (lambda t, s: s.aggregate("sentence", Sum(), "sum"), "adds numbers, not 'string'"),
        (lambda t, s: s.each("id, sentence", Split(), "w"), "can't take the 2 input fields"),
        (lambda t, s: s.each(Split(), "w"), "can't take the 0 input fields 'none'"),
        (lambda t, s: s.each("id", lambda: [1], "w"), r"<lambda>\(\) can't take the 1"),
        (lambda t, s: s.map(lambda a: a), r"map: <lambda>\(a\) can't take the 2 input fields"),
        (lambda t, s: s.filter(lambda a: True), "can't take the 2 input fields"),
        (lambda t, s: s.withColumn("n", lambda a: a), r"withColumn: .* the 2 input fields"),
    ],
)
def test_the_number_of_fields_fits_the_operation(call: Call, text: str) -> None:
    fails(call, OperationTypeError, text)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: t.newStream("sentences", Frame()), "already a stream 'sentences'"),
        (
            lambda t, s: word_count(s) and word_count(s),
            r"already a state 'count'\. Give one .* merge\(\) them first",
        ),
        (
            lambda t, s: (
                word_count(s, MemoryMapState.Factory("same"))
                and word_count(s, MemoryMapState.Factory("same"), name="other")
            ),
            "state 'other' would be kept where 'count' already is: 'memory · same'",
        ),
        (lambda t, s: t.newDRPCStream("f") and t.newDRPCStream("f"), "already a DRPC function 'f'"),
    ],
)
def test_names_and_places_are_unique(call: Call, text: str) -> None:
    topology = TridentTopology()
    with pytest.raises(DuplicateNameError, match=text):
        call(topology, sentences(topology))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: word_count(s, MemoryMapState), "the class MemoryMapState"),
        (lambda t, s: word_count(s, MemoryMapState.Factory), "Pass an instance"),
        (lambda t, s: word_count(s, {"redis": "host"}), "its URL or a StateSpec, found"),
        (lambda t, s: word_count(s, "redis"), r"starts with a scheme, .*sqlite:counts\.db"),
        (
            lambda t, s: word_count(s, "rediss+claster://h"),
            r"rediss\+cluster.*trident-spark\[redis",
        ),
        (lambda t, s: word_count(s, word_count(s)), r"merge\(\) the streams first"),
        (lambda t, s: word_count(s, StateSpec(memory(), 0)), "requiredNumPartitions is 1 or more"),
    ],
)
def test_a_state_comes_from_a_factory(call: Call, text: str) -> None:
    topology = TridentTopology()
    with pytest.raises(PlanError, match=text):
        call(topology, sentences(topology))


def test_a_state_is_named_after_its_output_its_spec_or_the_call() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    assert word_count(stream).name == "count"
    assert word_count(stream, StateSpec(memory(), name="spec")).name == "spec"
    assert word_count(stream, StateSpec(memory(), name="x"), name="call").name == "call"
    assert stream.partitionPersist(memory(), "sentence", Write()).name == "state"


def test_drpc_streams_join_no_others() -> None:
    topology = TridentTopology()
    stream, query = sentences(topology), topology.newDRPCStream("words")
    with pytest.raises(PlanError, match="Cannot join DRPC stream with streams originating from"):
        topology.merge(stream.project("sentence"), query)
    with pytest.raises(PlanError, match="Cannot join DRPC stream"):
        topology.merge(topology.newDRPCStream("other"), query)


def test_drpc_streams_need_no_spark() -> None:
    query = TridentTopology().newDRPCStream("words")
    with pytest.raises(PlanError, match="a DRPC stream can't use Spark expressions"):
        query.each("args", native("upper(args)"), "upper")


@pytest.mark.parametrize(
    ("merged", "text"),
    [
        (lambda t, s: t.merge(s), "expected two streams or more, found '1'"),
        (lambda t, s: t.merge(s, s.groupBy("id")), "expected a stream of this topology"),
        (lambda t, s: t.merge(s, sentences(TridentTopology())), "a stream of this topology"),
        (lambda t, s: t.merge("a, b, c", s, s.project("id, sentence")), "3 names for 2 fields"),
        (
            lambda t, s: t.merge(s.project("id"), s.project("sentence")),
            r"merge: 'id' \(long\) and 'sentence' \(string\) can't be one field\. Convert",
        ),
    ],
)
def test_only_streams_of_one_shape_and_topology_merge(merged: Call, text: str) -> None:
    topology = TridentTopology()
    with pytest.raises(PlanError, match=text):
        merged(topology, sentences(topology))


def test_streams_of_other_width_do_not_merge() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    with pytest.raises(FieldError, match="streams of 2 and 1 fields can't be merged"):
        topology.merge(stream, stream.project("id"))


def test_dataframes_and_spouts_share_no_batches() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    frames = topology.newStream("frames", Frame(Column("id", "bigint"), Column("s", "string")))
    with pytest.raises(PlanError, match=r"DataFrames \(frames\) and spouts \(sentences\)"):
        topology.merge(stream, frames)
    counts = word_count(stream)
    with pytest.raises(PlanError, match="stateQuery: streaming DataFrames"):
        frames.stateQuery(counts, "s", MapGet(), "count")
    with pytest.raises(PlanError, match="stateQuery: streaming DataFrames"):
        frames.groupBy("s").stateQuery(counts, "s", MapGet(), "count")


def test_dataframes_that_share_batches_have_one_output_mode() -> None:
    topology = TridentTopology()
    column = Column("word", "string")
    plain = topology.newStream("plain", Frame(column))
    counted = topology.newStream("counted", Frame(column), outputMode="update")
    with pytest.raises(PlanError, match=r"merge: .*\(counted: update, plain: append\) can't share"):
        topology.merge(plain, counted)
    other = topology.newStream("other", Frame(column), outputMode="update")
    assert topology.merge(counted, other).getOutputFields().names == ("word",)
    assert 'newStream("counted", Frame, outputMode="update")' in topology.explain()


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (lambda s, q: q.stateQuery(s, "args", MapGet()), r"no output fields for 'MapGet\(\)'"),
        (lambda s, q: q.stateQuery(memory(), "args", MapGet(), "n"), "a state of this topology"),
        (
            lambda s, q: q.stateQuery(s, "args", SnapshotGet(), "n"),
            "for each group in state 'count'",
        ),
        (lambda s, q: q.stateQuery(s, MapGet(), "n"), r"is \(word\), found '\(\)'"),
        (lambda s, q: q.stateQuery(s, "args", MapGet, "n"), "the class MapGet"),
        (lambda s, q: q.stateQuery(s, "args", len, "n"), "expected a QueryFunction"),
        (lambda s, q: q.stateQuery(s, "args", MapGet(), "args"), "already a field 'args'"),
    ],
)
def test_a_query_fits_its_state(query: Callable[[Any, Stream], Any], text: str) -> None:
    topology = TridentTopology()
    counts = word_count(sentences(topology))
    with pytest.raises(PlanError, match=text):
        query(counts, topology.newDRPCStream("words"))


def test_a_wrong_query_of_groups_adds_no_exchange() -> None:
    topology = TridentTopology()
    counts = word_count(sentences(topology))
    words = topology.newDRPCStream("words").groupBy("args")
    before = topology.plan().nodes
    with pytest.raises(FieldError, match="unknown field 'word'"):
        words.stateQuery(counts, "word", MapGet(), "count")
    assert topology.plan().nodes == before


def test_a_single_value_is_not_looked_up_by_key() -> None:
    topology = TridentTopology()
    total = sentences(topology).persistentAggregate(memory(), Count(), "total")
    with pytest.raises(OperationTypeError, match=r"one ungrouped value.*'total'\. Use SnapshotGet"):
        topology.newDRPCStream("f").stateQuery(total, "args", MapGet(), "n")


def test_what_is_no_map_is_not_looked_up_by_key() -> None:
    topology = TridentTopology()
    log = topology.newStaticState(LogFactory())
    with pytest.raises(OperationTypeError, match=r"MapGet\(\) needs .* multiGet\(\).* 'Log'"):
        topology.newDRPCStream("f").stateQuery(log, "args", MapGet(), "n")


@pytest.mark.parametrize(
    "factory",
    [
        memcached.opaque(),
        redis.opaque(cluster=[("localhost", 7000)]),
        OpaqueMap.factory(TwoMethods),
    ],
)
def test_what_can_list_nothing_is_not_asked_for_all_its_tuples(factory: Any) -> None:
    topology = TridentTopology()
    counts = word_count(sentences(topology), factory)
    with pytest.raises(OperationTypeError, match=r"a state that can list; 'count' is kept in a '"):
        topology.newDRPCStream("all").stateQuery(counts, TupleCollectionGet(), "word, count")


def test_new_values_need_an_update_with_outputs() -> None:
    topology = TridentTopology()
    with pytest.raises(PlanError, match="nothing updates the state 'state'"):
        topology.newStaticState(memory()).newValuesStream()
    silent = sentences(topology).partitionPersist(memory(), "id", Write(), name="silent")
    with pytest.raises(PlanError, match="the updater has no output fields for 'silent'"):
        silent.newValuesStream()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: s.parallelismHint(0), "1 or more, found '0'"),
        (lambda t, s: s.parallelismHint(True), "found 'True'"),
        (lambda t, s: s.name(""), "name: a label can't be ''"),
        (lambda t, s: s.groupBy([]), "groupBy: no fields"),
        (lambda t, s: s.partitionBy([]), r"partitionBy: no fields\. Or use shuffle"),
        (lambda t, s: t.newStream("a/b", Frame()), "a stream's id can't be 'a/b'"),
        (lambda t, s: t.newStream("x", Frame(streaming=False)), "isn't a stream"),
        (lambda t, s: t.newStream("x", [1, 2]), "expected a streaming DataFrame or a spout"),
        (lambda t, s: t.newStream("x", Frame), "the class Frame"),
        (lambda t, s: t.newStream("x", Frame(), "opaqe"), "Did you mean 'opaque'"),
        (
            lambda t, s: t.newStream("x", Frame(), outputMode="updat"),
            "unknown output mode 'updat'; .*Did you mean 'update'",
        ),
        (
            lambda t, s: t.newStream("x", FixedBatchSpout("a", 1), outputMode="update"),
            "a spout has no output mode, found 'update'",
        ),
        (
            lambda t, s: t.newStream("x", FixedBatchSpout("a", 1), partitionFields="a"),
            "a spout has no fields for its partitions, found 'a'",
        ),
        (lambda t, s: t.newDRPCStream(""), "a function's name can't be ''"),
        (lambda t, s: t.newStream("x", Unsure(), "transactional"), "Unsure is opaque, it can't be"),
    ],
)
def test_other_arguments_are_checked(call: Call, text: str) -> None:
    fails(call, PlanError, text)


@pytest.mark.parametrize("kind", ["map<string,long>", "array<struct<a:map<string,long>>>"])
def test_a_map_is_no_key(kind: str) -> None:
    stream = TridentTopology().newStream("bills", Frame(Column("items", kind)))
    found = re.escape(
        f"a key can't be of type {kind}, found the field 'items'. Its entries have no"
    )
    for call in ("groupBy", "partitionBy"):
        with pytest.raises(FieldError, match=f"{call}: {found}"):
            getattr(stream, call)("items")


def test_any_other_type_may_be_a_key() -> None:
    kinds = ["date", "timestamp", "timestamp_ntz", "decimal(9,2)", "binary", "array<date>"]
    frame = Frame(*map(Column, "abcdefg", [*kinds, "struct<a:bigint,b:array<binary>>"]))
    stream = TridentTopology().newStream("bills", frame)
    assert stream.groupBy("a, b, c, d, e, f, g").getOutputFields() == stream.getOutputFields()


def test_a_dataframe_brings_its_fields_and_is_opaque() -> None:
    topology = TridentTopology()
    frame = Frame(Column("value", "string"), Column("n", "bigint"), Column("gap", "interval day"))
    assert repr(topology.newStream("f", frame).getOutputFields()) == (
        "Fields('value string, n long, gap')"
    )
    (node,) = topology.plan().nodes
    assert (node.kind, node.clock) == ("opaque", "dataframe")  # type: ignore[attr-defined]


def test_a_class_that_converts_is_a_function() -> None:
    stream = sentences(TridentTopology()).project("sentence").map(int, "n")
    assert repr(stream.getOutputFields()) == "Fields('n long')"


def test_global_is_published_under_its_reserved_name() -> None:
    stream = sentences(TridentTopology())
    assert getattr(Stream, "global") is Stream.global_
    assert getattr(stream, "global")().getOutputFields() == stream.getOutputFields()


def test_a_step_remembers_the_line_that_declared_it() -> None:
    topology = TridentTopology()
    word_count(sentences(topology))
    origins = [node.origin for node in topology.plan().nodes]
    assert {origin.file for origin in origins} == {word_count.__code__.co_filename}
    assert [origin.call for origin in origins] == [
        *("newStream", "each", "persistentAggregate", "persistentAggregate"),
    ]


def test_a_stream_is_a_handle_that_branches() -> None:
    stream = sentences(TridentTopology())
    one, other = stream.each("sentence", Same(), "a"), stream.each("sentence", Same(), "b")
    assert one.getOutputFields().names == ("id", "sentence", "a")
    assert other.getOutputFields().names == ("id", "sentence", "b")
    assert stream.getOutputFields().names == ("id", "sentence")


def test_an_opaque_map_of_ones_own_has_no_clash() -> None:
    topology = TridentTopology()
    factory: Any = OpaqueMap.factory(memory().store.open)
    assert word_count(sentences(topology), factory).name == "count"


def test_fields_may_be_given_one_by_one() -> None:
    stream = TridentTopology().newStream("s", FixedBatchSpout("a string, b long", 1, ("x", 1)))
    assert stream.groupBy("a", "b").getGroupFields() == stream.groupBy("a, b").getGroupFields()
    assert stream.project("b", "a").getOutputFields() == Fields.of("b long, a string")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: s.minBy("sentense"), "minBy: unknown field 'sentense'.* 'sentence'"),
        (lambda t, s: s.maxBy("id, sentence"), r"maxBy: expected one field, .*Give one field, or "),
        (lambda t, s: s.minBy(""), "a field has no name"),
        (lambda t, s: s.maxBy("id", "desc"), r"maxBy: expected a comparator, found \"str 'desc'"),
        (lambda t, s: s.min(None), "min: expected a comparator, found 'NoneType None'"),
        (lambda t, s: s.max(int), "max: expected a comparator, .* returns a number below"),
        (lambda t, s: s.partition(Everything()), r"partition: .*CustomStreamGrouping, found 'Ever"),
        (lambda t, s: s.partition("id"), "partition: expected a CustomStreamGrouping"),
        (lambda t, s: s.applyAssembly(FirstN), "found 'the class FirstN'"),
        (lambda t, s: s.applyAssembly(7), "applyAssembly: expected an assembly, found 'int 7'"),
        (lambda t, s: s.applyAssembly(lambda s: None), "from the assembly, found 'NoneType'"),
        (lambda t, s: s.applyAssembly(lambda s: [s.shuffle()]), "found 'list'. Return the last"),
        (lambda t, s: s.applyAssembly(FirstN(3, "idd")), "FirstN: unknown field 'idd'"),
        (lambda t, s: s.applyAssembly(FirstN(0)), "FirstN: how many is a whole number from 1"),
        (lambda t, s: s.applyAssembly(FirstN(3, reverse=True)), "reverse was given without"),
        (lambda t, s: s.applyAssembly(lambda s: s.shuffle().project("x")), "unknown field 'x'"),
    ],
)
def test_steps_that_keep_or_move_tuples_say_what_is_wrong(call: Call, text: str) -> None:
    fails(call, PlanError, text)


def test_a_stream_knows_the_nearest_label() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    assert stream.getName() is None
    named = stream.name("text").each("sentence", Split(), "word")
    assert named.getName() == "text"
    assert named.name("words").parallelismHint(2).getName() == "words"
    assert topology.merge(named, named).getName() is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: s.chainedAgg().aggregate("idd", Sum(), "n"), "aggregate: unknown field 'idd'"),
        (lambda s: s.chainedAgg().aggregate(Count, "n"), "the class Count"),
        (lambda s: s.chainedAgg().aggregate(Count(), "n, m"), r"Count\(\) makes one value"),
        (lambda s: s.chainedAgg().aggregate("sentence", Sum(), "n"), "adds numbers, not 'string'"),
        (
            lambda s: s.chainedAgg().aggregate(Count(), "n").aggregate("id", Max(), "n"),
            "Output fields for chained aggregators must be distinct, found 'n'",
        ),
        (
            lambda s: s.groupBy("id").chainedAgg().partitionAggregate(Count(), "id"),
            "partitionAggregate: there is already a field 'id'",
        ),
    ],
)
def test_a_chain_says_which_call_is_wrong(call: Callable[[Stream], Any], text: str) -> None:
    fails(lambda t, s: call(s), PlanError, text)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: t.join(), "join: expected two streams or more, found '0'"),
        (lambda t, s: t.join(s, "id", "n"), "expected a stream of this topology|two streams"),
        (lambda t, s: t.join(s, "id", s.groupBy("id"), "id", "n"), "found 'GroupedStream'"),
        (lambda t, s: t.join([s, s], "id", "n"), "join: expected a list of streams, and one of"),
        (lambda t, s: t.join([s, s], ["id"], "n"), "key fields of each of 2 streams, found '1'"),
        (lambda t, s: t.join(s, "id", s, "idd", "id, a, b"), "join: unknown field 'idd'"),
        (lambda t, s: t.join(s, "id", s, "id"), "join: no output fields"),
        (
            lambda t, s: t.join(s, "id", s, "id, sentence", "a, b"),
            "as many key fields of each stream, found 'id; id, sentence'",
        ),
        (
            lambda t, s: t.join(s, "id", s, "sentence", "a, b, c"),
            r"join: 'id' \(long\) and 'sentence' \(string\) can't be one field",
        ),
        (
            lambda t, s: t.join(s, "id", s, "id", "id, a"),
            r"join: 2 names for 3 fields 'id, a'\. The streams have 1\.id, 1\.sentence, 2\.sen",
        ),
        (lambda t, s: t.join(s, "id", s, "id", "id, a, a"), "duplicate field 'a'"),
        (
            lambda t, s: t.join(s, "id", s, "id", "i, a, b", "left"),
            "expected a JoinType, found \"str 'left'",
        ),
        (
            lambda t, s: t.join(s, "id", s, "id", "i, a, b", [JoinType.INNER]),
            "expected a JoinType of each of 2 streams, found '1'",
        ),
        (
            lambda t, s: t.join(s, "id", s, "id", "i, a, b", JoinType.INNER, "compact"),
            "then a JoinOutFieldsMode, found \"str 'compact'",
        ),
    ],
)
def test_a_join_says_what_is_wrong(call: Call, text: str) -> None:
    fails(call, PlanError, text)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: t.multiReduce(s, Both()), "multiReduce: takes streams, a reducer and output"),
        (lambda t, s: t.multiReduce(s, Both(), "a"), "expected two streams or more"),
        (lambda t, s: t.multiReduce([s], [s], Both(), "a"), "found '1 streams and fields of 1'"),
        (lambda t, s: t.multiReduce(s, "id", Both(), "a"), "stream of this topology, found 'str'"),
        (lambda t, s: t.multiReduce(s, s, Both(), "a"), r"a MultiReducer, found 'Both\(\)"),
        (
            lambda t, s: t.multiReduce(s, s.groupBy("id"), Both(), "a, b"),
            "some streams have groups, some not",
        ),
        (
            lambda t, s: t.multiReduce(s.groupBy("id"), s.groupBy("sentence"), Both(), "a, b"),
            r"multiReduce: 'id' \(long\) and 'sentence' \(string\) can't be one field",
        ),
        (
            lambda t, s: t.multiReduce("idd", s.groupBy("id"), "id", s.groupBy("id"), Both(), "a"),
            "multiReduce: unknown field 'idd'",
        ),
        (lambda t, s: s.aggregate(Both(), "a"), "It belongs into multiReduce of groups"),
    ],
)
def test_a_reducer_of_streams_says_what_is_wrong(call: Call, text: str) -> None:
    fails(call, PlanError, text)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda t, s: s.flatMap(vectorised(3), "a"), "vectorised: expected a function of a record"),
        (lambda t, s: s.flatMap(vectorised(Same()), "a"), "vectorised: expected a function"),
        (lambda t, s: s.map(vectorised(len), "a"), r"into flatMap\(vectorised\(function\), output"),
        (lambda t, s: s.each("id", vectorised(len), "a"), r"belongs into flatMap\(vectorised"),
    ],
)
def test_a_function_of_record_batches_belongs_into_flat_map(call: Call, text: str) -> None:
    fails(call, OperationTypeError, text)
