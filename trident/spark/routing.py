"""Moves each key to its partition, which is the same on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

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
_WHOLE = ("long", "bigint", "int", "short", "smallint", "byte", "tinyint")


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
    """crc32 of the encoded key where Spark can encode it: one field, a string or an integer."""
    if len(names) != 1:
        return None
    column, kind = F.col(quoted(names[0])), types[names[0]]
    null = F.lit(crc32(encode_key((None,))))
    if kind in _WHOLE:
        encoded = F.concat(F.lit("\0["), column.cast("string"), F.lit("]"))
        return F.coalesce(F.crc32(encoded.cast("binary")), null)
    if kind == "string":
        encoded = F.when(column.startswith("\0"), _json(column)).otherwise(column)
        return F.coalesce(F.crc32(encoded.cast("binary")), null)
    return None


def _json(column: Column) -> Column:
    """A string in the JSON form of a key; Spark's own differs in how it escapes some letters."""
    for letter in ("\\", '"', *map(chr, range(32))):
        escaped = encode_key(("\0" + letter,))[len('\0["\\u0000') : -len('"]')].decode()
        column = F.replace(column, F.lit(letter), F.lit(escaped))
    return F.concat(F.lit('\0["'), column, F.lit('"]'))


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
