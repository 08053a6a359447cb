"""Keys become bytes and come back."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from trident.states import (
    CONTROL_KEY,
    CorruptStateError,
    SerializationError,
    decode_key,
    encode_key,
)


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


def test_both_zeros_are_one_key() -> None:
    assert encode_key((-0.0,)) == encode_key((0.0,))


def test_no_key_is_the_control_key() -> None:
    assert encode_key((CONTROL_KEY.decode(),)) != CONTROL_KEY


@pytest.mark.parametrize(
    ("field", "named"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (b"x", "bytes"),
        (date(2020, 1, 1), "datetime.date"),
        (("a",), "tuple"),
        (2**63, "64 bits"),
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


@pytest.mark.parametrize("data", [b"\0[1", b"\0{}", b"\xff"])
def test_bytes_that_are_no_key_are_an_error(data: bytes) -> None:
    with pytest.raises(CorruptStateError, match="key"):
        decode_key(data)
