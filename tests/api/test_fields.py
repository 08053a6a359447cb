"""Fields: every way to write them, and what is refused."""

from __future__ import annotations

import copy
import pickle
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from trident.errors import FieldError
from trident.tuples.fields import Fields


@pytest.mark.parametrize(
    "given",
    [
        Fields("a", "b"),
        "a, b",
        "a,b",
        ["a", "b"],
        ("a", "b"),
        iter(["a", "b"]),
    ],
)
def test_fields_are_written_in_many_ways(given: Any) -> None:
    assert Fields.of(given) == Fields("a", "b")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("n long", "long"),
        ("n bigint", "long"),
        ("n LONG", "long"),
        ("n array<string>", "array<string>"),
        ("n map<string,array<long>>", "map<string,array<long>>"),
        ("n decimal(10,2)", "decimal(10,2)"),
        ("n array<BIGINT>", "array<long>"),
        ("n struct<a: bigint, b decimal(4, 1) NOT NULL>", "struct<a:long,b:decimal(4, 1)>"),
        ("n struct<`a b`:int,$c:struct<>>", "struct<`a b`:int,`$c`:struct<>>"),
        (Fields(n=UUID), "string"),
        (Fields(n=list[datetime]), "array<timestamp>"),
        (Fields(n=int), "long"),
        (Fields(n=float | None), "double"),
        (Fields(n=dict[str, list[int]]), "map<string,array<long>>"),
        (Fields(n=str | int), None),
        (Fields(n=Any), None),
        ("n", None),
    ],
)
def test_types_are_sparks_names(given: Any, kind: str | None) -> None:
    assert Fields.of(given).types["n"] == kind


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["a", "a"], "duplicate field 'a'"),
        ("a, b, a", "duplicate field 'a'"),
        ("a strin", "Did you mean 'string'"),
        ("a, , b", "a field has no name"),
        ("a array<strin>", "unknown type 'strin'"),
        ("a map<string>", "unknown type 'map<string>'"),
        ("a array<long,long>", "unknown type"),
        ("a struct<long>", "unknown type"),
        ("a array", "unknown type 'array'"),
        (7, "fields expected, found '7'"),
        ([7], "a field's name can't be"),
        (["a b"], "Fields.of"),
    ],
)
def test_what_is_no_fields_is_refused(given: Any, text: str) -> None:
    with pytest.raises(FieldError, match=text):
        Fields.of(given)


def test_a_type_that_fields_cannot_have_is_refused() -> None:
    with pytest.raises(FieldError, match="no field can have the type 'complex'"):
        Fields(a=complex)


def test_fields_concatenate_and_select() -> None:
    fields = Fields("a") + "b long"
    assert fields.names == ("a", "b")
    assert fields.select("b, a") == Fields.of("b long, a")
    with pytest.raises(FieldError, match="duplicate"):
        _ = fields + "a"
    with pytest.raises(FieldError, match=r"unknown field 'aa'; there are: a, b\. Did you mean 'a'"):
        fields.index("aa")


def test_fields_pickle_and_copy() -> None:
    fields = Fields.of("a string, b")
    assert pickle.loads(pickle.dumps(fields)) == fields == copy.deepcopy(fields)


def test_fields_are_values() -> None:
    assert len({Fields("a"), Fields("a"), Fields(a=str)}) == 2
    assert "a" in Fields("a")
    assert list(Fields("a", "b")) == ["a", "b"]
    assert len(Fields()) == 0
