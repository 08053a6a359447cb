"""The word count on Spark with state in PostgreSQL, beside the same upsert by hand.

Spark writes to PostgreSQL by itself with a JDBC driver, which Maven brings.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_hand import CountsInPostgres
from benchmarks.jdbc import jdbc_driver, jdbc_options
from benchmarks.report import Figure, alternated, throughput
from benchmarks.topologies import word_count
from benchmarks.words import WORDS, write_text
from trident import native
from trident.backends.urls import state_from_url
from trident.spark import local_session
from trident.testing.servers.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROUNDS = 5
_BATCHES = 4
_SPLIT = "explode(split(value, ' '))"


def figures(folder: Path) -> Iterator[Figure]:
    """Measure whole runs over 4 M words, in batches of a million."""
    text = write_text(folder / "text", files=_BATCHES)
    spark = local_session(**{"spark.jars": str(jdbc_driver(folder / "jars"))})
    with PostgresServer(folder / "postgres") as server:
        bench = _Bench(spark, folder, server.url)
        ours, hand, jdbc = alternated(
            _ROUNDS,
            lambda: bench.ours(text),
            lambda: bench.by_hand(text),
            lambda: bench.by_jdbc(text),
        )
    spark.stop()
    yield throughput("Spark: four batches, PostgreSQL; by hand", WORDS, ours, hand, target=0.9)
    name = "Spark: four batches, PostgreSQL; JDBC and a merge"
    yield throughput(name, WORDS, ours, jdbc, target=0.9)


class _Bench:
    """Runs of both sides, each on a checkpoint and a table of its own."""

    def __init__(self, spark: SparkSession, folder: Path, url: str) -> None:
        self._spark = spark
        self._folder = folder
        self._url = url
        self._numbers = count()

    def ours(self, text: Path) -> None:
        """Run the topology."""
        place, name = self._place()
        state = state_from_url(f"{self._url}?prefix={name}&values=bigint")
        with word_count(self._lines(text), "value", state, native(_SPLIT)).start(
            self._spark, place / "checkpoint", trigger="available"
        ) as run:
            run.processAllAvailable()
        self._check(place, f"SELECT sum(value) FROM {name}_committed")

    def by_jdbc(self, text: Path) -> None:
        """Run Spark's own writer, which can't add to rows: into a table that is merged then."""
        import psycopg

        place, name = self._place()
        CountsInPostgres(self._url, name).create()
        options = jdbc_options(self._url, f"{name}_given")

        def merge(frame: DataFrame, batch: int) -> None:
            counts = frame.selectExpr(f"{_SPLIT} AS word").groupBy("word").count()
            counts.write.format("jdbc").options(**options).mode("overwrite").save()
            with psycopg.connect(self._url) as connection:
                connection.execute(
                    f"INSERT INTO {name} AS stored SELECT * FROM {name}_given "
                    "ON CONFLICT (word) DO UPDATE SET n = stored.n + excluded.n"
                )

        self._stream(text, place, merge)
        self._check(place, f"SELECT sum(n) FROM {name}")

    def by_hand(self, text: Path) -> None:
        """Run what one would write: count, and let tasks add; a batch that runs again counts so."""
        place, name = self._place()
        update = CountsInPostgres(self._url, name)
        update.create()

        def upsert(frame: DataFrame, batch: int) -> None:
            counts = frame.selectExpr(f"{_SPLIT} AS word").groupBy("word").count()
            counts.mapInArrow(update, "done int").write.format("noop").mode("overwrite").save()

        self._stream(text, place, upsert)
        self._check(place, f"SELECT sum(n) FROM {name}")

    def _stream(self, text: Path, place: Path, batch: Callable[[DataFrame, int], None]) -> None:
        lines = self._lines(text).writeStream.foreachBatch(batch)
        lines = lines.option("checkpointLocation", f"file://{place}/checkpoint")
        lines.trigger(availableNow=True).start().awaitTermination()

    def _check(self, place: Path, question: str) -> None:
        import psycopg

        with psycopg.connect(self._url) as connection:
            [[total]] = connection.execute(question)
        assert total == WORDS, f"{total:,} words were counted"
        shutil.rmtree(place)

    def _lines(self, text: Path) -> DataFrame:
        return self._spark.readStream.option("maxFilesPerTrigger", 1).text(f"file://{text}")

    def _place(self) -> tuple[Path, str]:
        name = f"run{next(self._numbers)}"
        place = self._folder / name
        place.mkdir()
        return place, name
