"""Micro-batches of Structured Streaming: a file each, timed by Spark itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.sizes.setting import UNTIMED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SPLIT = "explode(split(value, ' '))"


def lines(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the lines of a folder, a file a batch."""
    return spark.readStream.option("maxFilesPerTrigger", 1).text(f"file://{folder}")


def durations(query: StreamingQuery) -> list[float]:
    """Return how long each timed batch of a query took, in seconds."""
    done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    return [progress["durationMs"]["triggerExecution"] / 1e3 for progress in done[UNTIMED:]]
