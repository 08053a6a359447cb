"""A topology on a standalone cluster, whose tasks run in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import cluster


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_two_workers_count_like_one_process(tmp_path: Path) -> None:
    with cluster(tmp_path) as master:
        program = [sys.executable, "-m", "tests.spark.on_cluster", master, str(tmp_path)]
        subprocess.run(program, timeout=280, check=True)
    counts, attempts, workers = json.loads((tmp_path / "result.json").read_text())
    assert counts == {"a": 2, "b": 3, "c": 1, "d": 1}
    assert workers == 2
    assert attempts == [1, 1]  # the cluster tries a failed task again by itself


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_partitions_count_once_though_workers_and_executors_that_emit_them_are_killed(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path) as master:
        module = "tests.spark.partitioned_on_cluster"
        program = [sys.executable, "-m", module, master, str(tmp_path)]
        subprocess.run(program, timeout=280, check=True)
    found = json.loads((tmp_path / "result.json").read_text())
    for kind in ("OpaqueShelf", "TransactionalShelf"):
        assert found[kind]["sums"] == {"a": 15, "b": 60, "c": 100}
        # Spark ran a task again; but nobody can make again what an executor has lost.
        assert found[kind]["attempts"][:3] == [1, 2, 1]
        [first, again, *_] = found[kind]["emitted"]
        assert first == again == [1, 0, 2]
