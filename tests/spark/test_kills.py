"""The driver is killed at named points of a batch and started again: all words count once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import Lines

KILLS = [
    ("after begin", 2),
    ("after write", 3),
    ("before commit", 4),
    ("after commit", 5),
    ("before announce", 6),
]


def run(folder: Path, point: str, txid: int) -> int:
    """Run the program; return how it ended."""
    program = [sys.executable, "-m", "tests.spark.program", str(folder), point, str(txid)]
    return subprocess.run(program, timeout=280, check=False).returncode


@pytest.mark.timeout(1200)
def test_a_driver_that_is_killed_again_and_again_counts_every_word_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = Lines(spark, tmp_path)
    lines.write(*[f"all batches\nw{number} w{number % 3}" for number in range(9)])
    for point, txid in KILLS:
        assert run(tmp_path, point, txid) == -signal.SIGKILL, point
    lines.count()
    assert lines.counts == lines.expected


def test_a_driver_whose_jvm_is_killed_ends_with_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    Lines(spark, tmp_path).write("one batch")
    program = [sys.executable, "-m", "tests.spark.without_jvm", str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=280, check=True)
    assert done.stdout.strip().endswith("Error"), done.stdout  # not that it hangs
