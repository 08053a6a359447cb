"""Which fields a step must deliver follows from what comes after it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.topologies import Everything, Longest, Same, Write, sentences
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.job.passes import needed_fields
from trident.operations.builtin import Count, MapGet
from trident.operations.callables import native

memory = MemoryMapState.Factory


def counted(stream: Any) -> Any:
    return stream.groupBy("id").persistentAggregate(memory(), Count(), "count")


def reduced(stream: Any) -> Any:
    return stream.groupBy("id").persistentAggregate(memory(), "sentence", Longest(), "longest")


def needed(topology: TridentTopology) -> list[str]:
    """The fields of each step that are needed, part by part."""
    parts = topology.plan().parts
    found = [needed_fields(each.steps, [each.result] if each.result else ()) for each in parts]
    return [str(fields) for each in found for fields in each.values()]


@pytest.mark.parametrize(
    ("declare", "fields"),
    [
        (lambda s, t: counted(s), ["id", "id, count", ""]),
        (
            lambda s, t: counted(s).newValuesStream().project("count"),
            ["id", "id, count", "", "", ""],
        ),
        (lambda s, t: reduced(s), ["id, sentence", "id, sentence", ""]),
        (
            lambda s, t: counted(s.each("sentence", Same(), "x")),
            ["id, sentence", "id", "id, count", ""],
        ),
        (lambda s, t: s, [""]),
        (lambda s, t: s.peek(print), ["id, sentence", ""]),
        (lambda s, t: s.map(lambda *_: 0, "x").project("x"), ["id, sentence", "", ""]),
        (lambda s, t: s.filter("sentence", Everything()), ["sentence", ""]),
        (lambda s, t: s.each(native("id + 1"), "next"), ["id, sentence", ""]),
        (lambda s, t: s.each("id", native("id + 1"), "next"), ["id", ""]),
        (lambda s, t: s.partitionBy("id"), ["id", ""]),
        (lambda s, t: s.partitionPersist(memory(), "sentence", Write()), ["sentence", ""]),
        (
            lambda s, t: s.stateQuery(t.newStaticState(memory()), "id", MapGet(), "v"),
            ["id", ""],
        ),
    ],
)
def test_only_what_is_read_is_needed(declare: Any, fields: list[str]) -> None:
    topology = TridentTopology()
    declare(sentences(topology), topology)
    assert needed(topology) == fields


def test_what_a_query_answers_is_needed_whole() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").each("args", str.split, "word string").each("word", Same(), "x")
    assert needed(topology) == ["args", "args, word", "args, word, x"]


def test_merged_fields_are_needed_by_position() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    other = stream.each("id", Same(), "x").project("x, sentence")
    counted(topology.merge(stream.project("id, sentence"), other))
    assert needed(topology) == ["id", "x", "x", "id", "id", "id, count", ""]


def test_fields_of_several_consumers_add_up() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    counted(stream)
    stream.filter("sentence", Everything())
    assert needed(topology)[0] == "id, sentence"
