"""A state built anew from files, swap included, beside batches of a million words from memory.

Both count 4 million words into an empty SQLite file, on the local engine. The rebuild is to reach
0.7 of the rate of such large batches. It reads and decodes files besides, and swaps the states.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.report import Figure, throughput
from benchmarks.topologies import word_count
from benchmarks.words import WORDS, write_text
from trident import Fields, IBatchSpout, TextFileSpout, TridentTopology
from trident.api.start import start
from trident.backends import sqlite
from trident.batch.start_options import StartOptions
from trident.plan.substitution import rebuilt
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.moving import swap_states

_BATCHES = 4
_ROUNDS = 4
_TARGET = 0.7


def figures(folder: Path) -> Iterator[Figure]:
    """Measure pairs, after one that isn't counted."""
    texts = write_text(folder / "texts")
    lines = [line for path in sorted(texts.iterdir()) for line in path.read_text().splitlines()]
    numbers = count()
    times: list[tuple[float, float]] = []
    for _ in range(_ROUNDS + 1):
        place = folder / f"run-{next(numbers)}"
        place.mkdir()
        state = sqlite.opaque(place / "counts.db", "count")
        word = [["an old state"]]
        _run(word_count(_InMemory(word), "line", state), place / "old")
        anew = _rebuild(word_count(TextFileSpout(texts / "*.txt"), "line", state), place / "new")
        share = len(lines) // _BATCHES
        batches = [lines[start : start + share] for start in range(0, len(lines), share)]
        direct: MapStateFactory = sqlite.opaque(place / "direct.db", "count")
        times.append(
            (anew, _run(word_count(_InMemory(batches), "line", direct), place / "direct"))
        )
    ours, baseline = zip(*times[1:], strict=True)
    name = "a rebuild from files; batches of 1 M words"
    yield throughput(name, WORDS, ours, baseline, target=_TARGET)


def _run(topology: TridentTopology, checkpoint: Path) -> float:
    began = perf_counter()
    with topology.start(checkpoint=checkpoint, trigger="available") as run:
        run.awaitTermination()
    return perf_counter() - began


def _rebuild(topology: TridentTopology, checkpoint: Path) -> float:
    """Do as the command does."""
    began = perf_counter()
    plan, [swaps] = rebuilt(topology.plan(), {"count": "count_2"})
    options = StartOptions(checkpoint=checkpoint, trigger="available", max_pending=4)
    with start(plan, None, options) as run:
        run.awaitTermination()
    swap_states(swaps)
    seconds = perf_counter() - began
    [(factory, _)] = swaps
    counted = sum(value for _, value in factory.makeMap().getTuples())
    assert counted == WORDS, f"{counted} words are in the state"
    return seconds


class _InMemory(IBatchSpout):
    kind = "transactional"

    def __init__(self, batches: Sequence[Sequence[str]]) -> None:
        self._batches = batches

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        collector.emitColumns({"line": self._batches[batchId - 1]})

    def getOutputFields(self) -> Fields:
        return Fields.of("line string")
