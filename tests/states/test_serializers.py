"""Values become bytes and come back."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trident.states import (
    CorruptStateError,
    JSONSerializer,
    OpaqueValue,
    PickleSerializer,
    SerializationError,
    Serializer,
    TransactionalValue,
)


class Word(str):
    pass


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int


def test_json_is_storms() -> None:
    json = JSONSerializer()
    assert json.dumps_plain([5]) == [b"5"]
    assert json.dumps_transactional([3], [7]) == [b"[3,7]"]
    assert json.dumps_opaque([3, 3], [0, 0], [7, "x"], [4, None]) == [b"[3,7,4]", b'[3,"x",null]']


def test_json_writes_an_attempt_only_where_it_is_not_the_first() -> None:
    assert JSONSerializer().dumps_opaque([3, 3], [0, 2], [7, 7], [4, 4]) == [
        b"[3,7,4]",
        b"[3,7,4,2]",
    ]


@pytest.mark.parametrize("serializer", [JSONSerializer(), PickleSerializer()])
def test_values_come_back_equal(serializer: Serializer) -> None:
    serializer = pickle.loads(pickle.dumps(serializer))
    values = [1, -(2**63), 2.5, "é\0", True, None, [1, {"a": [None]}], {}]
    count = len(values)
    assert serializer.loads_plain(serializer.dumps_plain(values)) == values
    written = serializer.dumps_transactional([7] * count, values)
    assert serializer.loads_transactional(written) == [TransactionalValue(7, v) for v in values]
    written = serializer.dumps_opaque([7] * count, [0, 1] * (count // 2), values, values[::-1])
    assert list(serializer.loads_opaque([*written, None])) == [
        *map(OpaqueValue, [7] * count, [0, 1] * (count // 2), values, values[::-1]),
        None,
    ]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "inf"),
        (datetime(2020, 1, 1), "datetime"),
        (UUID(int=1), "UUID"),
        ((1, 2), "tuple"),
        ({1}, "set"),
        (b"x", "bytes"),
        (2**64, "64-bit"),
        ({1: 2}, "key of type int"),
        (Word("x"), "Word"),
        (Colour.RED, "Colour"),
        (Level.LOW, "Level"),
        (Point(1), "Point"),
        ("\ud800", "surrogates"),
    ],
)
@pytest.mark.parametrize("nest", [lambda v: v, lambda v: [v], lambda v: {"a": [v]}])
def test_json_refuses_by_name_what_it_would_change(value: Any, named: str, nest: Any) -> None:
    with pytest.raises(SerializationError, match=named):
        JSONSerializer().dumps_opaque([1], [0], [nest(value)], [None])


def test_json_refuses_a_value_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(SerializationError, match="nested"):
        JSONSerializer().dumps_plain([value])


@pytest.mark.parametrize("data", [b"", b"[3,7", b"5", b"[3,7]", b"[null,3,null]", b"[3,7,4,2,1]"])
def test_bytes_that_are_no_opaque_value_are_an_error_with_their_position(data: bytes) -> None:
    with pytest.raises(CorruptStateError, match="position 1 of 2"):
        JSONSerializer().loads_opaque([None, data])


def test_bytes_that_do_not_unpickle_are_an_error() -> None:
    with pytest.raises(CorruptStateError, match="position 0 of 1"):
        PickleSerializer().loads_plain([b"nonsense"])


def test_what_does_not_pickle_is_an_error() -> None:
    with pytest.raises(SerializationError):
        PickleSerializer().dumps_plain([lambda: None])


def test_opaque_values_of_all_forms_are_read_together() -> None:
    found = JSONSerializer().loads_opaque([b"[3,7,4]", None, b"[4,null,1,2]", b"[5,[1],{}]"])
    assert list(found) == [
        OpaqueValue(3, 0, 7, 4),
        None,
        OpaqueValue(4, 2, None, 1),
        OpaqueValue(5, 0, [1], {}),
    ]
    assert found[1:3][1] == OpaqueValue(4, 2, None, 1)


@pytest.mark.parametrize("wrong", [b"", b"7", b"[7]", b'"abc"', b"[1.5,2,3]", b"[1,2],[3,4]"])
def test_an_opaque_value_that_cannot_be_read_is_named(wrong: bytes) -> None:
    with pytest.raises(CorruptStateError, match="value at position 2 of 4"):
        JSONSerializer().loads_opaque([b"[3,7,4]", None, wrong, b"[3,7,4]"])


def one_by_one(data: list[bytes | None]) -> list[OpaqueValue | None] | None:
    """What each entry is by itself; None where any of them is none."""
    try:
        return [found for item in data for found in JSONSerializer().loads_opaque([item])]
    except CorruptStateError:
        return None


_JSON = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.text("a,[]{}\"", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("a"), inner),
    max_leaves=4,
)


@given(
    rows=st.lists(st.tuples(st.integers(1, 9), _JSON, _JSON), min_size=1, max_size=5),
    absent=st.booleans(),
    data=st.data(),
)
@example(rows=[(1, 2, 3)] * 3, absent=False, data=None).via("two entries in one, and one in two")
def test_entries_that_parse_only_when_joined_are_refused(
    rows: list[tuple[Any, ...]], absent: bool, data: Any
) -> None:
    joined = b",".join(map(orjson.dumps, rows))
    commas = [place for place, byte in enumerate(joined) if byte == ord(",")]
    if data is None:
        cuts = {commas[-1], commas[-3]}
    else:
        cuts = data.draw(st.sets(st.sampled_from(commas), max_size=len(rows)))
    ends = [-1, *sorted(cuts), len(joined)]
    cut: list[bytes | None] = [joined[start + 1 : end] for start, end in pairwise(ends)]
    cut += [None] * absent
    expected = one_by_one(cut)
    if expected is None:
        with pytest.raises(CorruptStateError, match=f"of {len(cut)} can't be read"):
            JSONSerializer().loads_opaque(cut)
    else:
        assert list(JSONSerializer().loads_opaque(cut)) == expected


def test_numbers_are_read_together_as_each_by_itself() -> None:
    found = JSONSerializer().loads_opaque([b"[3,7,4]", None, b"[4,null,-1.5]", b"[5,1e3,null]"])
    assert list(found) == [
        OpaqueValue(3, 0, 7, 4),
        None,
        OpaqueValue(4, 0, None, -1.5),
        OpaqueValue(5, 0, 1000.0, None),
    ]
    retried = JSONSerializer().loads_opaque([b"[3,7,4]", b"[4,5,6,2]"])
    assert list(retried) == [OpaqueValue(3, 0, 7, 4), OpaqueValue(4, 2, 5, 6)]


@pytest.mark.parametrize(
    "wrong",
    [
        [b"[2,3]", b"[4,5,6,7]"],
        [b"[2]", b"[3,true,4,5,6]"],
        [b"[2]", b"[3,false,4,5,6]"],
        [b"[2", b"3,4]", b"[5,6,7],[8,9,1]"],
        [b"[2,3,4]]", b"[[5,6,7]"],
        [b"[2,3,4]\n[5,6,7]", b""],
        [b'[2,3,"]', b'[",4]'],
        [b"[2.0,3,4]"],
        [b"[null,3,4]"],
    ],
)
def test_numbers_that_parse_only_together_are_refused(wrong: list[bytes]) -> None:
    with pytest.raises(CorruptStateError, match="can't be read"):
        JSONSerializer().loads_opaque([b"[1,2,3]", *wrong, b"[1,2,3]"])


EDGES = [0, -1, 2**63 - 1, -(2**63), 10**18, -(10**17)]


def test_numbers_are_written_as_others_write_them() -> None:
    json, count = JSONSerializer(), len(EDGES)
    for others in (EDGES[::-1], [None] * count, [*EDGES[:3], None, None, None]):
        written = json.dumps_opaque([7] * count, [0] * count, EDGES, others)
        rows = zip(EDGES, others, strict=True)
        assert written == [orjson.dumps([7, curr, prev]) for curr, prev in rows]
    assert json.dumps_plain(EDGES) == list(map(orjson.dumps, EDGES))
    assert json.dumps_transactional([7] * count, EDGES) == [orjson.dumps([7, n]) for n in EDGES]


@pytest.mark.parametrize("long", [2**64, -(2**63) - 1])
def test_numbers_over_64_bits_are_refused_beside_short_ones(long: int) -> None:
    json = JSONSerializer()
    for prevs in ([1, 2], [None, 2]):
        with pytest.raises(SerializationError):
            json.dumps_opaque([7, 7], [0, 0], [long, 1], prevs)
    with pytest.raises(SerializationError):
        json.dumps_plain([1, long])
    with pytest.raises(SerializationError):
        json.dumps_transactional([7, 7], [1, long])
