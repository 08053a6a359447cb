"""A thousand batches in a row leave disk and memory as they were."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import NamedTuple

from tests.topologies.conftest import PATIENCE
from trident.api.topology import TridentTopology
from trident.backends import sqlite
from trident.operations.builtin import Count, MapGet, Split
from trident.spouts.feeder import FeederBatchSpout

_SENTENCE = [("the cow jumped over the moon",)]
_SLACK = 64 * 1024


class Footprint(NamedTuple):
    """Bytes in use while a run is active; files, and the bytes in them, after it."""

    memory: int
    files: int
    disk: int


def footprint(folder: Path, batches: int) -> Footprint:
    """Resume the word count for so many batches."""
    spout = FeederBatchSpout("sentence string")
    topology = TridentTopology()
    words = topology.newStream("sentences", spout).each("sentence", Split(), "word")
    counts = words.groupBy("word").persistentAggregate(
        sqlite.opaque(folder / "counts.db"), Count(), "count"
    )
    topology.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "n").project("n")
    with topology.start(None, folder / "run") as run:
        for _ in range(batches):
            spout.feed(_SENTENCE, PATIENCE)
            run.drpc.execute("count", "the")
        gc.collect()
        memory, _ = tracemalloc.get_traced_memory()
    files = [path for path in folder.rglob("*") if path.is_file()]
    return Footprint(memory, len(files), sum(path.stat().st_size for path in files))


def test_a_thousand_batches_leave_disk_and_memory_flat(tmp_path: Path) -> None:
    footprint(tmp_path, 20)
    tracemalloc.start()
    try:
        few, many = footprint(tmp_path, 200), footprint(tmp_path, 1000)
    finally:
        tracemalloc.stop()
    assert many.files <= few.files
    assert many.disk <= few.disk + _SLACK
    assert many.memory <= few.memory + _SLACK
