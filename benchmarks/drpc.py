"""The query of four words, on memory state, in the process of the run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.report import Figure, limit, median
from benchmarks.topologies import QUESTION, word_count
from trident import FixedBatchSpout, MemoryMapState
from trident.api.run import Run

_QUERIES = 5_000


def figures(folder: Path) -> Iterator[Figure]:
    """Measure the median of 5,000 queries, alone and beside batches."""
    lines = [("the cat sat on",), ("the dog ran",), ("a man walked",)]
    spout = FixedBatchSpout("line string", 2, *lines)
    with word_count(spout, "line", MemoryMapState.Factory()).start() as run:
        run.processAllAvailable()
        yield limit("DRPC: four words, memory state, idle", _p50(run), target=100e-6)

    spout = FixedBatchSpout("line string", 2, *lines, cycle=True)
    topology = word_count(spout, "line", MemoryMapState.Factory())
    with topology.start(trigger=0.001) as run:
        yield limit(
            "DRPC: four words, while a batch a millisecond writes", _p50(run), target=200e-6
        )


def _p50(run: Run) -> float:
    times = []
    for _ in range(_QUERIES):
        start = perf_counter()
        run.drpc.execute("words", QUESTION)
        times.append(perf_counter() - start)
    return median(times)
