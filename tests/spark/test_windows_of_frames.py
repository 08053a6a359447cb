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
from trident import Duration, TridentTopology
from trident.backends import sqlite
from trident.testing import fail_at


def test_windows_of_files_go_on_after_a_restart_and_a_failure(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One a batch: an attempt that is repeated has its batch's.
    times = chain([1, 2, 50], count(51))
    monkeypatch.setattr("trident.batch.runner.time_ns", lambda: next(times) * 1_000_000)
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


def _number(text: str) -> list[int]:
    return [int(text)]
