"""The plan as JSON values."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.api.topologies import sentences, word_count
from tests.plan.declared import DECLARED
from trident import Count, MapGet, MemoryMapState
from trident.api.topology import TridentTopology


@pytest.mark.parametrize("declare", DECLARED)
def test_it_is_json_and_the_same_every_time(declare: Callable[[], TridentTopology]) -> None:
    first = json.dumps(declare().to_dict())
    assert json.dumps(declare().to_dict()) == first


@pytest.mark.parametrize("declare", DECLARED)
def test_what_it_names_is_there(declare: Callable[[], TridentTopology]) -> None:
    plan = declare().to_dict()
    nodes = {node["id"]: node for node in plan["nodes"]}
    states = {state["name"] for state in plan["states"]}
    assert len(nodes) == len(plan["nodes"])
    for part in plan["groups"] + plan["queries"]:
        for place, stage in enumerate(part["stages"]):
            before = [each["number"] for each in part["stages"][:place]]
            assert set(stage["inputs"]) <= set(before)
            assert bool(stage["exchange"]) == bool(stage["inputs"])
            for id in stage["nodes"]:
                assert nodes[id]["stage"] == stage["number"]
                assert part.get("id") == nodes[id]["group"]
                assert part.get("function") == nodes[id]["query"]
    for node in nodes.values():
        assert set(node["parents"]) <= nodes.keys()
        assert {node["updates"], node["reads"]} <= states | {None}


def test_a_state_is_told_with_its_guarantee_its_place_and_its_calls() -> None:
    topology = TridentTopology()
    url = "redis://me:s3cret@cache:6379/3?prefix=words"
    counts = word_count(sentences(topology), url)
    topology.newDRPCStream("words").stateQuery(counts, "args", MapGet(), "value")
    plan = topology.to_dict()
    (state,) = plan["states"]
    assert state["guarantee"] == "exactly once"
    assert state["why"] == "transactional stream, opaque map"
    assert state["store"] == {
        "kind": "redis",
        "host": "cache:6379",
        "database": "3",
        "prefix": "words",
    }
    assert state["calls"] == {"task": [3, 3], "batch": [6, 6]}
    (reader,) = [node for node in plan["nodes"] if node["reads"]]
    assert (reader["reads"], reader["query"], reader["group"]) == ("count", "words", None)
    fields = [("args", "string"), ("value", "long")]
    assert [(field["name"], field["type"]) for field in reader["fields"]] == fields
    assert "s3cret" not in json.dumps(plan)


def test_requests_that_update_a_state_are_the_clock_of_their_group() -> None:
    topology = TridentTopology()
    requests = topology.newDRPCStream("add", answers=MemoryMapState.Factory())
    requests.groupBy("args").persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    [group] = topology.to_dict()["groups"]
    assert (group["id"], group["clock"]) == ("drpc/add", "requests")
    assert ">requests<" in topology.to_svg()
