"""The messages of Storm's Thrift interface as bytes, and back, by Apache's library for Thrift.

Messages may come from an attacker, so reading one has to cost little: no string is longer than the
message, structs nest no deeper than `_DEPTH`, and a message has `MOST_VALUES` values at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer

CALL, REPLY, EXCEPTION = TMessageType.CALL, TMessageType.REPLY, TMessageType.EXCEPTION
"""What a message is."""
REQUEST_ID = 1000
"""The field of a call that carries its request's id: Storm's interface has none, and its servers
pass over fields that they don't know."""
KNOWN_IDS = 1000
"""The field of Thrift's own exception that says of a server that it knows such ids, and applies a
request once, however often it comes."""
STATUS, BODY = 1000, 1001
"""The fields of an exception that carry what HTTP tells of the same: Storm's four types don't say
whether another server may answer. Its clients pass over them as well."""
MOST_VALUES = 1_000
"""How many fields and elements of containers a message may have; a call has two."""
_DEPTH = 16
"""How deep structs may nest."""

Fields = Mapping[int, Any]
"""Of a struct: by their numbers strings, integers of 32 bits and structs, None for others."""


class ThriftError(ConnectionError):
    """A frame is not a message, so nothing more can be read of the connection."""


class Message(NamedTuple):
    """A message.

    A reply has the `seqid` of its call.
    """

    name: str
    kind: int
    seqid: int
    fields: Fields


def read_message(data: bytes) -> Message:
    """Read a message from the bytes of a frame.

    Raises ThriftError for other bytes. A string that is not UTF-8 is None.
    """
    reading = _Reading(data)
    head = _head(reading)
    try:
        return head._replace(fields=reading.fields(_DEPTH))
    except (TException, EOFError) as error:
        raise ThriftError(f"no message of Thrift: {error or 'it ends too early'}") from error


def read_head(data: bytes) -> Message:
    """Read a message without its fields, from the first bytes of its frame."""
    return _head(_Reading(data))


def message_bytes(name: str, kind: int, seqid: int, fields: Fields) -> bytes:
    """Write a message as bytes, without the length of its frame."""
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    protocol.writeMessageBegin(name, kind, seqid)
    _write(protocol, fields)
    written: bytes = buffer.getvalue()
    return written


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


class _Bytes:
    """The transport of a whole message; the library's own takes three times as long."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def readAll(self, size: int) -> bytes:
        begin = self._at
        self._at += size
        if self._at > len(self._data):
            raise EOFError
        return self._data[begin : self._at]


class _Reading(TBinaryProtocol):  # type: ignore[misc]  # the library has no types
    """Reads a message with `MOST_VALUES` values at most."""

    def __init__(self, data: bytes) -> None:
        super().__init__(_Bytes(data), string_length_limit=len(data))
        self._allowed = MOST_VALUES

    def fields(self, depth: int) -> dict[int, Any]:
        if depth == 0:
            raise ThriftError("it nests too deep")
        found: dict[int, Any] = {}
        while True:
            _, kind, number = self.readFieldBegin()
            if kind == TType.STOP:
                return found
            found[number] = None
            if kind == TType.STRING:
                found[number] = self.readString()
            elif kind == TType.I32:
                found[number] = self.readI32()
            elif kind == TType.STRUCT:
                found[number] = self.fields(depth - 1)
            else:
                self.skip(kind)

    def readString(self) -> str | None:
        try:
            text: str = self.readBinary().decode()
        except UnicodeDecodeError:
            return None
        return text

    def readFieldBegin(self) -> Any:
        self._count(1)
        return super().readFieldBegin()

    def readMapBegin(self) -> Any:
        found = super().readMapBegin()
        self._count(2 * found[-1])
        return found

    def readSetBegin(self) -> Any:
        return self.readListBegin()

    def readListBegin(self) -> Any:
        found = super().readListBegin()
        self._count(found[-1])
        return found

    def _count(self, values: int) -> None:
        self._allowed -= values
        if self._allowed < 0:
            raise ThriftError("it has too many values")


def _head(reading: _Reading) -> Message:
    try:
        name, kind, seqid = reading.readMessageBegin()
    except (TException, EOFError, UnicodeDecodeError) as error:
        raise ThriftError(f"no message of Thrift: {error or 'it ends too early'}") from error
    if name is None:
        raise ThriftError("a name that is no UTF-8")
    return Message(name, kind, seqid, {})


def _write(protocol: Any, fields: Fields) -> None:
    for number, value in fields.items():
        if isinstance(value, str):
            protocol.writeFieldBegin("", TType.STRING, number)
            protocol.writeBinary(value.encode(errors="replace"))
        elif isinstance(value, int):
            protocol.writeFieldBegin("", TType.I32, number)
            protocol.writeI32(value)
        else:
            protocol.writeFieldBegin("", TType.STRUCT, number)
            _write(protocol, value)
    protocol.writeFieldStop()
