"""Windows of a streaming DataFrame, whose batches Structured Streaming makes."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import Lines
from tests.topologies.capture import captured_in
from tests.topologies.test_count_windows import Listed
from trident import Duration, Sum, TridentTopology, TumblingDurationWindow
from trident.backends import sqlite
from trident.testing import fail_at


def test_windows_of_files_go_on_after_a_restart_and_a_failure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One a batch: an attempt that is repeated has its batch's.
    times = chain([1, 2, 50], count(51))
    monkeypatch.setattr("trident.batch.attempt.time_ns", lambda: next(times) * 1_000_000)
    lines = Lines(spark, tmp_path)

    def play() -> list[list[list[tuple[Any, ...]]]]:
        topology = TridentTopology()
        stream = topology.newStream("lines", lines.stream()).each("value", _number, "v long")
        database = str(tmp_path / "windows.db")
        made = (
            stream.tumblingWindow(3, sqlite.opaque(database, "n"), "v", Listed(), "all"),
            stream.tumblingWindow(
                Duration.of(10), sqlite.opaque(database, "t"), "v", Listed(), "some"
            ),
        )
        captured = [captured_in(tmp_path / f"of {n}", each) for n, each in enumerate(made)]
        lines.start(topology).awaitTermination()
        return [each.batches for each in captured]

    lines.write("1\n2", "3\n4")
    with fail_at("after write", 2):
        play()
    lines.write("5\n6", "7")
    assert play() == [[[([1, 2, 3],)], [([4, 5, 6],)]], [[([1, 2, 3, 4],)]]]


TEN = TumblingDurationWindow.of(Duration.of(10)).withTimestampField("t")


@pytest.mark.parametrize("columns", ["p", "topic, partition"])
def test_a_window_waits_for_the_slowest_partition_that_columns_tell(
    spark: SparkSession, tmp_path: Path, columns: str
) -> None:
    lines = Lines(spark, tmp_path)
    parts = lines.stream().selectExpr("split(value, ' ') AS part")
    names = ["cast(part[1] AS bigint) AS t", "part[0] AS p"]
    if columns != "p":  # as Spark's source of Kafka names them
        names = [names[0], "'clicks' AS topic", "cast(ascii(part[0]) AS int) AS partition"]
    frame = parts.selectExpr(*names)

    def play() -> list[list[tuple[Any, ...]]]:
        topology = TridentTopology()
        given = {"partitionFields": columns} if columns == "p" else {}
        times = topology.newStream("lines", frame, **given).project("t")
        store = sqlite.opaque(str(tmp_path / "windows.db"))
        made = captured_in(tmp_path / "made", times.window(TEN, store, "t", Sum(), "sum"))
        lines.start(topology).awaitTermination()
        return made.batches

    lines.write("a 1\nb 2", "a 25")
    assert play() == []
    lines.write("b 12", "a 26")
    assert play() == [[(3, 0, 10)]]


def test_a_window_waits_for_the_slowest_of_merged_frames(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    lines, other = Lines(spark, tmp_path), Lines(spark, tmp_path / "other")
    topology = TridentTopology()
    streams = [
        topology.newStream(name, each.stream()).each("value", _number, "t long").project("t")
        for name, each in (("lines", lines), ("other", other))
    ]
    store = sqlite.opaque(str(tmp_path / "windows.db"))
    windows = topology.merge(streams).window(TEN, store, "t", Sum(), "sum")
    made = captured_in(tmp_path / "made", windows)
    lines.write("1", "25")
    other.write("4", "12")
    lines.start(topology).awaitTermination()
    assert made.batches == [[(5, 0, 10)]]


def _number(text: str) -> list[int]:
    return [int(text)]
