"""Many batches in a row leave disk and memory as they were."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import PATIENCE, Lines
from trident.batch.watchpoints import watching
from trident.states.values import Token

BATCHES = 100


def files_in(folder: Path) -> int:
    """All files but the list of those that Spark has read, which it never forgets."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return sum("sources" not in path.parts for path in found)


@pytest.mark.slow
def test_batches_in_a_row_leave_disk_and_memory_flat(spark: SparkSession, tmp_path: Path) -> None:
    lines = Lines(spark, tmp_path)
    lines.write(*[f"a b w{number % 10}" for number in range(BATCHES)])
    seen: dict[int, tuple[int, int]] = {}

    def look(point: str, token: Token) -> None:
        if point == "after announce":
            usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            seen[token.txid] = (files_in(lines.checkpoint), usage)

    kept = "spark.sql.streaming.minBatchesToRetain"
    before = spark.conf.get(kept)
    spark.conf.set(kept, "10")
    try:
        with watching(look), lines.start() as run:
            assert run.awaitTermination(2 * PATIENCE)
    finally:
        spark.conf.set(kept, before or "100")
    assert len(seen) == BATCHES
    assert lines.counts == lines.expected
    files, memory = zip(*[seen[txid] for txid in range(20, BATCHES + 1)], strict=True)
    assert max(files[40:]) <= max(files[:40]) + 5
    assert max(memory[40:]) - memory[40] < 14_000  # kilobytes
    assert files[-1] < 100
