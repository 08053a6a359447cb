"""Thrift's binary protocol: the messages of Storm's interface as bytes, and back.

What is read comes from anybody, so it costs little: nothing nests deeper than `DEPTH`, a container
has no more elements than bytes, and a message no more than `MOST_VALUES` values. A library for
Thrift takes 28 bytes for a list of two thousand million elements that have none, and counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct, error
from typing import Any, NamedTuple

CALL, REPLY, EXCEPTION = 1, 2, 3
"""What a message is."""
REQUEST_ID = 1000
"""The field of a call that carries its request's id: Storm's interface has none, and its servers
pass over fields that they don't know."""
STATUS, BODY = 1000, 1001
"""The fields of an exception that carry what HTTP tells of the same: Storm's four types don't say
whether another server may answer. Its clients pass over them as well."""
DEPTH = 16
"""How deep fields that nobody asked for may nest."""
MOST_VALUES = 1_000
"""How many fields and elements of containers a message may have; a call has two."""

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
"""Of a struct: by their numbers strings, integers of 32 bits and structs, None for others."""


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
        For anything else; a string that is no UTF-8 is None.

    Examples
    --------
    >>> read_message(written_message("execute", CALL, 1, {1: "words", 2: "cat"}))
    Message(name='execute', kind=1, seqid=1, fields={1: 'words', 2: 'cat'})
    """
    try:
        name, kind, seqid, at = _head(data)
        fields = _Reading(data, at).struct(DEPTH)
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


class _Reading:
    """Where the reading of a message has come to, and how many values it may still have."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._left = MOST_VALUES

    def struct(self, depth: int) -> dict[int, Any]:
        if depth == 0:
            raise ThriftError("it nests too deep")
        fields: dict[int, Any] = {}
        while self._data[self._at]:
            kind, number = _FIELD.unpack_from(self._data, self._at)
            self._at += 3
            fields[number] = self._value(kind, depth)
        self._at += 1
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ThriftError("it has too many values")
        if kind == _STRING:
            text, self._at = _text(self._data, self._at)
            return text
        if kind == _STRUCT:
            return self.struct(depth - 1)
        if kind == _I32:
            (number,) = _INT.unpack_from(self._data, self._at)
            self._at += 4
            return number
        self._skip(kind, depth)
        return None

    def _skip(self, kind: int, depth: int) -> None:
        """Pass over a value that nobody asked for."""
        if kind in _SIZES:
            self._pass(_SIZES[kind])
            return
        if kind == _MAP:
            *kinds, size = _MAP_HEAD.unpack_from(self._data, self._at)
            self._at += 6
        elif kind in (_LIST, _SET):
            *kinds, size = _LIST_HEAD.unpack_from(self._data, self._at)
            self._at += 5
        else:
            raise ThriftError(f"a value of type {kind}, which there isn't")
        if not 0 <= size <= len(self._data) - self._at or depth == 0:
            raise ThriftError("a container that can't be")
        if all(each in _SIZES for each in kinds):
            self._pass(size * sum(_SIZES[each] for each in kinds))
            return
        for _ in range(size):
            for each in kinds:
                self._value(each, depth - 1)

    def _pass(self, size: int) -> None:
        self._at += size
        if self._at > len(self._data):
            raise ThriftError("a value that ends after the message")


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
