"""A topology on a standalone cluster, whose tasks run in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.spark import on_cluster
from tests.spark.cluster import cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an application on the cluster has found."""
    folder = tmp_path_factory.mktemp("cluster")
    with cluster(folder) as master:
        program = [sys.executable, "-m", on_cluster.__name__, master, str(folder)]
        subprocess.run(program, timeout=500, check=True)
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_two_workers_count_like_one_process(found: dict[str, Any]) -> None:
    words = found["words"]
    assert words["counts"] == {"a": 2, "b": 3, "c": 1, "d": 1}
    assert words["workers"] == 2
    assert words["attempts"] == [1, 1]  # the cluster tries a failed task again by itself


def test_partitions_count_once_though_workers_and_executors_that_emit_them_are_killed(
    found: dict[str, Any],
) -> None:
    sums = found["sums"]
    assert sums["sums"] == {"a": 15, "b": 60, "c": 100}
    # Spark ran a task again; but nobody can make again what an executor has lost.
    assert sums["attempts"][:3] == [1, 2, 1]
    [first, again, *_] = sums["emitted"]
    assert first == again == [1, 0, 2]


def test_a_task_of_rows_that_spark_runs_twice_leaves_one_set(found: dict[str, Any]) -> None:
    rows = found["rows"]
    assert rows["died"]
    assert rows["attempts"] == [1]  # Spark ran the task again
    assert rows["rows"] == [*range(20)]
    assert rows["left"] == []
