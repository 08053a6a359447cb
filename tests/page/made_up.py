"""Figures that no run has made, and what tells them as a run does."""

from __future__ import annotations

from typing import Any

from trident import Count, FeederBatchSpout, FilterNull, MapGet, Split, Sum, TridentTopology
from trident.drpc.service import LocalDRPC

ERROR = {
    "at": "2026-11-22T20:01:02.345678+00:00",
    "txid": 8,
    "attempt": 0,
    "reason": "FailedException",
    "message": "not today",
    "frame": 'words.py", line 12, in counted',
}
BATCH = {
    "group": "lines",
    "txid": 7,
    "attempts": 2,
    "tuples": 400,
    "seconds": {"emit": 0.001, "run": 0.02, "ready": 0.004, "commit": 0.002},
    "engine": "local",
}


def group(**given: Any) -> dict[str, Any]:
    return {
        "group": "lines",
        "status": "running",
        "engine": "local",
        "txid": 7,
        "batches": 7,
        "tuples": 2800,
        "attempts": 9,
        "tuples_per_second": 1234.5,
        "seconds": {"emit": 0.007, "run": 0.14, "ready": 0.028, "commit": 0.014, "compute": 0.07},
        "keys_read": 100,
        "keys_written": 90,
        "cache_hits": 10,
        "late": 0,
        "dead_letters": 0,
        "bad_tuples": {},
        "failures": {"FailedException": 2},
        "lag": {"tuples": 1200, "detail": "2 partitions"},
        "errors": [ERROR],
        "recent": [BATCH],
        **given,
    }


def query(**given: Any) -> dict[str, Any]:
    told = {"function": "words", "calls": 12, "failed": 1, "waiting": 0, "p50": 0.0012, "p99": 0.01}
    return {**told, **given}


def figures(**given: Any) -> dict[str, Any]:
    return {
        "status": "running",
        "since": "2026-11-22T20:00:00+00:00",
        "groups": [group(**given)],
        "queries": [query()],
    }


def word_count() -> TridentTopology:
    topology = TridentTopology()
    counts = (
        topology.newStream("lines", FeederBatchSpout("line string"))
        .each("line", Split(), "word")
        .groupBy("word")
        .persistentAggregate("redis://me:s3cret@cache:6379/0?prefix=words", Count(), "count")
    )
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .filter("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    return topology


class Told:
    """Stands for a run that tells what it was told to tell."""

    on_spark = True

    def __init__(self, topology: TridentTopology) -> None:
        self.drpc = LocalDRPC(topology.plan())
        self.told = figures()

    def figures(self) -> dict[str, Any]:
        return self.told
