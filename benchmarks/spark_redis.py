"""The word count on Spark with state in Redis, beside the same reads and writes by hand."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_hand import CountsInRedis
from benchmarks.report import Figure, alternated, throughput
from benchmarks.topologies import word_count
from benchmarks.words import WORDS, write_text
from trident import native
from trident.backends import redis
from trident.spark import local_session
from trident.testing.servers.redis import RedisServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROUNDS = 5
_BATCHES = 4
_SPLIT = "explode(split(value, ' '))"


def figures(folder: Path) -> Iterator[Figure]:
    """Measure whole runs over 4 M words, in batches of a million."""
    text = write_text(folder / "text", files=_BATCHES)
    spark = local_session()
    with RedisServer(folder / "redis") as server:
        bench = _Bench(spark, folder, server)
        bench.ours(text)
        bench.by_hand(text)
        ours, hand = alternated(
            _ROUNDS,
            lambda: bench.ours(text),
            lambda: bench.by_hand(text),
        )
    spark.stop()
    yield throughput("Spark: four batches, Redis; by hand", WORDS, ours, hand, target=0.85)


class _Bench:
    """Runs of both sides, each on a checkpoint and keys of its own."""

    def __init__(self, spark: SparkSession, folder: Path, server: RedisServer) -> None:
        self._spark = spark
        self._folder = folder
        self._server = server
        self._numbers = count()

    def ours(self, text: Path) -> None:
        """Run the topology."""
        place, prefix = self._place()
        state = redis.opaque(port=self._server.port, prefix=prefix)
        with word_count(self._lines(text), "value", state, native(_SPLIT)).start(
            self._spark, place / "checkpoint", trigger="available"
        ) as run:
            run.processAllAvailable()
        values = [value.split(b",")[1] for value in self._values(prefix)]
        self._check(place, prefix, values)

    def by_hand(self, text: Path) -> None:
        """Run what one would write: count, and let tasks read, add and write."""
        place, prefix = self._place()
        update = CountsInRedis(self._server.port, prefix)

        def upsert(frame: DataFrame, batch: int) -> None:
            counts = frame.selectExpr(f"{_SPLIT} AS word").groupBy("word").count()
            counts.mapInArrow(update, "done int").write.format("noop").mode("overwrite").save()

        lines = self._lines(text).writeStream.foreachBatch(upsert)
        lines = lines.option("checkpointLocation", f"file://{place}/checkpoint")
        lines.trigger(availableNow=True).start().awaitTermination()
        self._check(place, prefix, self._values(prefix))

    def _check(self, place: Path, prefix: str, values: list[bytes]) -> None:
        total = sum(map(int, values))
        assert total == WORDS, f"{total:,} words were counted"
        shutil.rmtree(place)
        self._server.cli("flushall")

    def _values(self, prefix: str) -> list[bytes]:
        from redis import Redis

        with Redis(port=self._server.port) as client:
            keys = [key for key in client.keys(f"{prefix}:*") if b"\0" not in key]
            found: list[bytes] = client.mget(keys)
            return found

    def _lines(self, text: Path) -> DataFrame:
        return self._spark.readStream.option("maxFilesPerTrigger", 1).text(f"file://{text}")

    def _place(self) -> tuple[Path, str]:
        prefix = f"run-{next(self._numbers)}"
        place = self._folder / prefix
        place.mkdir()
        return place, prefix
