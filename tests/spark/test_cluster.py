"""A topology on a standalone cluster, whose tasks run in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.cluster import cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster for the whole module: each test is an application of its own."""
    with cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


def test_two_workers_count_like_one_process(master: str, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.spark.on_cluster", master, str(tmp_path)]
    subprocess.run(program, timeout=280, check=True)
    counts, attempts, workers = json.loads((tmp_path / "result.json").read_text())
    assert counts == {"a": 2, "b": 3, "c": 1, "d": 1}
    assert workers == 2
    assert attempts == [1, 1]  # the cluster tries a failed task again by itself


def test_partitions_count_once_though_workers_and_executors_that_emit_them_are_killed(
    master: str, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "tests.spark.partitioned_on_cluster", master, str(tmp_path)]
    subprocess.run(program, timeout=280, check=True)
    found = json.loads((tmp_path / "result.json").read_text())
    for kind in ("OpaqueShelf", "TransactionalShelf"):
        assert found[kind]["sums"] == {"a": 15, "b": 60, "c": 100}
        # Spark ran a task again; but nobody can make again what an executor has lost.
        assert found[kind]["attempts"][:3] == [1, 2, 1]
        [first, again, *_] = found[kind]["emitted"]
        assert first == again == [1, 0, 2]
