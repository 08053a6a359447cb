"""Records of Spark's source of Kafka as the tuples that a spout would make of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trident.spark.arrow_collector import ArrowCollector
from trident.spark.error_transfer import SOURCES, stage_errors
from trident.spark.schemas import Schemas, select_columns
from trident.spark.seal import Seal
from trident.spark.versions import is_utf8
from trident.spouts.kafka.records import typed
from trident.spouts.kafka.rejected import KafkaRecordError, Rejected, rejecting
from trident.spouts.kafka.settings import KafkaSettings
from trident.states.errors import UsageError
from trident.tuples.fields import Fields

_ROWS = 8_192
"""The most records that are decoded at once in Python."""

_PARTS = {
    "topic": "topic",
    "partition": "cast(partition AS bigint)",
    "offset": "offset",
    "key": "key",
    "value": "value",
    "timestamp": "CASE WHEN timestampType >= 0 THEN unix_millis(timestamp) END",
}
"""The parts of a record as a spout has them, of Spark's columns."""

_DECODED = {
    "bytes": ("true", "{0}"),
    "string": (is_utf8(), "cast({0} AS string)"),
    "long": ("length({0}) = 8", "cast(conv(hex({0}), 16, -10) AS bigint)"),
}
"""What Spark itself decodes: the condition for bytes, and their value."""


def check_types(settings: KafkaSettings) -> None:
    """Each column has a type."""
    for name, declared in settings.fields.types.items():
        if declared is None:
            what = "kafka_frame: a column needs a type, and none is known of the field"
            advice = f'Write it in fields=, as "{name} string"; of JSON a translator takes values.'
            raise UsageError(what, name, (), advice)


def as_tuples(records: DataFrame, settings: KafkaSettings) -> DataFrame:
    """Return the tuples of a stream, decoded by Spark alone if it can, else in Python."""
    parts = [F.expr(part).alias(name) for name, part in _PARTS.items()]
    if decoded_by_spark(settings):
        return _decode_by_spark(records.select(*parts), settings)
    return _decode_in_python(records.select(*parts, "headers"), settings)


def decoded_by_spark(settings: KafkaSettings) -> bool:
    """Return whether Spark decodes all by itself, so that no record comes to Python."""
    how = settings.translation
    natural = typed(Fields(*settings.fields), how.key, how.value)
    return (
        how.translator is None
        and all(isinstance(each, str) and each in _DECODED for each in (how.key, how.value))
        and settings.on_error in ("fail", "skip")
        and settings.fields == natural
    )


def _decode_by_spark(parts: DataFrame, settings: KafkaSettings) -> DataFrame:
    names = settings.fields.names
    how = {"key": settings.translation.key, "value": settings.translation.value}
    for name in [name for name in how if name in names]:
        fits, decoded = (F.expr(each.format(name)) for each in _DECODED[str(how[name])])
        fits = F.col(name).isNull() | fits
        if settings.on_error == "skip":
            parts = parts.where(fits)
        else:
            decoded = F.when(fits, decoded).otherwise(
                _raise_record_error(f"{name} is no {how[name]}")
            )
        parts = parts.withColumn(name, decoded)
    return select_columns(parts, names)


def _raise_record_error(problem: str) -> Column:
    names = ("topic", "partition", "offset")
    template = KafkaRecordError._template.format_map(dict.fromkeys((*names, "problem"), "%s"))
    return F.raise_error(F.format_string(template, *names, F.lit(problem)))


def _decode_in_python(parts: DataFrame, settings: KafkaSettings) -> DataFrame:
    declared = {name: str(kind) for name, kind in settings.fields.types.items()}
    schema = Schemas(parts.sparkSession).of(declared)
    types = {name: (kind, schema.arrow.field(name).type) for name, kind in declared.items()}
    stage = RecordStage(settings, types, schema.arrow)
    return parts.mapInArrow(stage, schema.struct)


class _Message(NamedTuple):
    """A record with the methods of the driver's messages."""

    row: tuple[Any, ...]

    def topic(self) -> Any:
        return self.row[0]

    def partition(self) -> Any:
        return self.row[1]

    def offset(self) -> Any:
        return self.row[2]

    def key(self) -> Any:
        return self.row[3]

    def value(self) -> Any:
        return self.row[4]

    def timestamp(self) -> tuple[int, Any]:
        return (0, -1) if self.row[5] is None else (1, self.row[5])

    def headers(self) -> list[tuple[str, bytes | None]]:
        return [(each["key"], each["value"]) for each in self.row[6] or ()]


@dataclass(frozen=True)
class RecordStage:
    """Makes tuples of records on executors; pickled to them, called once a task."""

    settings: KafkaSettings
    types: Mapping[str, tuple[str, pa.DataType]]
    schema: pa.Schema
    seal: Seal = SOURCES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with stage_errors(self.seal), closing(rejecting(self.settings)) as rejected:
            for batch in batches:
                for start in range(0, batch.num_rows, _ROWS):
                    yield from self._tuples(batch.slice(start, _ROWS), rejected)

    def _tuples(self, records: pa.RecordBatch, rejected: Rejected) -> Iterator[pa.RecordBatch]:
        settings = self.settings
        parts = [part.to_pylist() for part in records.columns]
        messages = list(map(_Message, zip(*parts, strict=True)))
        collector = ArrowCollector(settings.place, settings.fields, self.types)
        settings.translation.emit(messages, collector, rejected.take)
        rejected.settle()
        for block in collector.blocks():
            arrays = [block.arrow(name) for name in self.schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
