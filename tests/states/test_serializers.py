"""Values become bytes and come back."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trident.errors import CorruptStateError, SerializationError
from trident.states import (
    JSONSerializer,
    OpaqueValue,
    PickleSerializer,
    Serializer,
    TransactionalValue,
)
from trident.states.kinds.opaque import OPAQUE, OpaqueEntries
from trident.states.kinds.transactional import TRANSACTIONAL
from trident.states.serializers import dump_all, load_all
from trident.states.typed_json import _READ


class Word(str):
    pass


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int


def dumps_plain(serializer: Serializer, values: Sequence[Any]) -> list[bytes]:
    return dump_all(serializer, values)


def loads_plain(serializer: Serializer, data: Sequence[bytes | None]) -> list[Any]:
    return load_all(serializer, data)


def dumps_transactional(
    serializer: Serializer, txids: Sequence[int], values: Sequence[Any]
) -> list[bytes]:
    entries = list(map(TransactionalValue, txids, values))
    return TRANSACTIONAL.dumps(entries, serializer)


def loads_transactional(serializer: Serializer, data: Sequence[bytes | None]) -> Sequence[Any]:
    return TRANSACTIONAL.loads(data, serializer)


def dumps_opaque(serializer: Serializer, *columns: Sequence[Any]) -> list[bytes]:
    return OPAQUE.dumps(OpaqueEntries(*columns), serializer)


def loads_opaque(serializer: Serializer, data: Sequence[bytes | None]) -> Sequence[Any]:
    return OPAQUE.loads(data, serializer)


class Slow(JSONSerializer):
    """JSON of a subclass, a value at a time."""


@pytest.mark.parametrize("value", [0, -(2**63), 1.5, "x", None, [1, None], {"a": [b"b"]}, b""])
@pytest.mark.parametrize("attempt", [0, 2])
def test_values_one_by_one_are_the_bytes_that_many_at_once_are(value: Any, attempt: int) -> None:
    one, many = Slow(), JSONSerializer()
    columns = [3, 3], [attempt, 0], [value, 5], [None, value]
    assert dumps_opaque(one, *columns) == (written := dumps_opaque(many, *columns))
    assert list(loads_opaque(one, written)) == list(loads_opaque(many, written))
    assert dumps_transactional(one, [3], [value]) == dumps_transactional(many, [3], [value])
    assert dumps_plain(one, [value]) == dumps_plain(many, [value]) == [many.serialize(value)]


def test_opaque_values_that_were_pickled_by_columns_are_read() -> None:
    data: list[bytes | None] = [pickle.dumps((3, 2, [7], None)), None, pickle.dumps((4, 0, 5, 6))]
    found = loads_opaque(PickleSerializer(), data)
    assert list(found) == [OpaqueValue(3, 2, [7], None), None, OpaqueValue(4, 0, 5, 6)]


def test_json_is_storms() -> None:
    json = JSONSerializer()
    assert dumps_plain(json, [5]) == [b"5"]
    assert dumps_transactional(json, [3], [7]) == [b"[3,7]"]
    assert dumps_opaque(json, [3, 3], [0, 0], [7, "x"], [4, None]) == [b"[3,7,4]", b'[3,"x",null]']


def test_json_writes_an_attempt_only_where_it_is_not_the_first() -> None:
    assert dumps_opaque(JSONSerializer(), [3, 3], [0, 2], [7, 7], [4, 4]) == [
        b"[3,7,4]",
        b"[3,7,4,2]",
    ]


@pytest.mark.parametrize("serializer", [JSONSerializer(), PickleSerializer()])
def test_values_come_back_equal(serializer: Serializer) -> None:
    serializer = pickle.loads(pickle.dumps(serializer))
    values = [1, -(2**63), 2.5, "é\0", True, None, [1, {"a": [None]}], {}]
    count = len(values)
    assert loads_plain(serializer, dumps_plain(serializer, values)) == values
    written = dumps_transactional(serializer, [7] * count, values)
    assert loads_transactional(serializer, written) == [TransactionalValue(7, v) for v in values]
    written = dumps_opaque(serializer, [7] * count, [0, 1] * (count // 2), values, values[::-1])
    assert list(loads_opaque(serializer, [*written, None])) == [
        *map(OpaqueValue, [7] * count, [0, 1] * (count // 2), values, values[::-1]),
        None,
    ]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({1}, "set"),
        (bytearray(b"x"), "bytearray"),
        (Decimal("NaN"), "the decimal NaN"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "no date in UTC"),
        (2**64, "64-bit"),
        ({(1,): 2}, "key of type tuple"),
        ({nan: 2}, "key of type float"),
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
        dumps_opaque(JSONSerializer(), [1], [0], [nest(value)], [None])


MOMENT = datetime(2026, 7, 1, 8, 0, 0, 5, UTC)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (date(2026, 1, 2), '{"$date":"2026-01-02"}'),
        (MOMENT, '{"$timestamp":"2026-07-01T08:00:00.000005Z"}'),
        (datetime(2026, 7, 1, 8), '{"$timestamp_ntz":"2026-07-01T08:00:00.000000"}'),
        (Decimal("-1.50"), '{"$decimal":"-1.50"}'),
        (Decimal("1E+100"), '{"$decimal":"1E+100"}'),
        (b"a\xff", '{"$binary":"Yf8="}'),
        (UUID(int=1), '{"$uuid":"00000000-0000-0000-0000-000000000001"}'),
        (inf, '{"$double":"Infinity"}'),
        (-inf, '{"$double":"-Infinity"}'),
        ((1, (2.5,)), '{"$tuple":[1,{"$tuple":[2.5]}]}'),
        ({1: b"", None: "a"}, '{"$map":[[1,{"$binary":""}],[null,"a"]]}'),
        ({date(2026, 1, 2): 1}, '{"$map":[[{"$date":"2026-01-02"},1]]}'),
        ({"a": b"x", "$b": 1}, '{"a":{"$binary":"eA=="},"$b":1}'),
        ({"$b": b"x"}, '{"$dict":{"$b":{"$binary":"eA=="}}}'),
    ],
)
def test_json_says_of_what_type_a_value_is_that_it_has_no_form_for(
    value: Any, written: str
) -> None:
    json = JSONSerializer()
    assert dumps_plain(json, [value]) == [b" " + written.encode()]
    opaque = dumps_opaque(json, [3, 3, 3], [0, 1, 0], [value, None, 1], [None, value, 2])
    assert opaque == [
        f" [3,{written},null]".encode(),
        f" [3,null,{written},1]".encode(),
        b"[3,1,2]",
    ]
    both = dumps_transactional(json, [3, 4], [value, [value]])
    found = [
        *loads_plain(json, dumps_plain(json, [value])),
        *[each and each.curr for each in loads_opaque(json, [opaque[2], opaque[0]])][1:],
        *[each and each.prev for each in loads_opaque(json, [opaque[1], None])][:1],
        *[each and each.value for each in loads_transactional(json, both)][:1],
    ]
    assert found == [value] * 4
    assert {type(each) for each in found} == {type(value)}


def test_json_keeps_what_is_no_number() -> None:
    json = JSONSerializer()
    [found] = loads_plain(json, dumps_plain(json, [[nan, -0.0]]))
    assert str(found) == "[nan, -0.0]"


LIKE_TAGS = [
    {"$date": "2026-01-02"},
    {"$dict": {"$date": "2026-01-02"}},
    {"$date": 5},
    {"$later": None},
    {"$map": [[1, 2]]},
    {"$": []},
    [{"a": {"$decimal": "1"}}],
]


@pytest.mark.parametrize("value", LIKE_TAGS)
def test_a_dict_that_looks_like_a_tag_stays_a_dict(value: Any) -> None:
    json = JSONSerializer()
    written = dumps_plain(json, [value])
    assert written == [orjson.dumps(value)]  # as ever
    for beside in (1, b"x"):
        [found] = loads_opaque(json, dumps_opaque(json, [3], [0], [value], [beside]))
        assert found == OpaqueValue(3, 0, value, beside)
        [nested] = loads_plain(json, dumps_plain(json, [[{"$date": value}, beside]]))
        assert nested == [{"$date": value}, beside]


def test_what_earlier_versions_wrote_has_no_tags() -> None:
    written = [b'[3,{"$date":"2026-01-02"},{"$later":1}]', b"[3,1,2]"]
    found = list(loads_opaque(JSONSerializer(), written))
    assert found[0] == OpaqueValue(3, 0, {"$date": "2026-01-02"}, {"$later": 1})


MOMENTS = st.datetimes(timezones=st.sampled_from([None, UTC])).map(lambda at: at.replace(fold=0))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)
    | st.text() | st.binary() | st.dates() | MOMENTS
    | st.decimals(allow_nan=False, allow_infinity=False) | st.uuids(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple)
    | st.dictionaries(st.sampled_from(["$date", "$dict", "$tuple", "$map", "a", ""]), inner)
    | st.dictionaries(st.integers(0, 9) | st.text(max_size=1) | st.dates(), inner),
    max_leaves=8,
)  # fmt: skip


@given(st.lists(VALUES, min_size=1), st.lists(VALUES, min_size=1), st.integers(0, 1))
def test_all_values_come_back_equal_and_of_their_types(
    currs: list[Any], prevs: list[Any], attempt: int
) -> None:
    json, count = JSONSerializer(), min(len(currs), len(prevs))
    entries = [OpaqueValue(7, attempt, *pair) for pair in zip(currs, prevs, strict=False)]
    written = dumps_opaque(json, [7] * count, [attempt] * count, currs[:count], prevs[:count])
    found = list(loads_opaque(json, written))
    assert found == entries
    assert repr(found) == repr(entries)


@pytest.mark.parametrize("data", [b' {"$later":1}', b' {"$date":"soon"}', b' {"$decimal":[]}'])
def test_a_tag_that_is_unknown_or_damaged_is_an_error(data: bytes) -> None:
    with pytest.raises(CorruptStateError, match="position 1 of 2"):
        loads_plain(JSONSerializer(), [None, data])


def test_json_refuses_a_value_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(SerializationError, match="nested"):
        dumps_plain(JSONSerializer(), [value])


@pytest.mark.parametrize("data", [b"", b"[3,7", b"5", b"[3,7]", b"[null,3,null]", b"[3,7,4,2,1]"])
def test_bytes_that_are_no_opaque_value_are_an_error_with_their_position(data: bytes) -> None:
    with pytest.raises(CorruptStateError, match="position 1 of 2"):
        loads_opaque(JSONSerializer(), [None, data])


def test_bytes_that_do_not_unpickle_are_an_error() -> None:
    with pytest.raises(CorruptStateError, match="position 0 of 1"):
        loads_plain(PickleSerializer(), [b"nonsense"])


def test_what_does_not_pickle_is_an_error() -> None:
    with pytest.raises(SerializationError):
        dumps_plain(PickleSerializer(), [lambda: None])


def test_opaque_values_of_all_forms_are_read_together() -> None:
    found = loads_opaque(JSONSerializer(), [b"[3,7,4]", None, b"[4,null,1,2]", b"[5,[1],{}]"])
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
        loads_opaque(JSONSerializer(), [b"[3,7,4]", None, wrong, b"[3,7,4]"])


def one_by_one(data: list[bytes | None]) -> list[OpaqueValue | None] | None:
    """What each entry is by itself; None where any of them is none."""
    try:
        return [found for item in data for found in loads_opaque(JSONSerializer(), [item])]
    except CorruptStateError:
        return None


_JSON = st.recursive(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.text('a,[]{}"', max_size=3),
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
            loads_opaque(JSONSerializer(), cut)
    else:
        assert list(loads_opaque(JSONSerializer(), cut)) == expected


def test_numbers_are_read_together_as_each_by_itself() -> None:
    found = loads_opaque(JSONSerializer(), [b"[3,7,4]", None, b"[4,null,-1.5]", b"[5,1e3,null]"])
    assert list(found) == [
        OpaqueValue(3, 0, 7, 4),
        None,
        OpaqueValue(4, 0, None, -1.5),
        OpaqueValue(5, 0, 1000.0, None),
    ]
    retried = loads_opaque(JSONSerializer(), [b"[3,7,4]", b"[4,5,6,2]"])
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
        loads_opaque(JSONSerializer(), [b"[1,2,3]", *wrong, b"[1,2,3]"])


EDGES = [0, -1, 2**63 - 1, -(2**63), 10**18, -(10**17)]


def test_numbers_are_written_as_others_write_them() -> None:
    json, count = JSONSerializer(), len(EDGES)
    for others in (EDGES[::-1], [None] * count, [*EDGES[:3], None, None, None]):
        written = dumps_opaque(json, [7] * count, [0] * count, EDGES, others)
        rows = zip(EDGES, others, strict=True)
        assert written == [orjson.dumps([7, curr, prev]) for curr, prev in rows]
    assert dumps_plain(json, EDGES) == list(map(orjson.dumps, EDGES))
    assert dumps_transactional(json, [7] * count, EDGES) == [orjson.dumps([7, n]) for n in EDGES]


@pytest.mark.parametrize("long", [2**64, -(2**63) - 1])
def test_numbers_over_64_bits_are_refused_beside_short_ones(long: int) -> None:
    json = JSONSerializer()
    for prevs in ([1, 2], [None, 2]):
        with pytest.raises(SerializationError):
            dumps_opaque(json, [7, 7], [0, 0], [long, 1], prevs)
    with pytest.raises(SerializationError):
        dumps_plain(json, [1, long])
    with pytest.raises(SerializationError):
        dumps_transactional(json, [7, 7], [1, long])


def test_every_tag_is_in_the_table_of_the_documentation_and_means_what_that_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "types.md").read_text()
    rows = re.findall(r"^\| `({\"(\$\w+)\":.*?})`.*\| .*?`(\w+)`", page, re.MULTILINE)
    assert {tag for _, tag, _ in rows} == {*_READ}
    for written, _, kind in rows:
        if "…" not in written:
            [value] = loads_plain(JSONSerializer(), [f" {written}".encode()])
            assert type(value).__name__ == kind
            assert dumps_plain(JSONSerializer(), [value]) == [f" {written}".encode()]


def test_a_serializer_that_raises_stop_iteration_loses_no_values() -> None:
    class Known(PickleSerializer):
        def serialize(self, value: Any) -> bytes:
            return next(b"%d" % each for each in (1, 2) if each == value)

    with pytest.raises(SerializationError, match="a StopIteration of its serializer"):
        dump_all(Known(), [1, 9, 2])
