"""How the fields of a key become the bytes under which it is stored, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any

import orjson

from trident.states.errors import CorruptStateError, SerializationError

CONTROL_KEY = b"\0trident.control"
"""Where a store keeps its control record; no key encodes to it."""

_MARK = b"\0"
_ALLOWED = (
    "A key's fields are str, int of 64 bits, float, bool or None; convert others first, for "
    "example to text."
)


def encode_key(key: Sequence[Any]) -> bytes:
    r"""Return the bytes that a key is stored and compared by.

    One string field is stored as itself, in UTF-8. Every other key, and a string that starts with
    U+0000, is U+0000 and its fields as compact JSON. So 1, True and 1.0 are three keys; -0.0 and
    0.0 are one.

    Parameters
    ----------
    key : sequence
        The key's fields: str, int of 64 bits, finite float, bool or None.

    Raises
    ------
    SerializationError
        When a field has another type or is no finite number.

    Examples
    --------
    >>> encode_key(("dog",)), encode_key(("dog", 2)), encode_key((1,))
    (b'dog', b'\x00["dog",2]', b'\x00[1]')
    """
    if len(key) == 1:
        field = key[0]
        if type(field) is str and not field.startswith("\0"):
            try:
                return field.encode()
            except UnicodeEncodeError as error:
                raise SerializationError("key", f"text with {error.reason}", _ALLOWED) from error
    return _MARK + _json(key)


def encode_keys(keys: Iterable[Sequence[Any]]) -> list[bytes]:
    """Return the bytes of several keys, in their order.

    Examples
    --------
    >>> encode_keys([("cat",), ("dog",)])
    [b'cat', b'dog']
    """
    return list(map(encode_key, keys))


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
    except ValueError as error:
        raise CorruptStateError("a key", f"{data[:80]!r} ({error})") from error
    return tuple(fields)


def _json(key: Sequence[Any]) -> bytes:
    if isinstance(key, str | bytes):
        raise SerializationError(
            "key", f"{key!r:.80} alone", f"Give the sequence of its fields: ({key!r:.80},)."
        )
    fields = [_comparable(field) for field in key]
    try:
        return orjson.dumps(fields)
    except TypeError as error:
        raise SerializationError("key", str(error), _ALLOWED) from error


def _comparable(field: Any) -> Any:
    kind = type(field)
    if kind is float:
        if not isfinite(field):
            raise SerializationError("key", f"the float {field}", _ALLOWED)
        return field + 0.0  # makes 0.0 of -0.0
    if kind is int and not -(2**63) <= field < 2**63:
        raise SerializationError("key", f"the int {field}, which has over 64 bits", _ALLOWED)
    if kind is str or kind is int or kind is bool or field is None:
        return field
    raise SerializationError("key", f"a {kind.__module__}.{kind.__qualname__}", _ALLOWED)
