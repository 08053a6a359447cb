"""Small batches on the local engine: two short lines, seven words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Figure, limit, timed
from benchmarks.topologies import word_count
from trident import FixedBatchSpout, MemoryMapState
from trident.backends import sqlite
from trident.states.state import StateFactory

_BATCHES = 500
_LINES = [("the cat sat on",), ("the dog ran",)] * _BATCHES


def figures(folder: Path) -> Iterator[Figure]:
    """Measure whole runs of 500 batches; the durable log is forced to the disk once a batch."""
    yield limit(
        "local engine: a small batch, memory state, no durable log",
        _a_batch(MemoryMapState.Factory(), None),
        target=1e-3,
    )
    yield limit(
        "local engine: a small batch, SQLite state, no durable log",
        _a_batch(sqlite.opaque(folder / "counts.db"), None),
        target=2e-3,
    )
    yield limit(
        "local engine: a small batch, SQLite state, durable log",
        _a_batch(sqlite.opaque(folder / "logged.db"), folder / "checkpoint"),
        target=5e-3,
    )


def _a_batch(state: StateFactory, checkpoint: Path | None) -> float:
    def run(lines: list[tuple[str]], into: StateFactory, at: Path | None) -> float:
        topology = word_count(FixedBatchSpout("line string", 2, *lines), "line", into)
        with topology.start(checkpoint=at) as started:
            return timed(started.processAllAvailable)

    run(_LINES[:100], MemoryMapState.Factory(), None)
    return run(_LINES, state, checkpoint) / _BATCHES
