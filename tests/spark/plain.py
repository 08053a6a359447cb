"""Topologies on a session as users make one: what they print, a part after the other, on stderr."""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from trident import Count, FixedBatchSpout, TridentTopology
from trident.backends import sqlite
from trident.testing.servers.process import wait_until


def inverse(text: str) -> list[str]:
    return [str(1 / len(text))]


def part(name: str) -> None:
    """Begin a part of what is printed."""
    print(f"--- {name}", file=sys.stderr, flush=True)


def main(folder: Path, pythons: dict[str, str]) -> None:
    """Try workers of several Pythons, the last of which is fit, then steps that fail."""
    builder = SparkSession.builder.master("local[2]")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    context: Any = spark.sparkContext

    def count(name: str, source: Any, field: str) -> None:
        part(name)
        place = folder / name.replace("/", "_")
        topology = TridentTopology()
        words = topology.newStream("lines", source).each(field, inverse, "word string")
        words.groupBy("word").persistentAggregate(
            sqlite.opaque(place.with_suffix(".db")), Count(), "count"
        )
        try:
            with topology.start(spark, place, trigger="available", engine="spark") as run:
                run.awaitTermination(100)
        except Exception:
            traceback.print_exc()  # as Python itself would

    spouts = FixedBatchSpout("line string", 2, ("a",), ("",))
    for name, python in pythons.items():
        context.pythonExec = python
        if name == "fit":
            break
        local, context.master = context.master, name.partition(":")[2] or context.master
        count(name, spouts, "line")
        context.master = local
    # Spark logs late that it has ended other tasks of theirs.
    tracker = context._jsc.sc().statusTracker()
    wait_until(lambda: not any(each.numRunningTasks() for each in tracker.getExecutorInfos()))
    count("spouts", spouts, "line")
    (folder / "texts").mkdir()
    (folder / "texts" / "1.txt").write_text("a\n\n")
    count("frames", spark.readStream.text(str(folder / "texts")), "value")
    part("own")
    own = spark.createDataFrame([("x",)], "value string").select(F.expr("cast(value AS bigint)"))
    with suppress(PySparkException):
        own.collect()
    part("end")
