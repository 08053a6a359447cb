"""Word counts whose blocks are columns of Arrow, beside the same in lists, in turn in one run.

Wanted: at least 1.5 times the words at 1 M words a batch, 0.95 times at 100; 6 M words/s in
memory, 4 M into SQLite, and 2.5 M from a spout through Spark. Ratios are of processor time, rates
of the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

from benchmarks.report import Figure, rate, throughput
from benchmarks.sizes.setting import UNTIMED, Text, text_of
from benchmarks.topologies import word_count
from benchmarks.words import KEYS
from trident import Fields, IBatchSpout, MemoryMapState, TridentCollector
from trident.backends import sqlite
from trident.spark import local_session
from trident.tuples import block

_RATIOS = {100: 0.95, 10_000: 0.95, 100_000: 1.0, 1_000_000: 1.5}
_LARGE = 1_000_000
_ROUNDS = 5
_BATCHES = 6


def figures(folder: Path) -> Iterator[Figure]:
    """Measure the local engine at all sizes, then the largest batches in each way."""
    text, numbers = text_of(KEYS), count()
    for words, target in _RATIOS.items():
        batches = max(_BATCHES, min(500, 200_000 // words))
        arrow, lists = [], []
        for _ in range(_ROUNDS):
            arrow.append(_batch(text, words, batches).processor)
            with patch.object(block, "MANY", 2**62):
                lists.append(_batch(text, words, batches).processor)
        name = f"local engine, memory, {words:,} words: Arrow; lists"
        yield throughput(name, words, arrow, lists, target=target)
    times = [_batch(text, _LARGE, _BATCHES).clock for _ in range(_ROUNDS)]
    yield rate("local engine, memory, 1 M words", _LARGE, times, target=6e6)
    times = [
        _batch(text, _LARGE, _BATCHES, folder / f"{next(numbers)}").clock for _ in range(_ROUNDS)
    ]
    yield rate("local engine, SQLite, 1 M words", _LARGE, times, target=4e6)
    spark = local_session()
    times = [_batch(text, _LARGE, 3 * _BATCHES, spark=spark).clock for _ in range(_ROUNDS)]
    yield rate("Spark, a spout, memory, 1 M words", _LARGE, times, target=2.5e6)
    spark.stop()


def _batch(
    text: Text, words: int, batches: int, folder: Path | None = None, spark: Any = None
) -> _Timed:
    """Run batches into a state of their own, in memory or in a folder."""
    spout = _Timed(text, words, batches)
    state = MemoryMapState.Factory() if folder is None else sqlite.opaque(f"{folder}.db")
    engine: Any = "auto" if spark is None else "spark"
    topology = word_count(spout, "line", state)
    with topology.start(spark, folder, trigger="available", engine=engine) as run:
        run.awaitTermination()
    return spout


class _Timed(IBatchSpout):
    """Emits so many batches after those that aren't timed, the first of which has every word."""

    kind = "transactional"

    def __init__(self, text: Text, words: int, batches: int) -> None:
        self._text = text
        self._words = words
        self._last = UNTIMED + batches
        self._begun = (0.0, 0.0)
        self._times: list[tuple[float, float]] = []

    @property
    def clock(self) -> float:
        """How long the fastest batch took, in seconds."""
        return min(clock for clock, _ in self._times)

    @property
    def processor(self) -> float:
        """How much processor time of this process the cheapest batch took."""
        return min(processor for _, processor in self._times)

    def isReady(self, batchId: int) -> bool:
        return batchId <= self._last

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        self._begun = perf_counter(), process_time()
        collector.emitColumns({"line": self._text.batch(batchId - 1, self._words)})

    def ack(self, batchId: int) -> None:
        clock, processor = self._begun
        if batchId > UNTIMED:
            self._times.append((perf_counter() - clock, process_time() - processor))

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")
