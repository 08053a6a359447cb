"""Types of fields: declared, known, or asked for when they are needed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.topologies import Same, sentences
from trident.api.topology import TridentTopology
from trident.errors import FieldError
from trident.job.passes import field_type
from trident.operations.builtin import Count, Max, Split, Sum
from trident.tuples.fields import Fields


def letters(word: str) -> Iterator[tuple[str, int]]: ...


def test_types_follow_the_fields() -> None:
    stream = sentences(TridentTopology()).each("sentence", Split(), "word")
    for made, types in [
        (stream, "id long, sentence string, word string"),
        (stream.each("word", letters, "letter, at"), "letter string, at long"),
        (stream.each("word", letters, "letter binary, at"), "letter binary, at long"),
        (stream.project("word, id"), "word string, id long"),
        (stream.groupBy("word").aggregate("id", Max(), "max"), "word string, max long"),
        (stream.groupBy("word").aggregate(Count(), "n"), "word string, n long"),
        (stream.aggregate("id", Sum(), "sum double"), "sum double"),
        (stream.project("id").map(lambda n: n), "id long"),
        (stream.project("id").map(lambda n: n, "m"), "m"),
        (stream.flatMap(lambda *_: [], "a, b string"), "a, b string"),
    ]:
        expected = Fields.of(types)
        fields = made.getOutputFields()
        assert fields.select(fields.names[-len(expected) :]) == expected


def test_merged_fields_have_the_type_that_all_have() -> None:
    topology = TridentTopology()
    stream = sentences(topology)
    assert topology.merge(stream, stream).getOutputFields() == Fields.of("id long, sentence string")
    untyped = stream.map(lambda id, sentence: (id, sentence), "a, b")
    assert topology.merge(stream, untyped).getOutputFields() == Fields("id", "sentence")
    named = topology.merge("a, b binary", stream, stream)
    assert named.getOutputFields() == Fields.of("a long, b binary")


def test_a_type_that_is_needed_and_not_known_names_the_step_that_makes_the_field() -> None:
    topology = TridentTopology()
    stream = sentences(topology).each("sentence", Same(), "copy").project("copy").shuffle()
    node = topology.plan().nodes[-1]
    assert stream.getOutputFields().types == {"copy": None}
    with pytest.raises(FieldError, match=r"each at .*test_types.py:\d+: Spark needs the type") as e:
        field_type(node, "copy")
    assert "Fields(copy=str)" in str(e.value)
    assert field_type(topology.plan().nodes[0], "id") == "long"
