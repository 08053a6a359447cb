"""Tuples as operations see them: values, by position and by field."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex, TypeVar

from trident.errors import ValueTypeError, described
from trident.tuples.fields import Fields, FieldsLike

V = TypeVar("V")


class TridentTuple(tuple[Any, ...]):
    """The values of one tuple; a Python tuple that knows its fields.

    It is made by `tuple_type`, compares and hashes as the plain tuple of its values, and pickles.
    ``t[0]`` is the first value, ``t["word"]`` that of a field.

    Examples
    --------
    >>> t = tuple_type(Fields("word", "n"))(["cat", 3])
    >>> t["n"], t[0], t.getString(0), t.getLongByField("n"), t.select("n, word"), t == ("cat", 3)
    (3, 'cat', 'cat', 3, (3, 'cat'), True)
    """

    __slots__ = ()
    _fields: ClassVar[Fields]

    def __getitem__(self, which: SupportsIndex | slice | str) -> Any:
        if isinstance(which, str):
            return tuple.__getitem__(self, self._fields.index(which))
        return tuple.__getitem__(self, which)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self._fields, tuple(self))

    def size(self) -> int:
        """The number of values."""
        return len(self)

    def contains(self, field: str) -> bool:
        """Whether there is a field of that name."""
        return field in self._fields

    def fieldIndex(self, field: str) -> int:
        """The position of a field."""
        return self._fields.index(field)

    def getFields(self) -> Fields:
        """The fields, in order."""
        return self._fields

    def getValues(self) -> tuple[Any, ...]:
        """The values as a plain tuple."""
        return tuple(self)

    def select(self, fields: FieldsLike) -> TridentTuple:
        """The tuple of these fields only, in the order asked for."""
        chosen = self._fields.select(fields)
        return tuple_type(chosen)([self[name] for name in chosen])

    def getValue(self, index: int) -> Any:
        """The value at a position."""
        return tuple.__getitem__(self, index)

    def getValueByField(self, field: str) -> Any:
        """The value of a field."""
        return self[field]

    def getString(self, index: int) -> str | None:
        """The string at a position, or None; another type raises `ValueTypeError`."""
        return self._typed(index, str)

    def getStringByField(self, field: str) -> str | None:
        """The string of a field, or None; another type raises `ValueTypeError`."""
        return self._typed(self._fields.index(field), str)

    def getLong(self, index: int) -> int | None:
        """The integer at a position, or None; another type raises `ValueTypeError`."""
        return self._typed(index, int)

    def getLongByField(self, field: str) -> int | None:
        """The integer of a field, or None; another type raises `ValueTypeError`."""
        return self._typed(self._fields.index(field), int)

    getInteger = getShort = getByte = getLong
    getIntegerByField = getShortByField = getByteByField = getLongByField

    def getDouble(self, index: int) -> float | None:
        """The float at a position, or None; another type raises `ValueTypeError`."""
        return self._typed(index, float)

    def getDoubleByField(self, field: str) -> float | None:
        """The float of a field, or None; another type raises `ValueTypeError`."""
        return self._typed(self._fields.index(field), float)

    getFloat = getDouble
    getFloatByField = getDoubleByField

    def getBoolean(self, index: int) -> bool | None:
        """The bool at a position, or None; another type raises `ValueTypeError`."""
        return self._typed(index, bool)

    def getBooleanByField(self, field: str) -> bool | None:
        """The bool of a field, or None; another type raises `ValueTypeError`."""
        return self._typed(self._fields.index(field), bool)

    def getBinary(self, index: int) -> bytes | None:
        """The bytes at a position, or None; another type raises `ValueTypeError`."""
        return self._typed(index, bytes)

    def getBinaryByField(self, field: str) -> bytes | None:
        """The bytes of a field, or None; another type raises `ValueTypeError`."""
        return self._typed(self._fields.index(field), bytes)

    def _typed(self, index: int, kind: type[V]) -> V | None:
        value = tuple.__getitem__(self, index)
        if value is None or type(value) is kind:
            return value
        where = f"field {self._fields.names[index]!r}, read as {kind.__name__},"
        raise ValueTypeError(where, f"a value of type {kind.__name__}", described(value))


@lru_cache(maxsize=1024)
def tuple_type(fields: Fields) -> type[TridentTuple]:
    """The class of the tuples with these fields; calling it costs what ``tuple(values)`` does."""
    return type("TridentTuple", (TridentTuple,), {"__slots__": (), "_fields": fields})


def _restored(fields: Fields, values: Sequence[Any]) -> TridentTuple:
    return tuple_type(fields)(values)
