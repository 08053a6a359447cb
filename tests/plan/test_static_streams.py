"""Static streams: where they may be declared, and what is found of them in a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.topologies import Column, Frame
from trident import (
    Count,
    FixedBatchSpout,
    MapGet,
    MemoryMapState,
    TridentTopology,
    native,
)
from trident.errors import OperationTypeError, PlanError


def frame(*names: str, streaming: bool = False) -> Frame:
    return Frame(*(Column(name, "string") for name in names), streaming=streaming)


def joined(topology: TridentTopology, query: Any, static: Any, outputs: str = "url, who") -> Any:
    return topology.join(query, "args", static, "url", outputs)


@pytest.fixture
def topology() -> TridentTopology:
    return TridentTopology()


@pytest.fixture
def static(topology: TridentTopology) -> Any:
    return topology.newStaticStream(frame("url", "who"))


def test_a_query_reads_the_frames_that_lead_to_its_last_step(
    topology: TridentTopology, static: Any
) -> None:
    first = joined(topology, topology.newDRPCStream("f", engine="spark"), static)
    other = topology.newStaticStream(frame("who", "age"))
    topology.join(first, "who", other.filter("age", bool), "who", "who, url, age").project("age")
    other.project("who")  # which nothing takes, and is no answer
    [query] = topology.plan().drpc.values()
    assert [node.fields.names for node in query.frames] == [("url", "who"), ("who", "age")]
    assert query.result.fields.names == ("age",)


def test_a_frame_begins_a_stream_in_each_query_that_reads_it(topology: TridentTopology) -> None:
    followers = frame("url", "who")
    for function in ("one", "other"):
        query = topology.newDRPCStream(function, engine="spark")
        joined(topology, query, topology.newStaticStream(followers))
    assert list(topology.plan().drpc) == ["one", "other"]


def test_explain_says_that_spark_answers_and_what_it_reads(
    topology: TridentTopology, static: Any
) -> None:
    joined(topology, topology.newDRPCStream("f", engine="spark"), static)
    text = topology.explain()
    assert "Spark answers it, each request by a job of its own" in text
    assert "static stream of url, who" in text
    assert topology.to_dict()["queries"][0]["engine"] == "spark"


def refused(call: Callable[[], object], *texts: str) -> None:
    with pytest.raises(PlanError) as raised:
        call()
    for text in texts:
        assert text in str(raised.value)


def test_a_query_that_this_process_answers_reads_none(
    topology: TridentTopology, static: Any
) -> None:
    query = topology.newDRPCStream("f")
    refused(lambda: joined(topology, query, static), "doesn't answer the function", "engine=")


def test_nor_does_a_stream_of_batches(topology: TridentTopology, static: Any) -> None:
    batches = topology.newStream("s", FixedBatchSpout("args string", 1))
    refused(lambda: joined(topology, batches, static), "can be joined with", "newStaticState()")


def test_it_updates_no_state(static: Any) -> None:
    grouped = static.groupBy("who")
    refused(
        lambda: grouped.persistentAggregate(MemoryMapState.Factory(), Count(), "n"),
        "updates no state",
    )


def test_it_is_of_one_query(topology: TridentTopology, static: Any) -> None:
    joined(topology, topology.newDRPCStream("one", engine="spark"), static)
    other = topology.newDRPCStream("other", engine="spark")
    refused(
        lambda: joined(topology, other, static), "belongs to one query", "from the same DataFrame"
    )
    assert list(topology.plan().drpc) == ["one", "other"]


@pytest.mark.parametrize("given", [frame("a", streaming=True), "followers", None, Frame])
def test_only_a_batch_frame_begins_one(topology: TridentTopology, given: object) -> None:
    with pytest.raises(OperationTypeError, match=r"spark\.read"):
        topology.newStaticStream(given)


def test_a_query_on_spark_updates_no_state(topology: TridentTopology) -> None:
    query = topology.newDRPCStream("f", engine="spark").groupBy("args")
    refused(
        lambda: query.persistentAggregate(MemoryMapState.Factory(), Count(), "n"),
        "updates no state",
    )


def test_a_query_on_spark_keeps_no_answers(topology: TridentTopology) -> None:
    answers = MemoryMapState.Factory()
    refused(lambda: topology.newDRPCStream("f", answers=answers, engine="spark"), "answers= is for")
    assert not topology.plan().nodes


def test_the_engine_is_one_that_there_is(topology: TridentTopology) -> None:
    engine: Any = "flink"
    refused(lambda: topology.newDRPCStream("f", engine=engine), "flink", "local", "spark")


def test_spark_expressions_need_spark(topology: TridentTopology) -> None:
    upper = native("upper(args)")
    topology.newDRPCStream("spark", engine="spark").each("args", upper, "upper")
    local = topology.newDRPCStream("local")
    refused(lambda: local.each("args", upper, "upper"), "Spark expressions", 'engine="spark"')


def test_states_that_batches_update_are_asked_in_one_step(topology: TridentTopology) -> None:
    words = topology.newStream("s", FixedBatchSpout("word string", 1)).groupBy("word")
    counts = words.persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    fixed = topology.newStaticState(MemoryMapState.Factory(), name="fixed")
    query = topology.newDRPCStream("f", engine="spark")
    one = query.stateQuery(counts, "args", MapGet(), "one long")
    one.stateQuery(fixed, "args", MapGet(), "two long")
    refused(lambda: one.stateQuery(counts, "args", MapGet(), "more long"), "in one step", "n, n")
