"""What holds for any topology, however its steps are put together."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.topologies import Everything, Same, sentences
from trident.api.assemblies import FirstN
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.job.compile import Spark, draft_job
from trident.job.passes import needed_fields
from trident.operations.builtin import Count, MapGet, Max


def first(stream: Stream) -> str:
    return stream.getOutputFields().names[0]


def new(stream: Stream) -> str:
    return f"f{len(stream._builder.nodes)}"


def persist(stream: Stream) -> Stream:
    name = new(stream)
    counted = stream.groupBy(first(stream)).persistentAggregate(
        MemoryMapState.Factory(), Count(), name
    )
    return stream.stateQuery(counted, first(stream), MapGet(), f"{name}q")


STEPS: tuple[Callable[[Stream], Stream], ...] = (
    lambda s: s.each(first(s), Same(), new(s)),
    lambda s: s.filter(Everything()),
    lambda s: s.map(lambda *values: values),
    lambda s: s.flatMap(lambda *values: [values], [f"{new(s)}_{i}" for i in range(2)]),
    lambda s: s.project(first(s)),
    lambda s: s.partitionBy(first(s)),
    lambda s: s.shuffle().parallelismHint(3),
    lambda s: s.global_().name("all"),
    lambda s: s.groupBy(first(s)).aggregate(Count(), new(s)),
    lambda s: s.aggregate(first(s), Max(), new(s)),
    lambda s: s.partitionAggregate(Count(), new(s)),
    lambda s: s.minBy(first(s)).localOrShuffle(),
    lambda s: s.applyAssembly(FirstN(2, first(s))),
    persist,
)


@st.composite
def topologies(draw: st.DrawFn) -> TridentTopology:
    topology = TridentTopology()
    streams: list[Any] = [sentences(topology)]
    for _ in range(draw(st.integers(0, 8))):
        stream = draw(st.sampled_from(streams))
        streams.append(draw(st.sampled_from(STEPS))(stream))
    return topology


@settings(max_examples=50, deadline=None)
@given(topologies())
def test_parents_come_first_and_stages_hold_each_step_once(topology: TridentTopology) -> None:
    plan = topology.plan()
    for node in plan.nodes:
        assert all(parent.id < node.id for parent in node.parents)
    (group,) = plan.groups
    job, _ = draft_job(group, Spark(4))
    assert sorted(id for stage in job.stages for id in stage.ids) == [n.id for n in plan.nodes]


@settings(max_examples=50, deadline=None)
@given(topologies())
def test_each_step_is_explained_and_drawn(topology: TridentTopology) -> None:
    plan = topology.plan()
    text, drawn = topology.explain(), topology.to_mermaid()
    for node in plan.nodes:
        assert re.search(rf"^ +{node.id}  ", text, re.MULTILINE)
        assert f" n{node.id}[" in drawn
    assert drawn.count("subgraph") == len(re.findall(r"^ +end$", drawn, re.MULTILINE))


@settings(max_examples=50, deadline=None)
@given(topologies())
def test_needed_fields_are_there_and_cover_what_is_read(topology: TridentTopology) -> None:
    needed = needed_fields(topology.plan().nodes)
    for node, fields in needed.items():
        assert set(fields) <= set(node.fields)
        for name in ("inputs", "group", "by"):
            read = getattr(node, name, None) or ()
            assert all(field in needed[parent] for parent in node.parents for field in read)
