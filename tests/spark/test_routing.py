"""A key's partition on Spark is that of every other engine."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from trident.spark.routing import PARTITION, place_by_key
from trident.spark.schemas import Schemas, quote
from trident.spark.seal import Seal
from trident.spark.versions import collect_table, place_rows
from trident.states.keys import encode_key
from trident.states.sharding import shard_of
from trident.tuples.arrow_columns import python_values

pytestmark = pytest.mark.usefixtures("compiled")

ODD = ["", "a", "é", "🐄", "\0", '\0a\x1f"\\\n\x7f/é', "'", "x" * 1000, None]


@pytest.mark.parametrize(
    ("types", "keys"),
    [
        ({"k": "string"}, [(word,) for word in ODD]),
        ({"k": "long"}, [(n,) for n in (0, -1, 7, 2**63 - 1, -(2**63), None)]),
        ({"k": "int"}, [(n,) for n in (0, -1, 7, None)]),
        ({"k": "double"}, [(0.0,), (-0.0,), (1.5,), (None,)]),
        ({"k": "boolean"}, [(True,), (False,), (None,)]),
        ({"k": "timestamp"}, [(datetime(2026, 7, 1, 12, 0, 0, 5, UTC),), (None,)]),
        ({"k": "decimal(9,2)", "d": "date"}, [(Decimal("1.50"), date(2026, 1, 2)), (None, None)]),
        ({"k": "binary", "s": "struct<a:double>"}, [(b"a\xff", {"a": 0.5}), (b"", None)]),
        ({"a": "string", "b": "long"}, [(word, 5) for word in ODD]),
        ({"a": "boolean", "b": "string"}, [(None, None), (True, None), (None, "null")]),
        ({"${env:HOME}": "string"}, [("a",)]),
        ({"a`'b": "string", "a.b": "string"}, [("a", "b")]),
    ],
    ids=lambda value: ",".join(value.values()) if isinstance(value, dict) else "",
)
def test_partitions_are_the_same(
    spark: SparkSession, types: dict[str, str], keys: list[tuple[Any, ...]]
) -> None:
    ddl = ", ".join(f"{quote(name)} {kind}" for name, kind in types.items())
    frame = place_by_key(
        spark.createDataFrame(keys, ddl), tuple(types), types, 5, Schemas(spark), Seal()
    )
    columns = map(python_values, collect_table(frame).combine_chunks().to_batches()[0].columns)
    found = [(tuple(key), partition) for *key, partition in zip(*columns, strict=True)]
    assert sorted(found, key=repr) == sorted(
        ((k, shard_of(encode_key(k), 5)) for k in keys), key=repr
    )


@pytest.mark.parametrize("kind", ["string", "double"])
def test_each_shard_of_a_store_is_in_one_partition(spark: SparkSession, kind: str) -> None:
    keys = [(str(n) if kind == "string" else n / 4,) for n in range(200)]
    types = {"k": kind}
    frame = place_by_key(
        spark.createDataFrame(keys, f"k {kind}"), ["k"], types, 3, Schemas(spark), Seal(), 8
    )
    found = {row["k"]: row[PARTITION] for row in frame.collect()}
    assert found == {key[0]: shard_of(encode_key(key), 8) % 3 for key in keys}


@pytest.mark.parametrize("count", [1, 3, 50])
def test_each_row_is_in_the_partition_that_its_column_names(
    spark: SparkSession, count: int
) -> None:
    rows = spark.range(count * 2).select((F.col("id") % count).cast("int").alias(PARTITION))
    frame = place_rows(rows, count, PARTITION)
    assert frame.rdd.getNumPartitions() == count
    found = frame.select(PARTITION, F.spark_partition_id()).collect()
    assert len(found) == count * 2
    assert all(named == partition for named, partition in found)
