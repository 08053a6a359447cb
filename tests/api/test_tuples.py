"""Tuples by position and by field; T1-T6 are the original's own vectors."""

from __future__ import annotations

import pickle

import pytest

from trident.errors import FieldError, ValueTypeError
from trident.tuples import tuple_type


def test_t1_values_by_position_and_by_field() -> None:
    t = tuple_type_of("a, b, c")([3, 2, 1])
    assert t.getValues() == (3, 2, 1)
    assert [t.getLongByField(name) for name in "abc"] == [3, 2, 1]


def test_t2_projections() -> None:
    fields = "a, b, c, d, e"
    assert tuple_type_of(fields)([3, 2, 1, 4, 5]).select("d, a") == (4, 3)
    assert tuple_type_of(fields)([9, 8, 7, 6, 10]).select("d, a") == (6, 9)


def test_t6_contains_index_and_select() -> None:
    t = tuple_type_of("a, b, c")([1, 2, 3])
    assert t.contains("a")
    assert not t.contains("abcd")
    assert t.fieldIndex("a") == 0
    assert t.select("c, a") == (3, 1)
    assert t.select("c, a")["a"] == 1


def test_a_tuple_is_a_python_tuple() -> None:
    t = tuple_type_of("a, b")([1, "x"])
    first, second = t
    assert (first, second) == t == (1, "x")
    assert hash(t) == hash((1, "x"))
    assert t[-1] == "x"
    assert t[0:1] == (1,)
    assert t.size() == len(t) == 2


def test_a_tuple_pickles_with_its_fields() -> None:
    t = pickle.loads(pickle.dumps(tuple_type_of("a, b")([1, "x"])))
    assert t["b"] == "x"
    assert t.getFields().names == ("a", "b")


def test_typed_access_checks_the_type() -> None:
    t = tuple_type_of("s, n, f, b, d, nothing")(["x", 1, 1.5, True, b"x", None])
    assert (t.getString(0), t.getLong(1), t.getInteger(1)) == ("x", 1, 1)
    assert (t.getDouble(2), t.getBoolean(3), t.getBinary(4)) == (1.5, True, b"x")
    assert t.getString(5) is None
    with pytest.raises(ValueTypeError, match="field 'b', read as int, .* found bool True"):
        t.getLong(3)
    with pytest.raises(ValueTypeError, match="field 'n'"):
        t.getStringByField("n")


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(FieldError, match="unknown field 'words'.*Did you mean 'word'"):
        tuple_type_of("word")(["x"])["words"]


def tuple_type_of(fields: str):  # type: ignore[no-untyped-def]
    from trident.tuples.fields import Fields

    return tuple_type(Fields.of(fields))


def test_whole_numbers_are_read_by_every_name_that_was_published() -> None:
    t = tuple_type_of("n")([7])
    for name in ("Byte", "Short", "Integer", "Long"):
        assert getattr(t, f"get{name}")(0) == getattr(t, f"get{name}ByField")("n") == 7
