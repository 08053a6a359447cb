"""The driver is killed between the steps of a staged batch: every line counts once, as computed.

`tests.batch.test_staged` has every point, with a clock that does what Spark's does.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark import staged_program
from tests.spark.lines import PATIENCE, Lines
from tests.spark.staged_program import AFTER_SPARKS_COMMIT, PENDING, topology
from trident.backends import sqlite

KILLS = [
    "before stage",
    "after stage",
    AFTER_SPARKS_COMMIT,
    "after begin",
    "after write",
    "after ready",
    "after commit",
    "before unstage",
    "after unstage",
]


def run(folder: Path, point: str, txid: int) -> int:
    """Run the program until it is killed; return how it ended."""
    program = [sys.executable, "-m", staged_program.__name__, str(folder), point, str(txid)]
    return subprocess.run(program, timeout=280, check=False).returncode


def drawn(folder: Path) -> dict[str, int]:
    """How often each drawn word was counted."""
    state: Any = sqlite.transactional(folder / "drawn.db", "drawn").makeState()
    try:
        return dict(state.getTuples())
    finally:
        state.close()


@pytest.mark.timeout(1800)
def test_a_driver_that_is_killed_again_and_again_counts_every_line_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = Lines(spark, tmp_path)
    count = 2 * len(KILLS) + 2
    lines.write(*[f"all batches\nw{number} w{number % 3}" for number in range(count)])
    for number, point in enumerate(KILLS):
        assert run(tmp_path, point, 2 * number + 1) == -signal.SIGKILL, point
    with lines.start(topology(lines), max_pending=PENDING) as rest:
        rest.awaitTermination(PATIENCE)
    assert lines.counts == lines.expected
    assert set(drawn(tmp_path).values()) == {1}
    assert len(drawn(tmp_path)) == 2 * count
    assert list((lines.checkpoint / "lines" / "staged").iterdir()) == []
