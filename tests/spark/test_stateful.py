"""Streaming DataFrames that keep state of Spark's own, as streams of a topology."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark.lines import Lines
from trident import Max, Sum, TridentTopology
from trident.errors import PlanError
from trident.log.errors import LogMismatchError
from trident.testing import fail_at

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Iterator[Lines]:
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    yield Lines(spark, tmp_path)
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


def highest(lines: Lines, frame: DataFrame, aggregator: Any = None, **mode: Any) -> TridentTopology:
    """Keep the highest ``count`` of each ``value``, or another aggregate of it."""
    topology = TridentTopology()
    stream = topology.newStream("lines", frame, **mode).groupBy("value")
    stream.persistentAggregate(lines.factory, "count", aggregator or Max(), "count")
    return topology


def counted(lines: Lines) -> DataFrame:
    """How often each line occurs, without a watermark."""
    frame: DataFrame = lines.stream().groupBy("value").count()
    return frame


def test_duplicates_are_dropped_on_rocksdb_over_failed_attempts_and_restarts(lines: Lines) -> None:
    def topology() -> TridentTopology:
        frame = lines.stream().dropDuplicates(["value"]).withColumn("count", F.lit(1))
        return highest(lines, frame, Sum())

    lines.write("cow\ndog\ncow", "dog\ncat")
    with fail_at("after write", txid=1):
        lines.count(topology())
    lines.write("cow\ncat\nemu")
    lines.count(topology())
    assert lines.counts == dict.fromkeys(["cow", "dog", "cat", "emu"], 1)


def test_windows_are_counted_once_on_rocksdb_when_their_watermark_has_passed(lines: Lines) -> None:
    def topology() -> TridentTopology:
        parts = F.split("value", " ")
        timed = lines.stream().select(F.to_timestamp(parts[0]).alias("at"), parts[1].alias("value"))
        windows = timed.withWatermark("at", "1 minute").groupBy(F.window("at", "1 hour"), "value")
        return highest(lines, windows.count().select("value", "count"), Sum())

    lines.write("2026-01-01T08:05:00 cow\n2026-01-01T08:06:00 cow", "2026-01-01T09:01:30 dog")
    lines.count(topology())
    assert lines.counts == {"cow": 2}
    lines.write("2026-01-01T09:50:00 dog", "2026-01-01T11:00:00 end")
    lines.count(topology())
    assert lines.counts == {"cow": 2, "dog": 2}


def test_an_aggregate_gives_what_has_changed_in_output_mode_update(lines: Lines) -> None:
    lines.write("cow\ncow", "dog")
    lines.count(highest(lines, counted(lines), outputMode="update"))
    lines.write("cow")
    with lines.start(highest(lines, counted(lines), outputMode="update")) as run:
        run.awaitTermination(60)
        assert [batch.tuples for batch in run.groups["lines"].recentProgress] == [1]
    assert lines.counts == {"cow": 3, "dog": 1}


def test_a_missing_output_mode_is_named_before_anything_is_written(lines: Lines) -> None:
    lines.write("cow")
    with pytest.raises(PlanError, match=r"of lines in the output mode 'append'.*\"update\""):
        lines.start(highest(lines, counted(lines)))
    lines.count(highest(lines, counted(lines), outputMode="update"))
    assert lines.counts == {"cow": 1}


def test_a_changed_output_mode_is_an_error_that_names_both(lines: Lines) -> None:
    lines.write("cow")
    lines.count(highest(lines, counted(lines), outputMode="update"))
    found = r"value string, count long; update.*found .*value string, count long; complete"
    with pytest.raises(LogMismatchError, match=found):
        lines.start(highest(lines, counted(lines), outputMode="complete"))


def test_no_checksum_files_are_written(lines: Lines) -> None:
    lines.write("cow")
    lines.count(highest(lines, counted(lines), outputMode="complete"))
    written = [name for _, _, names in os.walk(lines.checkpoint) for name in names]
    assert "metadata" in written
    # Hadoop's begin with a dot; those of Spark's state stores, since 4.1, don't
    assert fnmatch.filter(written, ".*.crc") == []
