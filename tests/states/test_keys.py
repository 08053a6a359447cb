"""Keys become bytes and come back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident.errors import CorruptStateError, SerializationError
from trident.states import CONTROL_KEY, decode_key, encode_key


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        (("dog",), b"dog"),
        (("",), b""),
        (("naïve",), "naïve".encode()),
        (("\0x",), b'\0["\\u0000x"]'),
        ((1,), b"\0[1]"),
        ((1.0,), b"\0[1.0]"),
        ((True,), b"\0[true]"),
        ((None,), b"\0[null]"),
        (("a", 1, None), b'\0["a",1,null]'),
        ((), b"\0[]"),
    ],
)
def test_a_key_is_stored_as_agreed_and_comes_back(key: tuple[Any, ...], encoded: bytes) -> None:
    assert encode_key(key) == encoded
    assert decode_key(encoded) == key


EIGHT = datetime(2026, 7, 1, 8, 0, 0, 5, UTC)


@pytest.mark.parametrize(
    ("field", "encoded"),
    [
        (date(2026, 1, 2), b'{"$date":"2026-01-02"}'),
        (EIGHT, b'{"$timestamp":"2026-07-01T08:00:00.000005Z"}'),
        (datetime(2026, 7, 1, 8), b'{"$timestamp_ntz":"2026-07-01T08:00:00.000000"}'),
        (Decimal("1.5"), b'{"$decimal":"1.5"}'),
        (Decimal("1200"), b'{"$decimal":"1200"}'),
        (b"a\xff", b'{"$binary":"Yf8="}'),
        (inf, b'{"$double":"Infinity"}'),
        (-inf, b'{"$double":"-Infinity"}'),
        ([1, None, "a"], b'[1,null,"a"]'),
        ([], b"[]"),
        ({"a": 1, "b": [b"x"]}, b'{"a":1,"b":[{"$binary":"eA=="}]}'),
        ({"$date": "x"}, b'{"$dict":{"$date":"x"}}'),
    ],
)
def test_a_field_of_another_type_says_what_it_is_and_comes_back(field: Any, encoded: bytes) -> None:
    for key in ((field,), ("a", field)):
        assert encode_key(key).endswith(encoded + b"]")
        [*_, found] = decode_key(encode_key(key))
        assert (type(found), found) == (type(field), field)


def test_no_number_has_one_key() -> None:
    assert encode_key((nan,)) == encode_key((-nan,)) == b'\0[{"$double":"NaN"}]'
    [found] = decode_key(encode_key((nan,)))
    assert found != found


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (-0.0, 0.0),
        ([-0.0], [0.0]),
        (Decimal("1.0"), Decimal("1.00")),
        (Decimal("1E+2"), Decimal(100)),
        (Decimal("-0.0"), Decimal(0)),
        (EIGHT, EIGHT.astimezone(BERLIN)),
        (EIGHT, EIGHT.astimezone(timezone(timedelta(hours=-3)))),
        (
            datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
            datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
        ),
        ({"a": 1, "b": 2.5}, {"b": 2.5, "a": 1}),
        (UUID(int=255), "00000000-0000-0000-0000-0000000000ff"),
    ],
)
def test_what_is_equal_is_one_key(one: Any, other: Any) -> None:
    assert encode_key((one,)) == encode_key((other,))
    assert encode_key((1, {"a": one})) == encode_key((1, {"a": other}))


def test_what_differs_in_type_or_moment_is_another_key() -> None:
    fields = [
        *(1, 1.0, True, "1", Decimal(1), b"1", [1], {"a": 1}, {"a": 1.0}, [[1]], None, [None]),
        *(date(2026, 7, 1), datetime(2026, 7, 1), datetime(2026, 7, 1, tzinfo=UTC), "2026-07-01"),
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN),
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        *({"$date": "2026-07-01"}, {"$dict": {"$date": "2026-07-01"}}, nan, "NaN"),
    ]
    assert len(set(map(encode_key, zip(fields)))) == len(fields)


YEARS = {"min_value": datetime(1900, 1, 1), "max_value": datetime(2100, 1, 1)}
FIELDS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary()
    | st.floats(allow_nan=False) | st.dates() | st.datetimes()
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5))]), **YEARS)
    | st.decimals(-(10**30), 10**30, allow_nan=False, places=5) | st.uuids().map(str),
    lambda inner: st.lists(inner)
    | st.dictionaries(st.sampled_from(["$date", "$dict", "$map", "a", ""]), inner),
    max_leaves=5,
)  # fmt: skip


@given(st.lists(FIELDS, min_size=1))
def test_every_key_comes_back_equal_and_is_encoded_alike_again(fields: list[Any]) -> None:
    found = decode_key(encode_key(fields))
    assert list(found) == fields
    assert encode_key(found) == encode_key(fields)


def test_no_key_is_the_control_key() -> None:
    assert encode_key((CONTROL_KEY.decode(),)) != CONTROL_KEY


@pytest.mark.parametrize(
    ("field", "named"),
    [
        (("a",), "tuple"),
        ([("a",)], "tuple"),
        (bytearray(b"x"), "bytearray"),
        ({"a"}, "set"),
        ({1: "a"}, "a map can't be a key"),
        (Decimal("NaN"), "the decimal NaN"),
        (Decimal("-Infinity"), "the decimal -Infinity"),
        (Decimal("1E+38"), "over 38 digits"),
        (Decimal("1E-39"), "over 38 digits"),
        (Decimal("1." + "1" * 77), "over 38 digits"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "no date in UTC"),
        (2**63, "64 bits"),
        ([2**63], "64 bits"),
        ("\ud800", "surrogates"),
    ],
)
def test_a_field_that_would_not_come_back_is_refused_by_name(field: Any, named: str) -> None:
    with pytest.raises(SerializationError, match=named):
        encode_key((field,))


@pytest.mark.parametrize("key", ["dog", b"dog"])
def test_a_text_is_not_taken_for_the_sequence_of_its_letters(key: Any) -> None:
    with pytest.raises(SerializationError, match="'dog' alone.*Give the sequence of its fields"):
        encode_key(key)


def test_a_field_that_holds_itself_is_refused() -> None:
    field: list[Any] = []
    field.append(field)
    with pytest.raises(SerializationError, match="key can't be stored"):
        encode_key((field,))


@pytest.mark.parametrize(
    "data", [b"\0[1", b"\0{}", b"\xff", b'\0[{"$later":1}]', b'\0[{"$date":5}]']
)
def test_bytes_that_are_no_key_are_an_error(data: bytes) -> None:
    with pytest.raises(CorruptStateError, match="key"):
        decode_key(data)
