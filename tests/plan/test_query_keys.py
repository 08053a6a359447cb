"""A query's key against the state's: what can never be found is refused where it is declared."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.api.topologies import Longest, Write
from trident.api.stream import Stream, TridentState
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import FieldError
from trident.operations.builtin import Count, MapGet
from trident.operations.callables import native
from trident.plan.query_checks import conversion, new_name
from trident.spouts.feeder import FeederBatchSpout
from trident.spouts.fixed import FixedBatchSpout
from trident.tuples.fields import Fields


def stream(topology: TridentTopology, fields: str, *rows: Any, id: str = "s") -> Stream:
    return topology.newStream(id, FixedBatchSpout(fields, 9, *rows))


def counts(stream: Stream, *key: str) -> TridentState:
    return stream.groupBy(*key).persistentAggregate(MemoryMapState.Factory(), Count(), "count")


def refused(stream: Stream, state: TridentState, key: str) -> str:
    with pytest.raises(FieldError) as caught:
        stream.stateQuery(state, key, MapGet(), "found")
    return str(caught.value)


def converted(stream: Stream, message: str) -> tuple[Stream, str]:
    """The stream after the call that a message tells to write, and the key to query with."""
    found = re.search(r'(\.each\(.*\)), and query with "(.*)"\.$', message)
    assert found is not None, message
    return eval(f"stream{found[1]}", {"stream": stream, "Fields": Fields}), found[2]


def test_a_text_for_a_key_of_numbers_is_refused_with_the_conversion() -> None:
    topology = TridentTopology()
    state = counts(stream(topology, "id long"), "id")
    before = topology.plan().nodes
    query = topology.newDRPCStream("count")
    assert refused(query, state, "args") == (
        "stateQuery: the key of state 'count' is of type long ('id'), which never equals a value "
        "of type string, as in the field 'args'. Convert it first, "
        '.each("args", lambda v: [int(v)], "id long"), and query with "id".'
    )
    assert len(topology.plan().nodes) == len(before) + 1


# What a key of one type is, written as one of another: the state's is the second.
SAME = {
    ("string", "long"): ("1", 1),
    ("string", "double"): ("1.5", 1.5),
    ("string", "boolean"): ("true", True),
    ("long", "string"): (1, "1"),
    ("long", "double"): (1, 1.0),
    ("long", "boolean"): (0, False),
    ("double", "string"): (1.5, "1.5"),
    ("double", "long"): (2.0, 2),
    ("double", "boolean"): (1.0, True),
    ("boolean", "string"): (True, "true"),
    ("boolean", "long"): (True, 1),
    ("boolean", "double"): (False, 0.0),
}


@pytest.mark.parametrize(("found", "wanted"), SAME)
def test_the_printed_conversion_finds_what_was_counted(found: str, wanted: str) -> None:
    asked, kept = SAME[found, wanted]
    topology = TridentTopology()
    counting, asking = FeederBatchSpout(f"k {wanted}"), FeederBatchSpout(f"k {found}")
    state = counts(topology.newStream("counting", counting), "k")
    asks = topology.newStream("asking", asking)
    asks, key = converted(asks, refused(asks, state, "k"))
    answers: list[Any] = []
    asks.stateQuery(state, key, MapGet(), "n").project("n").peek(answers.append)
    with topology.start() as run:
        counting.feed([(kept,)], 60)
        asking.feed([(asked,), (None,)], 60)
        run.processAllAvailable()
    assert answers == [1, None]


@pytest.mark.parametrize("wanted", ["long", "double", "boolean"])
def test_the_printed_conversion_of_arguments_finds_what_was_counted(wanted: str) -> None:
    args, kept = SAME["string", wanted]
    topology = TridentTopology()
    state = counts(stream(topology, f"k {wanted}", (kept,)), "k")
    query = topology.newDRPCStream("count")
    query, key = converted(query, refused(query, state, "args"))
    query.stateQuery(state, key, MapGet(), "n").project("n")
    with topology.start() as run:
        run.processAllAvailable()
        assert run.drpc.execute("count", args) == "[[1]]"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [("int", "long"), ("byte", "short"), ("float", "double"), ("varchar(9)", "string")],
)
def test_widths_of_one_type_agree(found: str, wanted: str) -> None:
    topology = TridentTopology()
    state = counts(stream(topology, f"k {wanted}"), "k")
    stream(topology, f"k {found}", id="other").stateQuery(state, "k", MapGet(), "n")


def test_what_has_no_obvious_conversion_is_refused_too() -> None:
    topology = TridentTopology()
    state = counts(stream(topology, "k long"), "k")
    message = refused(stream(topology, "at timestamp", id="other"), state, "at")
    assert message.endswith("as in the field 'at'. Convert it to long first, in each() or map().")


@pytest.mark.parametrize("kind", ["decimal(9,2)", "date", "timestamp", "binary"])
def test_a_value_that_no_key_can_be_is_converted_to_text(kind: str) -> None:
    topology = TridentTopology()
    state = counts(stream(topology, "k string"), "k")
    asking = stream(topology, f"v {kind}", id="other")
    asking, key = converted(asking, refused(asking, state, "v"))
    asking.stateQuery(state, key, MapGet(), "n")
    assert asking.getOutputFields().types[key] == "string"


def test_of_a_key_of_several_fields_the_one_is_named() -> None:
    topology = TridentTopology()
    state = counts(stream(topology, "shop string, id long"), "shop", "id")
    query = topology.newDRPCStream("f").each(
        "args", lambda a: [a.split()], "shop string, id string"
    )
    message = refused(query, state, "shop, id")
    assert "field 2 of the key of state 'count' is of type long ('id')" in message
    query, key = converted(query, message)
    assert key == "shop, id_2"
    query.stateQuery(state, key, MapGet(), "n")


def test_a_reducers_key_is_known_too() -> None:
    topology = TridentTopology()
    state = (
        stream(topology, "id int, word string")
        .groupBy("id")
        .persistentAggregate(MemoryMapState.Factory(), "word", Longest(), "longest")
    )
    assert "of type int ('id')" in refused(topology.newDRPCStream("f"), state, "args")


def test_a_field_with_a_name_of_several_words_is_written_so_that_it_works() -> None:
    topology = TridentTopology()
    source = FixedBatchSpout(Fields.typed([("k", "long"), ("other key", "string")]), 9)
    asking = topology.newStream("s", source)
    state = counts(asking, "k")
    with pytest.raises(FieldError) as caught:
        asking.stateQuery(state, Fields.typed([("other key", None)]), MapGet(), "found")
    asking, key = converted(asking, str(caught.value))
    assert key == "k_2"
    asking.stateQuery(state, key, MapGet(), "n")


class ByText(MapGet):
    """Converts what it is asked with by itself."""

    def batchRetrieve(self, state: Any, tuples: Any) -> Any:
        return state.multiGet([(int(values[0]),) for values in tuples])


def test_where_a_type_is_not_known_nothing_is_refused() -> None:
    topology = TridentTopology()
    query = topology.newDRPCStream("f")
    untyped = counts(stream(topology, "k"), "k")
    query.stateQuery(untyped, "args", MapGet(), "untyped")
    query.map(str.split, "args").stateQuery(untyped, "args", MapGet(), "n")
    typed = stream(topology, "k long", id="typed")
    sql = typed.each(native("k + 1"), "made").groupBy("made")
    made = sql.persistentAggregate(MemoryMapState.Factory(), Count(), "n", name="native")
    query.stateQuery(made, "args", MapGet(), "native")
    own = typed.partitionPersist(MemoryMapState.Factory(), "k", Write(), name="own")
    query.stateQuery(own, "args", MapGet(), "own")
    static = topology.newStaticState(MemoryMapState.Factory(), name="static")
    query.stateQuery(static, "args", MapGet(), "static")
    numbers = typed.groupBy("k").persistentAggregate(
        MemoryMapState.Factory(), Count(), "n", name="numbers"
    )
    query.stateQuery(numbers, "args", ByText(), "numbers")


def test_a_key_that_a_query_has_found_is_converted_where_it_is_not_null() -> None:
    topology = TridentTopology()
    ids = (
        stream(topology, "name string, id string", id="a")
        .groupBy("name")
        .persistentAggregate(MemoryMapState.Factory(), "id", Longest(), "id")
    )
    state = counts(stream(topology, "number long", id="b"), "number")
    found = topology.newDRPCStream("count").stateQuery(ids, "args", MapGet(), "id string")
    assert "lambda v: [None if v is None else int(v)]" in refused(found, state, "id")


def test_a_conversion_is_the_call_to_write_for_a_field_with_a_free_name() -> None:
    written = conversion(Fields.of("args string"), "args", "id", "long", nullable=False)
    assert written == '.each("args", lambda v: [int(v)], "id long")'
    assert new_name(Fields("args"), "id") == "id"
    assert new_name(Fields("id", "id_2"), "id") == "id_3"
