"""The Yahoo streaming benchmark as a DataFrame, beside a ``foreachBatch`` written by hand.

Events are lines of JSON. Views are kept, each ad is joined to its campaign, and the views of a
campaign are counted by ten seconds of event time, into Redis. Both sides run the same expressions
of Spark's. The one by hand adds its counts by HINCRBY, so a batch that runs again counts twice;
ours is exact. The counts of both are compared with those of plain Python.

The bar is 0.9 of the loop by hand, by the median of batches, with 60,000 events a batch and with a
million.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.report import Figure, median, throughput
from trident import Count, TridentTopology
from trident.backends import redis
from trident.spark import local_session
from trident.states.keys import CONTROL_KEY, decode_key
from trident.testing.servers.redis import RedisServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ADS = {f"ad-{number}": f"campaign-{number // 10}" for number in range(1_000)}
_WINDOW = 10_000
_A_SECOND = 10_000
_SIZES = {60_000: (20, 20, 5), 1_000_000: (2, 6, 3)}
"""By the events of a batch: how many files differ, how many batches a run has, and the rounds."""
_WARM_UP = {60_000: 5, 1_000_000: 1}
"""Batches of a run that are not timed."""

Key = tuple[str, int]
"""A campaign, and when ten seconds of it begin."""


def figures(folder: Path) -> Iterator[Figure]:
    """Measure the batches of whole runs, ours and those by hand in turn."""
    spark = local_session()
    with RedisServer(folder / "redis") as server:
        for events, (files, batches, rounds) in _SIZES.items():
            text, truth = write_events(folder / f"{events}", events, files, batches)
            bench = _Bench(spark, folder, server, text, truth)
            pairs = [(bench.ours(), bench.by_hand()) for _ in range(rounds + 1)][1:]
            untimed = _WARM_UP[events]
            ours, hand = (
                [median(batches[untimed:]) for batches in side] for side in zip(*pairs, strict=True)
            )
            name = f"Yahoo: {events:,} events a batch, Redis; by hand"
            yield throughput(name, events, ours, hand, target=0.9)
            shutil.rmtree(text)
    spark.stop()


def write_events(folder: Path, events: int, files: int, batches: int) -> tuple[Path, Counter[Key]]:
    """Write a file for each batch, the first ones again after the last; return the true counts."""
    folder.mkdir()
    chance, ads = random.Random(events), list(_ADS)
    kinds, truth = ("view", "click", "purchase"), Counter[Key]()
    for number in range(batches):
        path = folder / f"{number:04}.json"
        if number >= files:
            os.link(folder / f"{number % files:04}.json", path)
            continue
        chosen = zip(chance.choices(ads, k=events), chance.choices(kinds, k=events), strict=True)
        first = number * events
        lines = [
            f'{{"user_id":"{chance.getrandbits(64):016x}","page_id":"{chance.getrandbits(64):016x}",'
            f'"ad_id":"{ad}","ad_type":"banner","event_type":"{kind}",'
            f'"event_time":"{(first + place) * 1_000 // _A_SECOND}","ip_address":"1.2.3.4"}}\n'
            for place, (ad, kind) in enumerate(chosen)
        ]
        path.write_text("".join(lines))
        copies = len(range(number, batches, files))
        for event in map(json.loads, lines):
            if event["event_type"] == "view":
                start = int(event["event_time"]) // _WINDOW * _WINDOW
                truth[_ADS[event["ad_id"]], start] += copies
    return folder, truth


class _Bench:
    """Runs of both sides, each on a checkpoint and keys of its own."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        server: RedisServer,
        text: Path,
        truth: Counter[Key],
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._server = server
        self._text = text
        self._truth = truth
        columns = {"ad_id": list(_ADS), "campaign": list(_ADS.values())}
        self._ads = spark.createDataFrame(pa.table(columns))
        self._numbers = count()

    def ours(self) -> list[float]:
        """Run the topology; return the seconds of each batch."""
        place, prefix = self._place()
        topology = TridentTopology()
        (
            topology.newStream("views", self._views())
            .groupBy("campaign", "start")
            .persistentAggregate(
                redis.opaque(port=self._server.port, prefix=prefix), Count(), "count"
            )
        )
        with topology.start(self._spark, place / "checkpoint", trigger="available") as run:
            [query] = self._spark.streams.active
            run.processAllAvailable()
        with self._client() as client:
            keys = [key for key in client.keys(f"{prefix}:*") if CONTROL_KEY not in key]
            stored = zip(keys, client.mget(keys), strict=True)
            found = {_key(key[len(prefix) + 1 :]): json.loads(value)[1] for key, value in stored}
        return self._ended(query, found)

    def by_hand(self) -> list[float]:
        """Run what one would write; return the seconds of each batch."""
        place, prefix = self._place()

        def add(frame: DataFrame, batch: int) -> None:
            counted = frame.groupBy("campaign", "start").count().collect()
            with self._client() as client, client.pipeline(transaction=False) as pipeline:
                for campaign, start, views in counted:
                    pipeline.hincrby(f"{prefix}:{campaign}", start, views)
                pipeline.execute()

        query = (
            self._views()
            .writeStream.foreachBatch(add)
            .option("checkpointLocation", f"file://{place}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        with self._client() as client:
            found = {
                (key.decode()[len(prefix) + 1 :], int(start)): int(views)
                for key in client.keys(f"{prefix}:*")
                for start, views in client.hgetall(key).items()
            }
        return self._ended(query, found)

    def _ended(self, query: Any, found: dict[Key, int]) -> list[float]:
        assert found == self._truth, f"{sum(found.values()):,} of {self._truth.total():,} views"
        self._server.cli("flushall")
        done = [progress for progress in query.recentProgress if progress["numInputRows"]]
        return [progress["durationMs"]["triggerExecution"] / 1e3 for progress in done]

    def _views(self) -> DataFrame:
        reader = self._spark.readStream.option("maxFilesPerTrigger", 1)
        kinds = "ad_id string, event_type string, event_time string"
        events = reader.text(f"file://{self._text}").selectExpr(
            f"from_json(value, '{kinds}') AS event"
        )
        views = events.where("event.event_type = 'view'").selectExpr(
            "event.ad_id AS ad_id", "CAST(event.event_time AS long) AS time"
        )
        start = f"time - time % {_WINDOW} AS start"
        return views.join(self._ads, "ad_id").selectExpr("campaign", start)

    def _client(self) -> Any:
        from redis import Redis

        return Redis(port=self._server.port)

    def _place(self) -> tuple[Path, str]:
        prefix = f"{self._text.name}-run-{next(self._numbers)}"
        place = self._folder / prefix
        place.mkdir()
        return place, prefix


def _key(encoded: bytes) -> Key:
    campaign, start = decode_key(encoded)
    return campaign, start
