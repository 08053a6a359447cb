"""The word count on Spark, beside jobs written by hand in the same session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.by_hand import Counts, total_of
from benchmarks.report import Figure, alternated, latency, median, throughput
from benchmarks.topologies import word_count
from benchmarks.words import FILES, WORDS, write_few_words, write_text
from trident import native
from trident.backends import sqlite
from trident.spark import local_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_ROUNDS = 5
_SMALL = 60
_WARM_UP = 20
_MILLIONS = WORDS // 1_000_000
_SPLIT = "explode(split(value, ' '))"


def figures(folder: Path) -> Iterator[Figure]:
    """Measure whole runs, from start to end, over all there is."""
    spark = local_session()
    text = write_text(folder / "text")
    bench = _Bench(spark, folder)
    few = write_few_words(folder / "warm-up", 5)
    bench.ours(few, 1, native(_SPLIT))
    bench.ours(few, 1)
    bench.by_hand(few, 1, _native_words)
    bench.by_hand(few, 1, _python_words)

    ours, hand, alone = alternated(
        _ROUNDS,
        lambda: bench.ours(text, FILES, native(_SPLIT), WORDS),
        lambda: bench.by_hand(text, FILES, _native_words, WORDS),
        lambda: bench.count_alone(text, _native_words),
    )
    yield throughput("Spark: one batch, SQLite; by hand likewise", WORDS, ours, hand, target=0.9)
    yield throughput("Spark: native split, SQLite; Catalyst alone", WORDS, ours, alone, target=0.75)

    ours, hand = alternated(
        _ROUNDS,
        lambda: bench.ours(text, 1, native(_SPLIT), WORDS),
        lambda: bench.by_hand(text, 1, _native_words, WORDS),
    )
    yield throughput("Spark: ten batches, SQLite; by hand likewise", WORDS, ours, hand, target=0.8)

    ours, hand, alone = alternated(
        _ROUNDS,
        lambda: bench.ours(text, FILES, None, WORDS),
        lambda: bench.by_hand(text, FILES, _python_words, WORDS),
        lambda: bench.count_alone(text, _python_words),
    )
    yield throughput("Spark: Python split, SQLite; by hand likewise", WORDS, ours, hand, target=0.8)
    yield throughput("Spark: Python split, SQLite; split alone", WORDS, ours, alone, target=0.8)

    lines = write_few_words(folder / "lines", _SMALL)
    bench.ours(lines, 1, native(_SPLIT))
    own = bench.a_batch()
    bench.by_hand(lines, 1, _native_words)
    yield latency("Spark: a batch of 6 words, native split", own, bench.a_batch(), target=1.3)
    bench.ours(lines, 1)
    own = bench.a_batch()
    bench.by_hand(lines, 1, _python_words)
    yield latency("Spark: a batch of 6 words, Python split", own, bench.a_batch(), target=1.5)

    millions = write_text(folder / "millions", _MILLIONS)
    for number in range(2 * _MILLIONS):
        os.link(millions / f"{number % _MILLIONS}.txt", millions / f"again-{number}.txt")
    pairs = []
    for _ in range(_ROUNDS):
        bench.ours(millions, 1, native(_SPLIT), 3 * WORDS)
        own = bench.a_batch(_MILLIONS)
        bench.by_hand(millions, 1, _native_words, 3 * WORDS)
        pairs.append((own, bench.a_batch(_MILLIONS)))
    name = "Spark: a batch of 1 M words, native split, SQLite; by hand"
    yield throughput(name, 1_000_000, *zip(*pairs[1:], strict=True), target=0.9)
    spark.stop()


class _Bench:
    """Runs of both sides, each on a checkpoint and a database of its own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._numbers = count()
        self._batches: list[dict[str, Any]] = []

    def ours(self, text: Path, files: int, split: Any = None, expected: int = 0) -> None:
        """Run the topology over `text`, at most `files` of it a batch."""
        place = self._place()
        state = sqlite.opaque(place / "counts.db", "count")
        topology = word_count(self._lines(text, files), "value", state, split)
        with topology.start(self._spark, place / "checkpoint", trigger="available") as run:
            [query] = self._spark.streams.active
            run.processAllAvailable()
        self._batches = list(query.recentProgress)
        if expected:
            total = total_of(place / "counts.db", "count", "curr")
            assert total == expected, f"{total:,} words were counted"
        shutil.rmtree(place)

    def by_hand(
        self, text: Path, files: int, words: Callable[[DataFrame], DataFrame], expected: int = 0
    ) -> None:
        """Run what one would write: count, take it to the driver as Arrow, upsert."""
        place = self._place()
        counts = Counts(place / "counts.db")

        def upsert(frame: DataFrame, batch: int) -> None:
            table = words(frame).groupBy("word").count().toArrow()
            counts.add(batch, table["word"].to_pylist(), table["count"].to_pylist())

        self._stream(self._lines(text, files), place, upsert)
        counts.close()
        if expected:
            assert total_of(place / "counts.db", "counts", "n") == expected
        shutil.rmtree(place)

    def count_alone(self, text: Path, words: Callable[[DataFrame], DataFrame]) -> None:
        """Split and count in one batch, and keep nothing."""

        def drop(frame: DataFrame, batch: int) -> None:
            counted = words(frame).groupBy("word").count()
            counted.write.format("noop").mode("overwrite").save()

        place = self._place()
        self._stream(self._lines(text, FILES), place, drop)
        shutil.rmtree(place)

    def a_batch(self, untimed: int = _WARM_UP) -> float:
        """Return the median time of a batch of the last run, in seconds, after warming up."""
        done = [progress for progress in self._batches if progress["numInputRows"]]
        times = [progress["durationMs"]["triggerExecution"] for progress in done[untimed:]]
        return median(times) / 1e3

    def _stream(
        self, lines: DataFrame, place: Path, batch: Callable[[DataFrame, int], None]
    ) -> None:
        query = (
            lines.writeStream.foreachBatch(batch)
            .option("checkpointLocation", f"file://{place}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        self._batches = list(query.recentProgress)

    def _lines(self, text: Path, files: int) -> DataFrame:
        reader = self._spark.readStream.option("maxFilesPerTrigger", files)
        return reader.text(f"file://{text}")

    def _place(self) -> Path:
        place = self._folder / f"run-{next(self._numbers)}"
        place.mkdir()
        return place


def _native_words(lines: DataFrame) -> DataFrame:
    return lines.selectExpr(f"{_SPLIT} AS word")


def _python_words(lines: DataFrame) -> DataFrame:
    return lines.mapInArrow(_split, "word string")


def _split(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        words = [word for line in batch.column(0).to_pylist() for word in line.split(" ")]
        yield pa.record_batch([pa.array(words, pa.string())], ["word"])
