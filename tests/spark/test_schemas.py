"""Columns are of the types that were declared, whatever the session is set to."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from trident.spark.schemas import Schemas
from trident.spark.versions import is_utf8
from trident.tuples.fields import Fields

KIND = "spark.sql.timestampType"


@pytest.fixture
def without_zones(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in which ``timestamp`` means one without a zone."""
    before = spark.conf.get(KIND)
    spark.conf.set(KIND, "TIMESTAMP_NTZ")
    yield spark
    spark.conf.set(KIND, before or "TIMESTAMP_LTZ")


def test_a_timestamp_has_a_zone_also_where_the_session_says_otherwise(
    without_zones: SparkSession,
) -> None:
    declared = "timestamp timestamp, t struct<`a timestamp`:array<timestamp>,timestamp:long>"
    fields = Fields.of(f"{declared}, n timestamp_ntz")
    types = {name: kind or "" for name, kind in fields.types.items()}
    found = Schemas(without_zones).of(types).arrow
    assert found.field("timestamp").type.tz is not None
    struct = found.field("t").type
    assert struct.field("a timestamp").type.value_type.tz is not None
    assert struct.field("timestamp").type == pa.int64()
    assert found.field("n").type.tz is None


def test_looking_a_schema_up_starts_no_task(spark: SparkSession) -> None:
    """Its tasks would have Python workers of their own, which take a second to start."""
    context = spark.sparkContext
    context.setJobGroup("a schema", "of a type that nothing else has")
    Schemas(spark).of({"a": "decimal(23,7)"})
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("a schema")]
    context.setLocalProperty("spark.jobGroup.id", None)
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    assert sum(stage.numTasks for stage in stages if stage) == 0


@pytest.mark.parametrize(
    ("data", "is_text"),
    [("é🐄\ufffd".encode(), True), (b"", True), (b"a\xff", False), (b"\xed\xa0\x80", False)],
)
def test_bytes_that_are_no_text_are_known(spark: SparkSession, data: bytes, is_text: bool) -> None:
    literal = f"X'{data.hex()}'"
    assert spark.range(1).selectExpr(is_utf8().format(literal)).first() == (is_text,)
