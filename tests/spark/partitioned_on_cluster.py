"""Sums a partitioned spout on a cluster, while processes there are killed.

In batch 1 a Python worker is killed when it has emitted a partition, so that its task runs again.
In batch 2 the executor is killed that keeps what a partition emitted, before that is read.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.spark.shelves import Shelf, TransactionalShelf
from trident import Sum, TridentTopology
from trident.backends import sqlite
from trident.spark.group_engine import SparkGroupEngine

NUMBERS = {"a": [1, 2, 3, 4, 5], "b": [10, 20, 30], "c": [100]}


def summed(spark: Any, folder: Path) -> dict[str, Any]:
    """Sum the numbers of each partition."""
    folder.mkdir()
    shelf = Shelf(str(folder))
    for name, numbers in NUMBERS.items():
        shelf.add(name, [("x", number) for number in numbers])
    shelf.put("kill-a")
    factory = sqlite.opaque(folder / "sums.db", "sums")
    topology = TridentTopology()
    stream = topology.newStream("numbers", TransactionalShelf(shelf)).groupBy("part")
    stream.persistentAggregate(factory, "number", Sum(), "sum")
    with (
        _killed_once_before_computing(2, "a", shelf),
        topology.start(spark, folder / "checkpoint", trigger="available") as run,
    ):
        assert run.awaitTermination(120)
        attempts = [progress.attempts for progress in run.groups["numbers"].recentProgress]
    state: Any = factory.makeState()
    emitted = [event[3:] for event in shelf.events if event[1:3] == ["emitted", "a"]]
    return {"sums": dict(state.getTuples()), "attempts": attempts, "emitted": emitted}


@contextmanager
def _killed_once_before_computing(txid: int, name: str, shelf: Shelf) -> Iterator[None]:
    """Kill an executor when it keeps what a partition emitted of a batch, and nothing read it."""
    compute = SparkGroupEngine.compute
    killed: list[int] = []

    def kill_and_compute(self: SparkGroupEngine, record: Any, emitted: Any) -> Any:
        if record.token.txid == txid and not killed:
            killed.append(txid)
            _kill_executor_of(name, shelf)
        return compute(self, record, emitted)

    with patch.object(SparkGroupEngine, "compute", kill_and_compute):
        yield
    assert killed


def _kill_executor_of(name: str, shelf: Shelf) -> None:
    """Kill the executor whose worker has emitted a partition last."""
    emitted = [event for event in shelf.events if event[1:3] == ["emitted", name]]
    worker = emitted[-1][0]
    os.kill(_parent(_parent(worker)), signal.SIGKILL)  # the worker's is the daemon that forks it


def _parent(process: int) -> int:
    asked = ["ps", "-o", "ppid=", "-p", str(process)]
    return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
