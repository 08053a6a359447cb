"""Batches with four of them pending, beside the same ones run one at a time.

They have 100,000 words; on Spark 1,000 too, where the jobs of pending batches run at once.

A state holds all words before the first batch that is timed. What makes one wait is a state in
memory whose commit takes 50 ms more, as a store behind a network or a sync.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.report import Figure, throughput
from benchmarks.topologies import word_count
from benchmarks.words import KEYS, zipf_words
from trident import Fields, IBatchSpout, MemoryMapState
from trident.backends import redis, sqlite
from trident.spark import local_session
from trident.states.map_state import MapState
from trident.states.maps.factory import MapStateFactory
from trident.testing.servers.redis import RedisServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORDS = 100_000
_FEW = 1_000
_A_LINE = 10
_UNTIMED = 3
_BATCHES = 10
_PENDING = 4
_ROUNDS = 5
_WAIT = 0.05


def figures(folder: Path) -> Iterator[Figure]:
    """Measure runs with a log on disk, on the local engine and on Spark."""
    bench = _Bench(folder)
    with RedisServer(folder / "redis") as server:
        stores = {
            "a store that takes 50 ms": (bench.waiting, 1.6),
            "SQLite": (bench.sqlite, 0.97),
            "Redis": (lambda name: redis.opaque(port=server.port, prefix=name), 0.97),
        }
        for store, (state, target) in stores.items():
            yield bench.figure(f"local engine, {store}", state, None, target)
    spark = local_session()
    for store in ("a store that takes 50 ms", "SQLite"):  # executors update Redis
        state, target = stores[store]
        yield bench.figure(f"Spark, {store}", state, spark, target)
    name = f"Spark, batches of {_FEW:,} words, SQLite"
    yield bench.figure(name, bench.sqlite, spark, 1.2, words=_FEW)
    spark.stop()


class _Bench:
    """Runs, each on a checkpoint and a state of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()
        self._all = _lines([f"word{number}" for number in range(KEYS)])
        self._text = _lines(zipf_words(_WORDS * (_UNTIMED + _BATCHES)))

    def waiting(self, name: str) -> MapStateFactory:
        """A state in memory that makes one wait."""
        memory = MemoryMapState.Factory(name)
        return _Waiting(memory.store, memory.kind)

    def sqlite(self, name: str) -> MapStateFactory:
        """A state in a file."""
        return sqlite.opaque(self._folder / f"{name}.db")

    def figure(
        self,
        name: str,
        state: Any,
        spark: SparkSession | None,
        target: float,
        words: int = _WORDS,
    ) -> Figure:
        """Compare pairs of runs, after one that isn't counted."""
        times = [
            [self._seconds(state, spark, pending, words) for pending in (_PENDING, 1)]
            for _ in range(_ROUNDS + 1)
        ]
        ours, baseline = zip(*times[1:], strict=True)
        name = f"{name}: {_PENDING} pending; 1"
        return throughput(name, words * _BATCHES, ours, baseline, target=target)

    def _seconds(self, state: Any, spark: SparkSession | None, pending: int, words: int) -> float:
        """How long the timed batches of a run took together."""
        name = f"run-{next(self._numbers)}"
        share = words // _A_LINE
        starts = range(0, (_UNTIMED + _BATCHES) * share, share)
        spout = _Acked([self._all, *[self._text[start : start + share] for start in starts]])
        topology = word_count(spout, "line", state(name))
        with topology.start(
            spark,
            self._folder / name,
            trigger="available",
            engine="auto" if spark is None else "spark",
            max_pending=pending,
        ) as run:
            run.awaitTermination()
        return spout.times[-1] - spout.times[_UNTIMED]


@dataclass(frozen=True, eq=False)
class _Waiting(MapStateFactory):
    def makeState(self, *given: Any) -> MapState:
        state = super().makeState(*given)
        commit = state.commit

        def slow_commit(batch: Any) -> None:
            time.sleep(_WAIT)
            commit(batch)

        state.commit = slow_commit  # type: ignore[method-assign]
        return state


class _Acked(IBatchSpout):
    """Emits batches, and notes when each is acknowledged."""

    kind = "transactional"

    def __init__(self, batches: Sequence[Sequence[str]]) -> None:
        self._batches = batches
        self.times: list[float] = []

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        collector.emitColumns({"line": self._batches[batchId - 1]})

    def ack(self, batchId: int) -> None:
        self.times.append(perf_counter())

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")


def _lines(words: Sequence[str]) -> list[str]:
    starts = range(0, len(words), _A_LINE)
    return [" ".join(words[start : start + _A_LINE]) for start in starts]
