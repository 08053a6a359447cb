"""Groups, queries and states of a plan."""

from __future__ import annotations

import pytest

from tests.api.topologies import Column, Frame, sentences, word_count
from tests.plan.declared import every_step
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.operations.builtin import Count, MapGet, Split, Sum
from trident.plan.nodes import NewValuesNode, StateQueryNode, StateUpdateNode
from trident.plan.plan import Plan, ancestors
from trident.spouts.fixed import FixedBatchSpout


def spout(topology: TridentTopology, name: str):  # type: ignore[no-untyped-def]
    return topology.newStream(name, FixedBatchSpout("word string", 3))


def count(stream, name: str):  # type: ignore[no-untyped-def]
    return stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), name)


def group_ids(topology: TridentTopology) -> list[str]:
    return [group.id for group in topology.plan().groups]


def test_streams_apart_are_groups_apart() -> None:
    topology = TridentTopology()
    count(spout(topology, "b"), "n")
    count(spout(topology, "a"), "m")
    assert group_ids(topology) == ["a", "b"]


def test_merged_streams_are_one_group_with_sources_in_order_of_their_ids() -> None:
    topology = TridentTopology()
    count(topology.merge(spout(topology, "c"), spout(topology, "a"), spout(topology, "b")), "n")
    (group,) = topology.plan().groups
    assert group.id == "a"
    assert [source.stream_id for source in group.sources] == ["a", "b", "c"]
    assert [update.state.name for update in group.updates] == ["n"]


def test_a_query_inside_a_batch_joins_the_states_group() -> None:
    topology = TridentTopology()
    counts = count(spout(topology, "z"), "n")
    spout(topology, "y").stateQuery(counts, "word", MapGet(), "seen")
    assert group_ids(topology) == ["y"]


def test_queries_and_static_states_join_no_group() -> None:
    topology = TridentTopology()
    counts = count(spout(topology, "a"), "n")
    static = topology.newStaticState(MemoryMapState.Factory())
    for name in ("one", "two"):
        query = topology.newDRPCStream(name).stateQuery(counts, "args", MapGet(), "n")
        query.stateQuery(static, "args", MapGet(), "m")
    spout(topology, "b").stateQuery(static, "word", MapGet(), "m")
    plan = topology.plan()
    assert group_ids(topology) == ["a", "b"]
    assert [state.state.name for state in plan.drpc["one"].states] == ["n", "state"]
    assert [state.state.name for state in plan.states] == ["n", "state"]
    assert plan.group_of(plan.drpc["one"].source) is None
    assert plan.group_of(plan.groups[0].sources[0]) == plan.groups[0]


def test_the_answer_is_the_step_declared_last() -> None:
    topology = TridentTopology()
    args = topology.newDRPCStream("f")
    words = args.each("args", Split(), "word")
    args.aggregate(Count(), "requests")
    words.aggregate(Count(), "words")
    query = topology.plan().drpc["f"]
    assert query.result.fields.names == ("words",)
    assert [node.id for node in query.nodes] == [1, 2, 4]


def test_a_group_of_dataframes_is_clocked_by_streaming() -> None:
    topology = TridentTopology()
    frame = Frame(Column("word", "string"))
    count(topology.merge(topology.newStream("a", frame), topology.newStream("b", frame)), "n")
    (group,) = topology.plan().groups
    assert group.clock == "dataframe"
    spouts = TridentTopology()
    count(spout(spouts, "a"), "n")
    assert spouts.plan().groups[0].clock == "spout"


def test_a_plan_does_not_change_when_its_topology_grows() -> None:
    topology = TridentTopology()
    stream = spout(topology, "a")
    plan = topology.plan()
    stream.project("word")
    assert len(plan.nodes) == 1
    assert len(topology.plan().nodes) == 2


def test_persistent_aggregates_are_lowered() -> None:
    topology = TridentTopology()
    counts = word_count(sentences(topology))
    values = counts.newValuesStream()
    *_, update, new = topology.plan().nodes
    assert isinstance(update, StateUpdateNode)
    assert isinstance(new, NewValuesNode)
    assert repr(values.getOutputFields()) == "Fields('word string, count long')"
    assert [type(node).__name__ for node in ancestors(new)] == [
        *("SourceNode", "EachNode", "AggregateNode", "StateUpdateNode", "NewValuesNode"),
    ]


def test_a_query_knows_the_type_of_what_is_stored() -> None:
    topology = TridentTopology()
    counts = word_count(sentences(topology))
    query = topology.newDRPCStream("f").stateQuery(counts, "args", MapGet(), "n")
    assert query.getOutputFields().types == {"args": "string", "n": "long"}
    *_, node = topology.plan().nodes
    assert isinstance(node, StateQueryNode)


def test_nodes_are_frozen() -> None:
    topology = TridentTopology()
    sentences(topology)
    with pytest.raises(AttributeError):
        topology.plan().nodes[0].id = 7  # type: ignore[misc]
    assert Plan(()).groups == ()


def test_only_aggregates_without_groups_act_on_nothing() -> None:
    group, *_ = every_step().plan().groups
    assert [node.call_text for node in group.acting_on_nothing] == [
        "partitionAggregate(id, Tally(), n)",
        "aggregate(id, Max(), n)",
        "aggregate(n, Sum(), total)",
    ]
    topology = TridentTopology()
    words = count(spout(topology, "a"), "n").newValuesStream().groupBy("word")
    words.partitionAggregate(Count(), "m").aggregate("m", Sum(), "sum")
    (group,) = topology.plan().groups
    assert group.acting_on_nothing == ()
