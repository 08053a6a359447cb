"""One commit of a group's log: in Redis and ZooKeeper on this machine, beside a local folder.

Each server syncs what it acknowledges. An entry has a spout's offsets and three states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from benchmarks.report import Figure, latency, median
from trident.log.checkpoint import hold_checkpoint
from trident.log.entry import LogEntry
from trident.log.log import LogWriter
from trident.states.values import Token
from trident.testing.servers.redis import RedisServer
from trident.testing.servers.zookeeper import ZooKeeperServer

_ENTRY = LogEntry(
    *(1, "", "0123456789abcdef", Token(1, 0), 0),
    streams={"words": "word string"},
    states={name: Token(1, 0) for name in ("count", "total", "seen")},
    kinds=dict.fromkeys(("count", "total", "seen"), "opaque"),
    metadata={"words": {f"topic/{number}": [number, 1_000_000] for number in range(8)}},
)
_BATCHES = 500


def figures(folder: Path) -> Iterator[Figure]:
    """Measure the median of commits, one kind after the other in each of three rounds."""
    synced = ("--appendonly", "yes", "--appendfsync", "always")
    with (
        RedisServer(folder / "redis", *synced) as redis,
        ZooKeeperServer(folder / "zookeeper") as zookeeper,
    ):
        places = {
            "a folder": str(folder / "log"),
            "Redis": f"{redis.url}?prefix=log",
            "ZooKeeper": f"{zookeeper.url}/log",
        }
        rounds = [{kind: _commit(place) for kind, place in places.items()} for _ in range(3)]
    least = {kind: min(each[kind] for each in rounds) for kind in places}
    for kind in ("Redis", "ZooKeeper"):
        yield latency(f"a commit in {kind}, in a folder", least[kind], least["a folder"], target=2)


def _commit(place: str) -> float:
    checkpoint = hold_checkpoint(place)
    try:
        log = checkpoint.log("words")
        newest = log.newest()
        writer = LogWriter(log)
        writer.begin(replace(_ENTRY, number=1 if newest is None else newest.number + 1))
        return median([_timed(writer) for _ in range(_BATCHES)])
    finally:
        checkpoint.release()


def _timed(writer: LogWriter) -> float:
    began = perf_counter()
    txid = writer.entry.begun.txid
    writer.append(committed=txid, begun=Token(txid + 1, 0))
    return perf_counter() - began
