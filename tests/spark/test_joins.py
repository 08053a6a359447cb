"""How many partitions a join has, which Spark's plan doesn't always say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import functions as F

from trident.spark.access import partitions_of


@pytest.fixture
def batches(spark: Any) -> Iterator[Any]:
    """The session, which plans as that does in which the engine runs batches."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    yield spark
    spark.conf.set(name, before)


def read(spark: Any, rows: int, partitions: int) -> Any:
    """A frame of an RDD, as a micro-batch is."""
    frame = spark.range(rows, numPartitions=partitions)
    return spark.createDataFrame(frame.rdd, frame.schema).where("id >= 0")


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
@pytest.mark.parametrize("hint", ["broadcast", "merge"])
def test_the_partitions_of_a_join_are_known_without_running_it(
    batches: Any, how: str, hint: str
) -> None:
    joined = read(batches, 100, 3).join(read(batches, 100, 5).hint(hint), "id", how)
    assert partitions_of(joined) == joined.rdd.getNumPartitions()


def test_so_are_those_of_streams_that_were_merged_before(batches: Any) -> None:
    merged = read(batches, 100, 3).union(read(batches, 100, 2))
    joined = merged.join(F.broadcast(read(batches, 100, 1)), "id")
    assert partitions_of(joined) == 5


def test_those_of_a_full_join_of_each_with_each_are_not(batches: Any) -> None:
    left, right = read(batches, 10, 3).toDF("a"), read(batches, 10, 2).toDF("b")
    assert partitions_of(left.join(F.broadcast(right), F.expr("a < b"), "full")) == 0
