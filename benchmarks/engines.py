"""Batches on the engine that the library chooses, beside the same ones forced onto either.

By size and store, in one run, in turn, from the tenth batch on. **At least 0.9 of the better
engine.** A word count is faster in this process. A slow function, which sleeps so that the cores of
this machine do not bound it, is at least twice as fast on a cluster of four executor cores.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from benchmarks.report import Figure, throughput
from benchmarks.sizes.setting import A_LINE, text_of
from benchmarks.topologies import word_count
from benchmarks.words import KEYS
from tests.spark.cluster import cluster
from trident import Fields, IBatchSpout, MemoryMapState
from trident.backends import redis, sqlite
from trident.spark import local_session
from trident.states.state import StateFactory
from trident.testing.servers.redis import RedisServer

ROUNDS = {100: 198, 10_000: 60, 100_000: 30, 1_000_000: 24, 4_000_000: 12}
"""How many batches are timed, by their words: each engine follows Spark equally often in six."""
STORES = ("memory", "SQLite", "Redis")
CHOSEN, LOCAL, SPARK = "chosen", "local", "Spark"
_UNTIMED = 9
_SPARK_EVERY = 3  # it takes the longest
_SLOW_LINES = 400
_SLOW_ROUNDS = 6


def figures(folder: Path) -> Iterator[Figure]:
    """Measure all sizes on all stores, and a slow function on a cluster."""
    text = text_of(KEYS)
    with RedisServer(folder / "redis") as server:
        spark = local_session(**{"spark.driver.memory": "6g"})
        for store in STORES:
            for words, rounds in ROUNDS.items():

                def state(name: str, store: str = store) -> StateFactory:
                    if store == "SQLite":
                        return sqlite.opaque(folder / f"{name}.db")
                    if store == "Redis":
                        return redis.opaque(port=server.port, prefix=name)
                    return MemoryMapState.Factory(name)

                batches = [text.batch(number, words) for number in range(_UNTIMED + rounds)]
                name = f"{store}, {words:,} words"
                lasts = store != "memory"
                yield from _figures(folder, spark, name, batches, words, state, lasts=lasts)
        spark.stop()
    with cluster(folder, cores=2) as master:
        spark = local_session(
            **{
                "spark.master": master,
                "spark.driver.host": "127.0.0.1",
                "spark.executorEnv.PYTHONPATH": str(Path.cwd()),
            }
        )
        batches = [text.pool[:_SLOW_LINES]] * (_UNTIMED + _SLOW_ROUNDS)
        name, words = "a function of 20 ms a line", _SLOW_LINES * A_LINE
        memory = MemoryMapState.Factory
        yield from _figures(folder, spark, name, batches, words, memory, _slow, local=2.0)
        spark.stop()


def _slow(line: str) -> list[str]:
    time.sleep(0.02)
    return line.split()


def _figures(
    folder: Path,
    spark: Any,
    name: str,
    batches: Sequence[Sequence[str]],
    words: int,
    state: Callable[[str], StateFactory],
    split: Any = None,
    *,
    lasts: bool = False,
    local: float = 0.9,
) -> Iterator[Figure]:
    """Compare what a batch took where it was chosen to run with what it took on each engine.

    `local` is what has to be reached beside this process.
    """
    engines: Mapping[str, Mapping[str, Any]] = {
        CHOSEN: {"spark": spark},
        LOCAL: {},
        SPARK: {"spark": spark, "engine": "spark"},
    }
    took: dict[str, dict[int, float]] = {engine: {} for engine in engines}
    with ExitStack() as running:
        spouts = {}
        for engine, options in engines.items():
            place = f"{name}-{engine}".replace(" ", "-")
            spouts[engine] = spout = _Turns()
            kept = {"checkpoint": folder / place} if lasts else {}
            running.enter_context(
                word_count(spout, "line", state(place), split).start(**options, **kept)
            )
        for number, batch in enumerate(batches):
            # Whoever follows Spark finds cold caches, so each does in turn.
            order = list(spouts) if number // _SPARK_EVERY % 2 else list(spouts)[::-1]
            for engine in order:
                if engine != SPARK or number % _SPARK_EVERY == 0:
                    took[engine][number] = spouts[engine].run(batch)
    means = {
        engine: fmean(seconds for number, seconds in times.items() if number >= _UNTIMED)
        for engine, times in took.items()
    }
    for engine, target in ((LOCAL, local), (SPARK, 0.9)):
        compared = f"{name}: chosen; {engine}"
        yield throughput(compared, words, [means[CHOSEN]], [means[engine]], target=target)


class _Turns(IBatchSpout):
    """Emits the batch that it is given, and says how long that took until it was acknowledged."""

    kind = "transactional"

    def __init__(self) -> None:
        self._batches: list[Sequence[str]] = []
        self._acked = threading.Semaphore(0)
        self._listener: Callable[[], None] = lambda: None

    def run(self, lines: Sequence[str]) -> float:
        began = perf_counter()
        self._batches.append(lines)
        self._listener()
        assert self._acked.acquire(timeout=300), "the batch is not acknowledged after 300 s"
        return perf_counter() - began

    def whenReady(self, listener: Callable[[], None]) -> bool:
        self._listener = listener
        return True

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        collector.emitColumns({"line": self._batches[batchId - 1]})

    def ack(self, batchId: int) -> None:
        self._acked.release()

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")
