"""To declare a topology takes as many calls as it has steps, not their square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import CO_GENERATOR
from types import FrameType

import pytest

from trident import Count, FixedBatchSpout, MapGet, MemoryMapState, TridentTopology

PLAN = ("trident.plan", "trident.api")


def queries(count: int) -> None:
    topology = TridentTopology()
    known = topology.newStaticState(MemoryMapState.Factory("known"), name="known")
    stream = topology.newDRPCStream("ask")
    for number in range(count):
        stream = stream.stateQuery(known, "args", MapGet(), f"found{number} long")


def queries_of_updated_states(count: int) -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 3))
    counts = words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "n")
    for number in range(count):
        words = words.stateQuery(counts, "word", MapGet(), f"found{number} long")


def streams_and_states(count: int) -> None:
    topology = TridentTopology()
    for number in range(count):
        words = topology.newStream(f"words{number}", FixedBatchSpout("word string", 3))
        words.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), f"n{number}")


def merged_streams(count: int) -> None:
    topology = TridentTopology()
    first, *others = (
        topology.newStream(f"words{number}", FixedBatchSpout("word string", 3))
        for number in range(count)
    )
    merged = topology.merge(first, *others).map(str.upper)
    for _ in range(count):
        merged = merged.shuffle()


def functions(count: int) -> None:
    topology = TridentTopology()
    for number in range(count):
        topology.newDRPCStream(f"ask{number}").map(str.upper)


@pytest.mark.parametrize(
    "declare", [queries, queries_of_updated_states, streams_and_states, merged_streams, functions]
)
def test_twice_the_steps_take_twice_the_calls(declare: Callable[[int], None]) -> None:
    declare(3)  # what is imported and kept by the first one
    few, many, more = (calls(lambda n=n: declare(n)) for n in (20, 40, 80))
    assert more - many <= 2.1 * (many - few)


def calls(run: Callable[[], None]) -> int:
    """How many functions of the plan and the API were called.

    Generators aren't counted, as each tells the fields of one step, which grow with the steps here.
    """
    count = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        module = frame.f_globals.get("__name__", "")
        generator = frame.f_code.co_flags & CO_GENERATOR
        if event == "call" and not generator and module.startswith(PLAN):
            count += 1

    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count
