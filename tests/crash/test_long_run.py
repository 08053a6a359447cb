"""A thousand batches in a row leave disk and memory as they were."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.topologies.conftest import PATIENCE
from trident.backends import sqlite
from trident.builtin import Count, MapGet, Split
from trident.spouts.feeder import FeederBatchSpout
from trident.topology import TridentTopology

_SENTENCE = [("the cow jumped over the moon",)]


class Footprint(NamedTuple):
    memory: int
    files: int
    bytes: int


def footprint(folder: Path) -> Footprint:
    gc.collect()
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return Footprint(tracemalloc.get_traced_memory()[0], len(files), size)


def test_a_thousand_batches_leave_disk_and_memory_flat(tmp_path: Path) -> None:
    spout = FeederBatchSpout("sentence string")
    topology = TridentTopology()
    words = topology.newStream("sentences", spout).each("sentence", Split(), "word")
    counts = words.groupBy("word").persistentAggregate(
        sqlite.opaque(tmp_path / "counts.db"), Count(), "count"
    )
    topology.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "n").project("n")

    def batches(number: int, ask: Callable[[str, str], str]) -> Footprint:
        for _ in range(number):
            spout.feed(_SENTENCE, PATIENCE)
            ask("count", "the")
        return footprint(tmp_path)

    tracemalloc.start()
    try:
        with topology.start(None, tmp_path / "run") as run:
            ask = run.drpc.execute
            early = batches(200, ask)
            late = batches(1000, ask)
            assert ask("count", "the") == "[[2400]]"
    finally:
        tracemalloc.stop()
    assert late.files <= early.files + 1
    assert late.bytes <= early.bytes + 64 * 1024
    assert late.memory <= early.memory + 64 * 1024
