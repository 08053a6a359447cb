"""Batches of several sizes on the local engine: words counted a second, and how long a batch takes.

The words are a Zipf stream over 100,000 distinct ones. A state holds all of them before the first
batch that is timed, so that batches change entries and add none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from benchmarks.report import Figure, latency, limit, median, rate
from benchmarks.topologies import word_count
from benchmarks.words import KEYS, zipf_words
from trident import Fields, IBatchSpout, MemoryMapState, TridentCollector
from trident.backends import sqlite
from trident.states.state import StateFactory

_A_LINE = 10
_BATCHES: Mapping[int, int] = {1_000_000: 6, 100_000: 20, 10_000: 200, 100: 2_000}
"""How many batches of how many words."""
_WANTED = {1_000_000: (2.5e6, 1.6e6), 100_000: (1.5e6, 1.0e6), 10_000: (0.8e6, 0.6e6)}
"""The words a second that are wanted in memory and in SQLite."""


def figures(folder: Path) -> Iterator[Figure]:
    """Measure runs in one process, without a durable log."""
    for words, (in_memory, in_sqlite) in _WANTED.items():
        size = f"local engine: {words:,} words a batch"
        memory = seconds(MemoryMapState.Factory(), words)
        yield rate(f"{size}, memory", words, [median(memory)], target=in_memory)
        if words == 10_000:
            slowest = quantiles(memory, n=100)[98]
            yield latency(f"{size}, memory, p99 by p50", slowest, median(memory), target=2.0)
        stored = seconds(sqlite.opaque(folder / f"{words}.db"), words)
        yield rate(f"{size}, SQLite", words, [median(stored)], target=in_sqlite)
    small = seconds(MemoryMapState.Factory(), 100)
    yield limit("local engine: 100 words a batch, memory", median(small), target=0.21e-3)


class _Timed(IBatchSpout):
    """Emits batches, and takes the time of each from its emission to its acknowledgement."""

    kind = "opaque"

    def __init__(self, batches: Sequence[Sequence[tuple[str]]]) -> None:
        self._batches = batches
        self.seconds: list[float] = []

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches)

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        self._begun = perf_counter()
        for values in self._batches[batchId - 1]:
            collector.emit(values)

    def ack(self, batchId: int) -> None:
        self.seconds.append(perf_counter() - self._begun)

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")


def seconds(state: StateFactory, words: int) -> Sequence[float]:
    """How long each of some batches took."""
    every = _lines([f"word{number}" for number in range(KEYS)])
    lines, share = _lines(zipf_words(4_000_000)), words // _A_LINE
    batches = [every]
    for number in range(_BATCHES[words]):
        start = number * share % len(lines)
        batches.append(lines[start : start + share])
    spout = _Timed(batches)
    with word_count(spout, "line", state).start(trigger="available") as run:
        run.awaitTermination()
    return spout.seconds[2:]


def _lines(words: Sequence[str]) -> list[tuple[str]]:
    starts = range(0, len(words), _A_LINE)
    return [(" ".join(words[start : start + _A_LINE]),) for start in starts]
