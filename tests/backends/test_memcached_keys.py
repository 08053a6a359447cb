"""How keys are called in Memcached: every key has a name that it takes, and no two the same."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident.backends.memcached.keys import LONGEST, LONGEST_PREFIX, StoredKeys, quote_prefix
from trident.states.keys import CONTROL_KEY, encode_key
from trident.states.testing.checks import ODD_KEYS

TAKEN = re.compile(rb"[^\x00-\x20\x7f]{1,250}")
KEYS = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=100).map(str.encode),
    st.sampled_from([b"~", b"~#", b"~fg", b"k" * 250, b"k" * 251, b"\xff", b"a b", b""]),
)


@pytest.mark.parametrize("prefix", ["", "words", "word counts", "a:b", "größe", "~"])
def test_odd_keys_have_names_of_their_own(prefix: str) -> None:
    keys = [CONTROL_KEY, *map(encode_key, ODD_KEYS)]
    names = StoredKeys(prefix).of(keys)
    assert all(map(TAKEN.fullmatch, names))
    assert len(set(names)) == len(set(keys))


@given(st.lists(KEYS, unique=True, max_size=8), st.text(max_size=5))
def test_no_two_keys_share_a_name(keys: list[bytes], prefix: str) -> None:
    names = StoredKeys(prefix).of(keys)
    assert all(map(TAKEN.fullmatch, names))
    assert len(set(names)) == len(keys)


@given(st.lists(KEYS, max_size=8), st.text(max_size=5))
def test_a_name_does_not_depend_on_the_other_keys(keys: list[bytes], prefix: str) -> None:
    names = StoredKeys(prefix)
    assert names.of(keys) == [names.of([key])[0] for key in keys]


@given(KEYS, KEYS, st.text(min_size=1, max_size=5), st.text(min_size=1, max_size=5))
def test_no_two_states_share_a_name(one: bytes, other: bytes, first: str, second: str) -> None:
    if first != second:
        assert StoredKeys(first).of([one]) != StoredKeys(second).of([other])


@pytest.mark.parametrize("prefix", ["", "words"])
def test_a_key_of_250_bytes_with_its_prefix_is_stored_as_itself(prefix: str) -> None:
    front = f"{prefix}:".encode() if prefix else b""
    names = StoredKeys(prefix)
    longest = b"k" * (LONGEST - len(front))
    assert names.of([longest]) == [front + longest]
    [longer] = names.of([longest + b"k"])
    assert longer.startswith(front + b"~#")
    assert len(longer) <= LONGEST


def test_an_odd_key_is_base64_where_that_fits_and_else_a_hash() -> None:
    names = StoredKeys("")
    [fits, hashed] = names.of([b" " * 186, b" " * 187])
    assert fits.startswith(b"~ICAg")
    assert len(fits) == 249
    assert hashed.startswith(b"~#")


def test_characters_beyond_ascii_are_stored_as_they_are() -> None:
    assert StoredKeys("").of(["café".encode()]) == ["café".encode()]


def test_a_name_that_was_escaped_is_another_key() -> None:
    names = StoredKeys("words")
    [escaped] = names.of([b"hot dog"])
    [other] = names.of([escaped.removeprefix(b"words:")])
    assert other != escaped


def test_the_longest_prefix_leaves_room_for_every_key() -> None:
    names = StoredKeys("p" * LONGEST_PREFIX)
    assert all(map(TAKEN.fullmatch, names.of([b"k", b"k" * 1000, b" " * 1000, CONTROL_KEY])))


def test_a_prefix_is_percent_encoded() -> None:
    assert quote_prefix("größe 1:2%") == "gr%C3%B6%C3%9Fe%201%3A2%25"
