"""Records as tuples: which values are taken of each, and how they are decoded."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trident.spouts.collector import SpoutCollector
from trident.states.errors import FailedException
from trident.tuples.fields import Fields

Decoder = Callable[[bytes], Any]


class KafkaRecord(NamedTuple):
    """One record, as a translator is given it; key and value are decoded.

    If a record does not decode, ``on_error`` gets it with both as bytes.
    """

    topic: str
    partition: int
    offset: int
    key: Any
    value: Any
    timestamp: int | None
    """Milliseconds since 1970, as the producer or the broker set it; None if neither has."""
    headers: Sequence[tuple[str, bytes | None]]


Translator = Callable[[KafkaRecord], Sequence[Any] | None]
OnRecordError = Callable[[KafkaRecord, Exception], None]


def _string(data: bytes) -> str:
    return data.decode()


def _bytes(data: bytes) -> bytes:
    return data


def _long(data: bytes) -> int:
    if len(data) != 8:
        raise ValueError(f"{len(data)} bytes, a long has 8")
    return int.from_bytes(data, "big", signed=True)


DECODERS: dict[str, tuple[Decoder, str | None]] = {
    "string": (_string, "string"),
    "bytes": (_bytes, "binary"),
    "long": (_long, "long"),
    "json": (json.loads, None),
}
"""The decoders of keys and values by name, each with the type of its results."""

COLUMNS = ("topic", "partition", "offset", "key", "value", "timestamp")
DEFAULT = ("topic", "partition", "offset", "key", "value")
_TYPES = {"topic": "string", "partition": "long", "offset": "long", "timestamp": "long"}


def decoder_of(kind: str | Decoder) -> Decoder:
    return DECODERS[kind][0] if isinstance(kind, str) else kind


def typed(fields: Fields, key: str | Decoder, value: str | Decoder) -> Fields:
    """The fields of records without a translator, with the types that are known."""
    known = dict(_TYPES)
    for name, kind in (("key", key), ("value", value)):
        found = DECODERS[kind][1] if isinstance(kind, str) else None
        if found is not None:
            known[name] = found
    return fields.with_types([known.get(name) for name in fields])


@dataclass(frozen=True)
class Translation:
    """How records become tuples: by a translator, which may skip some, or as columns."""

    names: tuple[str, ...]
    key: str | Decoder
    value: str | Decoder
    translator: Translator | None = None

    def emit(
        self,
        messages: Sequence[Any],
        collector: SpoutCollector,
        failed: Callable[[KafkaRecord, Exception], None],
    ) -> None:
        """Emit the driver's messages; call `failed` with each that doesn't decode."""
        columns = None if self.translator else self._columns(messages)
        if columns is not None:
            collector.emitColumns(columns)
            return
        for message in messages:
            try:
                values = self._values(message)
            except FailedException:
                raise
            except Exception as error:
                failed(_record(message, message.key(), message.value()), error)
                continue
            if values is not None:
                collector.emit(values)

    def _columns(self, messages: Sequence[Any]) -> dict[str, list[Any]] | None:
        """The columns; None if some record doesn't decode: one by one shows which."""
        keys = (message.key() for message in messages)
        values = (message.value() for message in messages)
        made: dict[str, Callable[[], list[Any]]] = {
            "topic": lambda: [message.topic() for message in messages],
            "partition": lambda: [message.partition() for message in messages],
            "offset": lambda: [message.offset() for message in messages],
            "key": lambda: _decoded(decoder_of(self.key), list(keys)),
            "value": lambda: _decoded(decoder_of(self.value), list(values)),
            "timestamp": lambda: [_timestamp(message) for message in messages],
        }
        try:
            return {name: made[name]() for name in self.names}
        except FailedException:
            raise
        except Exception:
            return None

    def _values(self, message: Any) -> Sequence[Any] | None:
        key, value = message.key(), message.value()
        if self.translator is not None or "key" in self.names:
            key = None if key is None else decoder_of(self.key)(key)
        if self.translator is not None or "value" in self.names:
            value = None if value is None else decoder_of(self.value)(value)
        record = _record(message, key, value)
        if self.translator is not None:
            return self.translator(record)
        return [getattr(record, name) for name in self.names]


def _decoded(decoder: Decoder, values: list[bytes | None]) -> list[Any]:
    if decoder is _bytes:
        return values
    if decoder is _string and None not in values:
        return list(map(bytes.decode, values))  # type: ignore[arg-type]
    return [None if value is None else decoder(value) for value in values]


def _record(message: Any, key: Any, value: Any) -> KafkaRecord:
    return KafkaRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        key,
        value,
        _timestamp(message),
        message.headers() or [],
    )


def _timestamp(message: Any) -> int | None:
    kind, milliseconds = message.timestamp()
    return milliseconds if kind else None
