"""Columns become of their declared types, or say which value is none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident.errors import EmittedValueError
from trident.tuples.value_types import can_be_key, conform, fits, value_sort

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
LATER = timezone(timedelta(hours=2))


class Day(date):
    pass


class Moment(datetime):
    pass


class Row(tuple[Any, ...]):
    """Tells its fields as Spark's rows do."""

    def asDict(self) -> dict[str, Any]:
        return {"b": self[0], "a": self[1]}


class Pair(NamedTuple):
    b: Any
    a: Any


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("double", [1, Fraction(1, 2), None], [1.0, 0.5, None]),
        ("float", [0.5, 0.1, 1e40], [0.5, 0.10000000149011612, float("inf")]),
        ("binary", [bytearray(b"a"), memoryview(b"b")], [b"a", b"b"]),
        ("date", [Day(2026, 1, 2)], [date(2026, 1, 2)]),
        ("timestamp", [NOON.astimezone(LATER), NOON], [NOON, NOON]),
        ("timestamp", [Moment(2026, 7, 1, 14, tzinfo=LATER)], [NOON]),
        ("timestamp_ntz", [datetime(2026, 7, 1, fold=1)], [datetime(2026, 7, 1)]),
        ("array<double>", [[1], (2, None), [], None], [[1.0], [2.0, None], [], None]),
        ("array<array<int>>", [[[1], None], [()]], [[[1], None], [[]]]),
        ("map<string,double>", [{"a": 1}, {}, None], [{"a": 1.0}, {}, None]),
        ("map<date,long>", [{Day(2026, 1, 2): 1}], [{date(2026, 1, 2): 1}]),
        ("struct<a:double,b:long>", [{"b": 1, "a": 2}], [{"a": 2.0, "b": 1}]),
        ("struct<a:double,b:long>", [{}, {"a": 1.0}], [dict.fromkeys("ab"), {"a": 1.0, "b": None}]),
        ("struct<a:double,b:long>", [Pair(1, 2), (2, 1), None], [{"a": 2.0, "b": 1}] * 2 + [None]),
        ("struct<a:double,b:long>", [Row((1, 2))], [{"a": 2.0, "b": 1}]),
        ("struct<>", [{}, None], [{}, None]),
    ],
)  # fmt: skip
def test_what_differs_in_form_only_is_converted(
    kind: str, given: Sequence[Any], expected: Sequence[Any]
) -> None:
    assert repr(conform("f", "x", kind, given)) == repr(expected)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("timestamp", [NOON, None]),
        ("timestamp_ntz", [datetime(2026, 7, 1), None]),
        ("array<timestamp>", [[NOON, None], [], None]),
        ("map<string,array<long>>", [{"a": [1], "b": None}, {}, None]),
        ("struct<a:double,b:struct<c:binary>>", [{"a": 1.0, "b": {"c": b""}}, None]),
    ],
)
def test_a_column_that_has_its_form_is_handed_on_itself(kind: str, values: Sequence[Any]) -> None:
    assert conform("f", "x", kind, values) is values


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("timestamp", datetime(2026, 7, 1)),
        ("timestamp", datetime.min.replace(tzinfo=LATER)),
        ("timestamp_ntz", NOON),
        ("date", NOON),
        ("string", b"a"),
        ("binary", "a"),
        ("double", 10**400),
        ("array<long>", [1, "a"]),
        ("array<long>", "1"),
        ("array<long>", {1}),
        ("array<byte>", [128]),
        ("map<string,long>", {1: 1}),
        ("map<string,long>", {None: 1}),
        ("map<string,long>", [("a", 1)]),
        ("struct<a:long,b:long>", {"a": 1, "c": 1}),
        ("struct<a:long,b:long>", (1,)),
        ("struct<a:long,b:long>", [1, 2]),
        ("struct<a:array<timestamp>>", {"a": [NOON, datetime(2026, 7, 1)]}),
    ],
)
def test_a_value_that_is_none_of_the_type_is_named(kind: str, wrong: Any) -> None:
    assert fits(kind, None)
    assert not fits(kind, wrong)
    with pytest.raises(EmittedValueError) as caught:
        conform("f", "x", kind, [None, wrong])
    assert f"for the field 'x', which is declared {kind}: " in str(caught.value)
    assert type(wrong).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("array<long>", "array<int>", True),
        ("array<long>", "array<double>", False),
        ("struct<a:long,b:decimal(4,1)>", "struct<b:decimal(9,2),a:short>", True),
        ("struct<a:long>", "struct<b:long>", False),
        ("timestamp", "timestamp_ntz", False),
        ("date", "timestamp_ntz", False),
    ],
)
def test_keys_are_of_one_sort_where_equal_values_are_encoded_alike(
    one: str, other: str, same: bool
) -> None:
    assert (value_sort(one) == value_sort(other)) is same


def test_only_a_map_can_be_no_key() -> None:
    assert can_be_key("struct<a:array<decimal(4,1)>>")
    assert not can_be_key("struct<a:array<map<string,long>>>")


@pytest.mark.parametrize(
    ("kind", "wrong", "advice"),
    [
        ("timestamp", NOON.replace(tzinfo=None), "give it its time zone, as datetime.now.UTC"),
        ("timestamp_ntz", NOON, "leave out its time zone"),
    ],
)
def test_the_error_for_a_moment_speaks_of_the_time_zone(
    kind: str, wrong: datetime, advice: str
) -> None:
    with pytest.raises(EmittedValueError, match=advice):
        conform("f", "at", kind, [wrong])


@given(st.lists(st.none() | st.decimals(places=1) | st.decimals(-150, 150, places=1)))
def test_decimals_that_have_their_digits_are_left_as_they_are(values: list[Decimal | None]) -> None:
    kept = [value for value in values if fits("decimal(3,1)", value)]
    right = conform("f", "x", "decimal(3,1)", kept)
    assert list(map(repr, right)) == [repr(None if v is None else v or abs(v)) for v in kept]
    assert all(v is None or abs(v) < 100 for v in kept)
    plain = [v for v in kept if v is None or v or not v.is_signed()]
    assert conform("f", "x", "decimal(3,1)", plain) is plain
