"""Thrift's binary protocol: the messages of Storm's interface as bytes, and back.

What is read comes from anybody, so it costs no more than its bytes: nothing nests deeper than
`DEPTH`, and each element of a container takes a byte at least. A library for Thrift takes 28 bytes
for a list of two thousand million elements that have none, and counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct, error
from typing import Any, NamedTuple

CALL, REPLY, EXCEPTION = 1, 2, 3
"""What a message is."""
DEPTH = 16
"""How deep fields that nobody asked for may nest."""

_VERSION = 0x80010000
_BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _STRING, _STRUCT, _MAP, _SET, _LIST = (
    *(2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15),
)
_SIZES = {_BOOL: 1, _BYTE: 1, _DOUBLE: 8, _I16: 2, _I32: 4, _I64: 8}
_INT = Struct("!i")
_FIELD = Struct("!bh")
_LIST_HEAD = Struct("!bi")
_MAP_HEAD = Struct("!bbi")

Fields = Mapping[int, Any]
"""Of a struct: by their numbers strings, integers of 32 bits and structs."""


class ThriftError(ValueError):
    """What was read is no message."""


class Message(NamedTuple):
    """A message.

    Parameters
    ----------
    name : str
        Of the function.
    kind : int
        Whether it is a call or a reply.
    seqid : int
        What a reply has of its call.
    fields : mapping of int to str, int or mapping
        The arguments, or the result.
    """

    name: str
    kind: int
    seqid: int
    fields: Fields


def read_message(data: bytes) -> Message:
    """A message, of the bytes of a frame.

    Raises
    ------
    ThriftError
        For anything else; a string that is no UTF-8 is left out.

    Examples
    --------
    >>> read_message(written_message("execute", CALL, 1, {1: "words", 2: "cat"}))
    Message(name='execute', kind=1, seqid=1, fields={1: 'words', 2: 'cat'})
    """
    try:
        name, kind, seqid, at = _head(data)
        fields, _ = _struct(data, at, DEPTH)
    except (error, IndexError) as short:
        raise ThriftError("a message that ends too early") from short
    return Message(name, kind, seqid, fields)


def read_head(data: bytes) -> Message:
    """A message without its fields, of the bytes that its frame begins with."""
    try:
        name, kind, seqid, _ = _head(data)
    except (error, IndexError) as short:
        raise ThriftError("a message that ends too early") from short
    return Message(name, kind, seqid, {})


def written_message(name: str, kind: int, seqid: int, fields: Fields) -> bytes:
    """A message as bytes, without the length of its frame."""
    made = [_INT.pack((_VERSION | kind) - 2**32), _string(name), _INT.pack(seqid)]
    _write(made, fields)
    return b"".join(made)


def framed(data: bytes) -> bytes:
    """The bytes as a frame."""
    return _INT.pack(len(data)) + data


def _head(data: bytes) -> tuple[str, int, int, int]:
    (first,) = _INT.unpack_from(data)
    if first < 0:
        if (first & 0xFFFF0000) != _VERSION:
            raise ThriftError("another version")
        kind, (name, at) = first & 0xFF, _text(data, 4)
    else:  # as old clients write it
        name, at = _text(data, 0)
        kind, at = data[at], at + 1
    if name is None:
        raise ThriftError("a name that is no UTF-8")
    (seqid,) = _INT.unpack_from(data, at)
    return name, kind, seqid, at + 4


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth == 0:
        raise ThriftError("it nests too deep")
    fields: dict[int, Any] = {}
    while data[at]:
        kind, number = _FIELD.unpack_from(data, at)
        value, at = _value(data, at + 3, kind, depth)
        if value is not None:
            fields[number] = value
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _STRING:
        return _text(data, at)
    if kind == _I32:
        return _INT.unpack_from(data, at)[0], at + 4
    if kind == _STRUCT:
        return _struct(data, at, depth - 1)
    return None, _skipped(data, at, kind, depth)


def _text(data: bytes, at: int) -> tuple[str | None, int]:
    """A string; None where it is no UTF-8."""
    (size,) = _INT.unpack_from(data, at)
    at += 4
    if not 0 <= size <= len(data) - at:
        raise ThriftError("a string that ends after the message")
    try:
        return data[at : at + size].decode(), at + size
    except UnicodeDecodeError:
        return None, at + size


def _skipped(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends that nobody asked for."""
    if kind in _SIZES:
        end = at + _SIZES[kind]
        if end > len(data):
            raise ThriftError("a value that ends after the message")
        return end
    if kind == _MAP:
        *kinds, size = _MAP_HEAD.unpack_from(data, at)
        at += 6
    elif kind in (_LIST, _SET):
        *kinds, size = _LIST_HEAD.unpack_from(data, at)
        at += 5
    else:
        raise ThriftError(f"a value of type {kind}, which there isn't")
    if not 0 <= size <= len(data) - at or depth == 0:
        raise ThriftError("a container that can't be")
    for _ in range(size):
        for each in kinds:
            _, at = _value(data, at, each, depth - 1)
    return at


def _write(made: list[bytes], fields: Fields) -> None:
    for number, value in fields.items():
        if isinstance(value, str):
            made += (_FIELD.pack(_STRING, number), _string(value))
        elif isinstance(value, int):
            made += (_FIELD.pack(_I32, number), _INT.pack(value))
        else:
            made.append(_FIELD.pack(_STRUCT, number))
            _write(made, value)
    made.append(b"\0")


def _string(text: str) -> bytes:
    encoded = text.encode(errors="replace")
    return _INT.pack(len(encoded)) + encoded
