"""Every kind of step on both engines, with one of its fields taken and no more: none is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.plan.node_classes import names, node_classes
from tests.plan.test_nodes import Odd
from tests.topologies.conftest import Engine, feed
from tests.topologies.test_declared_types import Echo, Pass
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import PlanError
from trident.operations.builtin import Sum
from trident.operations.callables import native
from trident.operations.joining import JoinType
from trident.plan.nodes import (
    AggregateNode,
    DeadLettersNode,
    DRPCNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    JoinNode,
    MapNode,
    MergeNode,
    NameNode,
    NativeNode,
    NewValuesNode,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    ProjectNode,
    SourceNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
    StaticStreamNode,
)
from trident.spouts.feeder import FeederBatchSpout

ROWS = [("x", 1, "p"), ("y", 2, "q"), ("x", 3, "q")]
memory = MemoryMapState.Factory


def looks(a: str, b: int, c: str) -> None:
    assert (a, b, c) in ROWS


def static(topology: TridentTopology, stream: Stream, name: str) -> Stream:
    known = topology.newStaticState(memory(), name=name)
    return stream.stateQuery(known, "b, a", Echo(), "n long, found string")


STEPS: Mapping[type[Node], tuple[Callable[[TridentTopology, Stream], Stream], list[Any]]] = {
    SourceNode: (lambda t, s: s.project("b"), [1, 2, 3]),
    EachNode: (
        lambda t, s: s.each("a, b", lambda a, b: [(b, a * b)], "n long, m string").project("m"),
        ["x", "xxx", "yy"],
    ),
    FilterNode: (lambda t, s: s.filter("b", lambda b: b > 1).project("a"), ["x", "y"]),
    MapNode: (
        lambda t, s: s.map(lambda a, b, c: (b, a + c), "n long, m string").project("m"),
        ["xp", "xq", "yq"],
    ),
    FlatMapNode: (
        lambda t, s: s.flatMap(lambda a, b, c: [(b, a + c)] * (b - 1), "n long, m string").project(
            "m"
        ),
        ["xq", "xq", "yq"],
    ),
    PeekNode: (lambda t, s: s.peek(looks).project("a"), ["x", "x", "y"]),
    ProjectNode: (lambda t, s: s.project("c, a").project("c"), ["p", "q", "q"]),
    NativeNode: (lambda t, s: s.each("b", native("b + 1"), "m").project("m"), [2, 3, 4]),
    PartitionNode: (lambda t, s: s.partitionBy("a").project("b"), [1, 2, 3]),
    PartitionAggregateNode: (lambda t, s: s.global_().partitionAggregate("b", Sum(), "m"), [6]),
    AggregateNode: (lambda t, s: s.groupBy("a").aggregate("b", Sum(), "m").project("m"), [2, 4]),
    StateUpdateNode: (
        lambda t, s: (
            s.groupBy("a")
            .persistentAggregate(memory(), "b", Sum(), "m", name="updated")
            .newValuesStream()
            .project("m")
        ),
        [2, 4],
    ),
    NewValuesNode: (
        lambda t, s: (
            s.partitionPersist(memory(), "b, a", Pass(), "n long, m string", name="new")
            .newValuesStream()
            .project("m")
        ),
        ["x", "x", "y"],
    ),
    StaticStateNode: (lambda t, s: static(t, s, "one").project("n"), [1, 2, 3]),
    StateQueryNode: (lambda t, s: static(t, s, "other").project("found"), ["x", "x", "y"]),
    MergeNode: (
        lambda t, s: t.merge("m, n", s.project("a, b"), s.project("c, b")).project("m"),
        ["p", "q", "q", "x", "x", "y"],
    ),
    JoinNode: (
        lambda t, s: t.join(s, "a", s.project("c, b"), "c", "a, n, c, m", JoinType.OUTER).project(
            "m"
        ),
        [1, 2, 3, None, None, None],
    ),
    HintNode: (lambda t, s: s.parallelismHint(2).project("b"), [1, 2, 3]),
    NameNode: (lambda t, s: s.name("named").project("b"), [1, 2, 3]),
}
ELSEWHERE = {DRPCNode, StaticStreamNode, DeadLettersNode}
"""What begins no batch: the queries of the other tests, which both engines answer alike. Dead
letters are added by the start: test_on_error.py."""


def test_every_kind_of_step_is_among_these() -> None:
    missing = node_classes() - STEPS.keys() - ELSEWHERE
    assert not missing, f"tests/topologies/test_every_node.py: add a stream with {names(missing)}"


def test_a_step_loses_no_input_of_which_one_output_is_taken(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("a string, b long, c string")
    stream = topology.newStream("s", spout)
    captured = {}
    for kind, (step, expected) in STEPS.items():
        if kind is NativeNode and engine.spark is None:
            continue
        before = len(topology.plan().nodes)
        made = step(topology, stream)
        added = {type(node) for node in topology.plan().nodes[before:]} | {SourceNode}
        assert kind in added, f"the step for {kind.__name__} makes none"
        captured[kind] = engine.capture(made, kind.__name__), expected
    with engine.start(topology) as run:
        feed(run, spout, ROWS)
    found = {kind: [row for (row,) in kept.tuples] for kind, (kept, _) in captured.items()}
    assert found == {kind: expected for kind, (_, expected) in captured.items()}


def test_a_step_that_an_engine_does_not_know_is_named_at_start(engine: Engine) -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FeederBatchSpout("a string"))
    topology._builder.add(Odd, parents=(stream._node,))
    with pytest.raises(PlanError, match=r"can't run a 'Odd'\. Tell it how, in trident/"):
        engine.start(topology)
