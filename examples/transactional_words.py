"""The bucketed word count of Storm's transactional topologies, in Redis.

    python examples/transactional_words.py redis://localhost:6379 --folder .

Words are counted, and the words are counted in each bucket of counts: how many occur up to 10
times, how many up to 20, and so on. When a count leaves its bucket one is moved from there to the
next. Both tables keep the batch that wrote a row beside its value; the words' also the count before
that batch, as the move has to be the same when the batch comes again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from redis import Redis

from trident.storm import OutputFieldsDeclarer
from trident.transactional import (
    BaseBatchBolt,
    BatchOutputCollector,
    BoltTuple,
    ICommitter,
    MemoryTransactionalSpout,
    TopologyContext,
    TransactionalTopologyBuilder,
)

BUCKET = 10
TEXT = "the man walked to the dog and the dog walked to the man and the cat sat on the mat " * 20


class Bolt(BaseBatchBolt):
    """Keeps what a bolt is given at the begin of a batch."""

    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        id: Any,
    ) -> None:
        self.collector = collector
        self.id = id
        self.counts = Counter[Any]()


class KeyedCountUpdater(Bolt, ICommitter):
    """Adds a batch to the counts of its words, and emits each count with the one before."""

    def __init__(self, redis: str, prefix: str) -> None:
        self.redis = redis
        self.table = f"{prefix}words"

    def execute(self, tuple: BoltTuple) -> None:
        self.counts[tuple["word"]] += 1

    def finishBatch(self) -> None:
        txid = self.id.getTransactionId()
        with Redis.from_url(self.redis) as redis:
            for word, row in rows(redis, self.table, self.counts).items():
                if row["txid"] != txid:
                    before = row["count"]
                    row = {"count": before + self.counts[word], "before": before, "txid": txid}
                    redis.hset(self.table, word, json.dumps(row))
                self.collector.emit([self.id, word, row["count"], row["before"]])

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("id, word, count, before")


class Bucketize(Bolt):
    """Emits which bucket has one more, and which one less."""

    def execute(self, tuple: BoltTuple) -> None:
        now, before = tuple["count"] // BUCKET, tuple["before"] // BUCKET
        if not tuple["before"]:
            self.collector.emit([self.id, now, 1])
        elif now != before:
            self.collector.emit([self.id, now, 1])
            self.collector.emit([self.id, before, -1])

    def finishBatch(self) -> None:
        pass

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare("id, bucket, delta")


class BucketCountUpdater(Bolt, ICommitter):
    """Adds what a batch moves to the buckets."""

    def __init__(self, redis: str, prefix: str) -> None:
        self.redis = redis
        self.table = f"{prefix}buckets"

    def execute(self, tuple: BoltTuple) -> None:
        self.counts[str(tuple["bucket"])] += tuple["delta"]

    def finishBatch(self) -> None:
        txid = self.id.getTransactionId()
        with Redis.from_url(self.redis) as redis:
            for bucket, row in rows(redis, self.table, self.counts).items():
                if row["txid"] != txid:
                    row = {"count": row["count"] + self.counts[bucket], "txid": txid}
                    redis.hset(self.table, bucket, json.dumps(row))


def rows(redis: Any, table: str, keys: Counter[Any]) -> dict[str, dict[str, int]]:
    """What a table holds under some keys."""
    if not keys:
        return {}
    found = redis.hmget(table, list(keys))
    nothing = '{"count": 0, "txid": 0}'
    return {key: json.loads(row or nothing) for key, row in zip(keys, found, strict=True)}


def counting(redis: str, prefix: str, text: str = TEXT) -> Any:
    """The topology."""
    words = [[word] for word in text.split()]
    spout = MemoryTransactionalSpout({0: words[::2], 1: words[1::2]}, "word string", 7)
    builder = TransactionalTopologyBuilder("top-n-words", "spout", spout)
    counts = KeyedCountUpdater(redis, prefix)
    builder.setBolt("count", counts, 5).fieldsGrouping("spout", "word")
    builder.setBolt("bucketize", Bucketize()).noneGrouping("count")
    buckets = BucketCountUpdater(redis, prefix)
    builder.setBolt("buckets", buckets, 5).fieldsGrouping("bucketize", "bucket")
    return builder.buildTopology()


def main(redis: str, prefix: str, folder: str) -> None:
    """Count, and print the buckets."""
    with counting(redis, prefix).start(checkpoint=f"{folder}/words", trigger="available") as run:
        run.awaitTermination()
    with Redis.from_url(redis) as database:
        found: dict[bytes, bytes] = database.hgetall(f"{prefix}buckets")
    for bucket, row in sorted(found.items(), key=lambda item: int(item[0])):
        least = int(bucket) * BUCKET
        print(f"{json.loads(row)['count']} words occur {least} to {least + BUCKET - 1} times")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Count words, and words by their counts, in Redis."
    )
    parser.add_argument(
        "redis", nargs="?", default="redis://localhost:6379", help="the server's URL"
    )
    parser.add_argument("--prefix", default="", help="goes before the names of the two hashes")
    parser.add_argument("--folder", default=".", help="where the checkpoint is (default: here)")
    main(**vars(parser.parse_args()))
