"""Moves each key to its partition, which is the same on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trident.kernels.grouping_kernel import PARTITION
from trident.spark.error_transfer import raised_in_stage
from trident.spark.schemas import Schemas, quoted
from trident.spark.seal import Seal
from trident.spark.versions import placed
from trident.spark.worker_heap import freeze_imports
from trident.states.errors import SerializationError
from trident.states.keys import encode_key, encode_keys
from trident.states.sharding import shards_of
from trident.tuples.arrow_columns import python_values

POSITION = "__trident_position"
_ALL = 2**32
"""How many values crc32 has."""
_PLAIN = ("long", "bigint", "int", "short", "smallint", "byte", "tinyint", "boolean")
"""Types that SQL writes as JSON does."""
_ESCAPED = ("\\", '"', *map(chr, range(32)))
"""Letters that JSON escapes in a text. The backslash is first: the escapes of others have it."""


def by_key(
    frame: DataFrame,
    names: Sequence[str],
    types: Mapping[str, str],
    count: int,
    schemas: Schemas,
    seal: Seal,
    shards: int | None = None,
) -> DataFrame:
    """Move every row to the partition ``crc32(encoded key) mod count``, kept in a column.

    A store that is itself divided into shards by that number has each shard in one partition: the
    number is then taken modulo the number of shards first.

    Spark's own hash won't do: a key has to be in the same partition of a state after a restart, in
    another version of Spark, and on the local engine. `types` are those of all columns. Without
    `shards` any task may update any key.
    """
    hashed = _expression(names, types)
    if hashed is not None:
        hashed = hashed if shards is None else hashed % shards
        frame = frame.withColumn(PARTITION, (hashed % count).cast("int"))
    else:
        schema = schemas.of({**types, PARTITION: "int"})
        stage = KeyPartitions(tuple(names), count, schema.arrow, seal, shards or _ALL)
        frame = frame.mapInArrow(stage, schema.struct)
    return placed(frame, count, PARTITION)


def with_position(frame: DataFrame) -> DataFrame:
    """The rows with their place in the order of partitions and rows, which no exchange keeps."""
    return frame.withColumn(POSITION, F.monotonically_increasing_id())


def _expression(names: Sequence[str], types: Mapping[str, str]) -> Column | None:
    """crc32 of the encoded key where Spark can encode it: strings, integers, and booleans."""
    columns = [(F.col(quoted(name)), types[name]) for name in names]
    if any(kind != "string" and kind not in _PLAIN for _, kind in columns):
        return None
    written = [_json(column, kind) for column, kind in columns]
    commas = [part for each in written for part in (F.lit(","), each)][1:]
    encoded = F.concat(F.lit("\0["), *commas, F.lit("]"))
    if [kind for _, kind in columns] == ["string"]:
        [(column, _)] = columns
        marked = column.isNull() | column.startswith("\0")
        encoded = F.when(marked, encoded).otherwise(column)
    return F.crc32(encoded.cast("binary"))


def _json(column: Column, kind: str) -> Column:
    """A field in the JSON form of a key; Spark's own differs in how it escapes some letters."""
    if kind in _PLAIN:
        return F.coalesce(column.cast("string"), F.lit("null"))
    escaped = column
    for letter in _ESCAPED:
        code = encode_key(("\0" + letter,))[len('\0["\\u0000') : -len('"]')].decode()
        escaped = F.replace(escaped, F.lit(letter), F.lit(code))
    # Hardly any text has such a letter, and looking for each of them takes long.
    text = F.when(column.rlike(r'[\x00-\x1f"\\]'), escaped).otherwise(column)
    return F.coalesce(F.concat(F.lit('"'), text, F.lit('"')), F.lit("null"))


@dataclass(frozen=True)
class KeyPartitions:
    """Adds the partition of each row's key; runs on executors."""

    names: tuple[str, ...]
    count: int
    schema: pa.Schema
    seal: Seal
    shards: int = _ALL

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        for batch in batches:
            columns = [python_values(batch.column(name)) for name in self.names]
            try:
                keys = encode_keys(zip(*columns, strict=True))
            except SerializationError as error:
                raise raised_in_stage(error, self.seal) from None
            partitions = [shard % self.count for shard in shards_of(keys, self.shards)]
            arrays = [*batch.columns, pa.array(partitions, pa.int32())]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
