"""Moves each key to its partition, which is the same on both engines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from trident.kernels.grouping_kernel import PARTITION
from trident.spark.error_transfer import stage_errors
from trident.spark.schemas import Schemas, quote
from trident.spark.seal import Seal
from trident.spark.versions import place_rows
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


def place_by_key(
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
    hashed = _hash_expression(tuple(names), tuple(types[name] for name in names))
    if hashed is not None:
        hashed = hashed if shards is None else f"{hashed} % {shards}"
        frame = frame.withColumn(PARTITION, F.expr(f"cast({hashed} % {count} AS int)"))
    else:
        schema = schemas.of({**types, PARTITION: "int"})
        stage = KeyPartitions(tuple(names), count, schema.arrow, seal, shards or _ALL)
        frame = frame.mapInArrow(stage, schema.struct)
    return place_rows(frame, count, PARTITION)


def add_position(frame: DataFrame) -> DataFrame:
    """The rows with their place in the order of partitions and rows, which no exchange keeps."""
    return frame.withColumn(POSITION, F.monotonically_increasing_id())


@lru_cache(maxsize=256)
def _hash_expression(names: tuple[str, ...], kinds: tuple[str, ...]) -> str | None:
    """crc32 of the encoded key in SQL, where Spark can encode it: strings, integers, booleans.

    It is a text, as each function of a column would be a call to the JVM, in every batch. Letters
    that a session may read otherwise are written as numbers.
    """
    if any(kind != "string" and kind not in _PLAIN for kind in kinds):
        return None
    if any("${" in name for name in names):  # a session puts settings there, within quotes too
        return None
    columns = list(map(quote, names))
    fields = ", ',', ".join(map(_json_expression, columns, kinds))
    encoded = f"concat(chr(0), '[', {fields}, ']')"
    if kinds == ("string",):
        [text] = columns
        marked = f"{text} IS NULL OR startswith({text}, chr(0))"
        encoded = f"CASE WHEN {marked} THEN {encoded} ELSE {text} END"
    return f"crc32(cast({encoded} AS binary))"


def _json_expression(column: str, kind: str) -> str:
    """A field in the JSON form of a key; Spark's own differs in how it escapes some letters."""
    if kind in _PLAIN:
        return f"coalesce(cast({column} AS string), 'null')"
    escaped = column
    for letter in _ESCAPED:
        code = encode_key(("\0" + letter,))[len('\0["\\u0000\\') : -len('"]')].decode()
        code = "chr(92)" if code == "\\" else f"'{code}'"
        escaped = f"replace({escaped}, chr({ord(letter)}), concat(chr(92), {code}))"
    # Hardly any text has such a letter, and looking for each of them takes long.
    odd = "concat('[', chr(0), '-', chr(31), '\"', chr(92), chr(92), ']')"
    text = f"CASE WHEN {column} RLIKE {odd} THEN {escaped} ELSE {column} END"
    return f"coalesce(concat('\"', {text}, '\"'), 'null')"


@dataclass(frozen=True)
class KeyPartitions:
    """Adds the partition of each row's key; runs on executors."""

    names: tuple[str, ...]
    count: int
    schema: pa.Schema
    seal: Seal
    shards: int = _ALL

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with stage_errors(self.seal):
            for batch in batches:
                columns = [python_values(batch.column(name)) for name in self.names]
                keys = encode_keys(zip(*columns, strict=True))
                partitions = [shard % self.count for shard in shards_of(keys, self.shards)]
                arrays = [*batch.columns, pa.array(partitions, pa.int32())]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
