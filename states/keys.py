"""Encodes the fields of a key as the bytes under which it is stored, and decodes them."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Context, Decimal, Inexact
from math import nan
from typing import Any
from uuid import UUID

import orjson

from trident.states.errors import CorruptStateError, SerializationError
from trident.states.typed_json import tagged, untagged, utc

CONTROL_KEY = b"\0trident.control"
"""The key of a store's control record; no user's key encodes to it."""

_MARK = b"\0"
_ALLOWED = (
    "A key's fields are str, int of 64 bits, float, bool, None, bytes, date, datetime, Decimal of "
    "38 digits, UUID, and lists and dicts (with str names) of them, which are arrays and structs; "
    "convert others first, for example to text."
)
_DIGITS = 38


def encode_key(key: Sequence[Any]) -> bytes:
    r"""Return the bytes by which a key is stored and compared.

    A key of one string is that string in UTF-8. Every other key, and a string that starts with
    U+0000, is U+0000 and the fields as compact JSON, with tags for values that JSON has no form
    for (see `trident.states.typed_json`). So 1, True, 1.0 and Decimal(1) are four keys.

    Equal fields have one encoding: -0.0 is 0.0, every NaN is the same, a decimal has no zeros at
    its end, a moment is in UTC, a struct's names are in the order of the alphabet, and a UUID is
    its text.

    Parameters
    ----------
    key : sequence
        The key's fields: str, int of 64 bits, float, bool, None, bytes, date, datetime (with a zone
        or without), Decimal of up to 38 digits before and after the point, UUID, and lists and
        dicts with str names, which are arrays and structs.

    Raises
    ------
    SerializationError
        When a field has another type, or a number too many digits.

    Examples
    --------
    >>> encode_key(("dog",)), encode_key(("dog", 2)), encode_key((1,))
    (b'dog', b'\x00["dog",2]', b'\x00[1]')
    >>> encode_key((Decimal("1.50"),)), encode_key((date(2026, 1, 2), [True]))
    (b'\x00[{"$decimal":"1.5"}]', b'\x00[{"$date":"2026-01-02"},[true]]')
    """
    if len(key) == 1:
        field = key[0]
        if type(field) is str and not field.startswith("\0"):
            try:
                return field.encode()
            except UnicodeEncodeError as error:
                raise _refused(f"text with {error.reason}", key) from error
        if type(field) is UUID:
            return str(field).encode()
    return _MARK + _json(key)


def encode_keys(keys: Iterable[Sequence[Any]]) -> list[bytes]:
    """Return the bytes of several keys, in their order.

    Examples
    --------
    >>> encode_keys([("cat",), ("dog",)])
    [b'cat', b'dog']
    """
    return list(map(encode_key, keys))


def one_of_equals(value: Any) -> Any:
    """Return a key's field as the stream goes on with it: one value for all equal ones.

    Gives 0.0 for -0.0, one NaN for all, and a moment in UTC. Other values don't change: a decimal
    keeps its zeros.

    Examples
    --------
    >>> one_of_equals([-0.0, Decimal("1.50")])
    [0.0, Decimal('1.50')]
    """
    kind = type(value)
    if kind is float:
        return value + 0.0 if value == value else nan
    if kind is datetime and value.tzinfo is not None:
        return utc(value)
    if kind is list:
        return list(map(one_of_equals, value))
    if kind is dict:
        return {name: one_of_equals(item) for name, item in value.items()}
    return value


def decode_key(data: bytes) -> tuple[Any, ...]:
    r"""Return the fields of the key that `data` encodes.

    Raises
    ------
    CorruptStateError
        When `data` is not an encoded key.

    Examples
    --------
    >>> decode_key(b"dog"), decode_key(b'\x00["dog",2]')
    (('dog',), ('dog', 2))
    """
    try:
        if not data.startswith(_MARK):
            return (data.decode(),)
        fields = orjson.loads(data[1:])
        if not isinstance(fields, list):
            raise ValueError("not a list of fields")
        if not _NESTED.isdisjoint(map(type, fields)):
            fields = untagged(fields)
    except ValueError as error:
        raise CorruptStateError("a key", f"{data[:80]!r} ({error})") from error
    return tuple(fields)


def _json(key: Sequence[Any]) -> bytes:
    if isinstance(key, str | bytes):
        raise SerializationError(
            "key", f"{key!r:.80} alone", f"Give the sequence of its fields: ({key!r:.80},)."
        )
    try:
        return orjson.dumps([_comparable(field) for field in key])
    except (TypeError, RecursionError) as error:
        raise _refused(str(error), key) from error


def _refused(found: str, key: Sequence[Any]) -> SerializationError:
    return SerializationError("key", f"{found}, in {reprlib.repr(tuple(key))}", _ALLOWED)


_PLAIN = frozenset({str, bool, type(None)})
_NESTED = frozenset({list, dict})


def _comparable(field: Any) -> Any:
    """Return the JSON of a field, the same for all equal ones."""
    kind = type(field)
    if kind is int and not -(2**63) <= field < 2**63:
        raise TypeError(f"the int {field}, which has over 64 bits")
    return field if kind in _PLAIN or kind is int else tagged(_canonical(field))


def _canonical(field: Any) -> Any:
    kind = type(field)
    if kind in _PLAIN or kind is date or kind is bytes:
        return field
    if kind is int:
        return _comparable(field)
    if kind is float or kind is datetime:
        return one_of_equals(field)
    if kind is Decimal:
        return _shortest(field)
    if kind is UUID:
        return str(field)
    if kind is list:
        return list(map(_canonical, field))
    if kind is dict and set(map(type, field)) <= {str}:
        return {name: _canonical(field[name]) for name in sorted(field)}
    if kind is dict:
        raise TypeError("a dict with names that are no text: a map can't be a key")
    raise TypeError(f"a {kind.__module__}.{kind.__qualname__}")


def _shortest(number: Decimal) -> Decimal:
    """Return an equal decimal without zeros at its end."""
    if not number.is_finite():
        raise TypeError(f"the decimal {number}")
    try:
        short = number.normalize(_EXACT)
    except Inexact as error:
        raise TypeError(f"the decimal {number:.60}, which has over {_DIGITS} digits") from error
    exponent = short.as_tuple().exponent
    assert isinstance(exponent, int)
    if short.adjusted() >= _DIGITS or exponent < -_DIGITS:
        raise TypeError(f"the decimal {number!s:.60}, which has over {_DIGITS} digits")
    return Decimal(format(short or abs(short), "f"))


_EXACT = Context(prec=2 * _DIGITS, traps=[Inexact])
