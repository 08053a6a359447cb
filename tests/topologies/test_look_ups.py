"""Look-ups in a row: all stores are asked before any is waited for."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.drpc.asking import PATIENCE
from tests.spark.files import FileMap
from tests.topologies.conftest import Engine
from tests.topologies.meeting import filled
from trident import Count, FeederBatchSpout, MapGet, MemoryMapState, Split, TridentTopology
from trident.api.start import on_spark
from trident.drpc.service import LocalDRPC
from trident.job.compile import Local, compile_job
from trident.job.job import LookUp

ONE, OTHER = {"a": 1, "b": 2}, {"a": 10, "c": 30}


def looked_up(topology: TridentTopology, stream: Any, folder: Path, **options: Any) -> Any:
    one = topology.newStaticState(filled(folder / "one", ONE, **options), name="one")
    other = topology.newStaticState(filled(folder / "other", OTHER, **options), name="other")
    return (
        stream.stateQuery(one, "word", MapGet(), "first long")
        .stateQuery(other, "word", MapGet(), "second long")
        .project("word, first, second")
    )


FOUND = [["a", 1, 10], ["b", 2, None], ["c", None, 30], [None, None, None], ["a", 1, 10]]


@pytest.mark.parametrize("hosted", ["driver", "executor"])
def test_a_batch_asks_both_states_before_it_waits(
    engine: Engine, tmp_path: Path, hosted: str
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    found = engine.capture(
        looked_up(topology, topology.newStream("s", spout), tmp_path, hosted=hosted)
    )
    engine.play(topology, spout, [[word] for word, *_ in FOUND])
    assert sorted(map(list, found.tuples), key=repr) == sorted(FOUND, key=repr)


def query(folder: Path, engine: str = "local") -> TridentTopology:
    topology = TridentTopology()
    asked: Any = engine
    stream = topology.newDRPCStream("f", engine=asked).each("args", Split(), "word")
    looked_up(topology, stream, folder)
    return topology


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_query_asks_both_states_before_it_waits(
    tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    with LocalDRPC(query(tmp_path, engine).plan(), on_spark=on_spark()) as drpc:
        found = json.loads(drpc.execute("f", "a b c", timeout=PATIENCE))
    assert sorted(found) == FOUND[:3]


def test_queries_that_come_together_do_so_too(tmp_path: Path) -> None:
    with LocalDRPC(query(tmp_path).plan()) as drpc, ThreadPoolExecutor(8) as threads:
        words = ["a", "b c", "", "a c"] * 6
        found = threads.map(lambda args: drpc.execute("f", args, timeout=PATIENCE), words)
        expected = {row[0]: row for row in FOUND}
        for args, answer in zip(words, found, strict=True):
            assert json.loads(answer) == [expected[word] for word in args.split()]


class Broken(FileMap):
    def multiGet(self, keys: Any) -> Any:
        raise OSError("no route")


def test_what_one_of_them_raises_is_raised_with_its_step(tmp_path: Path) -> None:
    topology = TridentTopology()
    one = topology.newStaticState(filled(tmp_path / "one", ONE, map=FileMap), name="one")
    other = topology.newStaticState(filled(tmp_path / "other", OTHER, map=Broken), name="other")
    (
        topology.newDRPCStream("f")
        .stateQuery(one, "args", MapGet(), "first")
        .stateQuery(other, "args", MapGet(), "second")
    )
    with LocalDRPC(topology.plan()) as drpc, pytest.raises(Exception, match="no route") as raised:
        drpc.execute("f", "a")
    assert "second" in str(raised.value)
    assert "first" not in str(raised.value).partition("in the step")[2].partition("declared")[0]


class MyGet(MapGet):
    """What is derived from an operation of the library may do anything."""


@pytest.fixture
def topology() -> TridentTopology:
    return TridentTopology()


def rows(topology: TridentTopology) -> list[int]:
    """How many look-ups are in each row."""
    jobs = [compile_job(part, Local()) for part in topology.plan().parts]
    return [len(step.ids) for job in jobs for step in job.steps if isinstance(step, LookUp)]


def state(topology: TridentTopology, name: str) -> Any:
    return topology.newStaticState(f"redis://one/0?prefix={name}", name=name)


def test_look_ups_of_three_states_are_one_row(topology: TridentTopology) -> None:
    stream = topology.newDRPCStream("f")
    for name in "xyz":
        stream = stream.stateQuery(state(topology, name), "args", MapGet(), name)
    assert rows(topology) == [3]
    assert "looked up together with step" in topology.explain()


def test_one_that_takes_what_another_finds_begins_a_row(topology: TridentTopology) -> None:
    stream = topology.newDRPCStream("f")
    stream = stream.stateQuery(state(topology, "x"), "args", MapGet(), "x")
    stream = stream.stateQuery(state(topology, "y"), "x", MapGet(), "y")
    stream.stateQuery(state(topology, "z"), "x", MapGet(), "z")
    assert rows(topology) == [1, 2]


def test_so_does_another_one_of_the_same_state(topology: TridentTopology) -> None:
    known = state(topology, "x")
    stream = topology.newDRPCStream("f").stateQuery(known, "args", MapGet(), "x")
    stream.stateQuery(known, "args", MapGet(), "y")
    assert rows(topology) == [1, 1]


def test_so_does_a_query_of_ones_own(topology: TridentTopology) -> None:
    stream = topology.newDRPCStream("f").stateQuery(state(topology, "x"), "args", MyGet(), "x")
    stream.stateQuery(state(topology, "y"), "args", MapGet(), "y")
    assert rows(topology) == [1, 1]


def test_so_does_one_of_a_state_in_this_process(topology: TridentTopology) -> None:
    memory = topology.newStaticState(MemoryMapState.Factory(), name="m")
    stream = topology.newDRPCStream("f").stateQuery(state(topology, "x"), "args", MapGet(), "x")
    stream.stateQuery(memory, "args", MapGet(), "y")
    assert rows(topology) == [1, 1]


def test_and_one_behind_a_step_that_others_take_as_well(topology: TridentTopology) -> None:
    stream = topology.newStream("s", FeederBatchSpout("word string"))
    stream = stream.stateQuery(state(topology, "x"), "word", MapGet(), "x")
    stream.stateQuery(state(topology, "y"), "word", MapGet(), "y")
    stream.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    assert rows(topology) == [1, 1]
