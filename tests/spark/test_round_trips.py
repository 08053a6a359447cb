"""How often a batch asks its store: once for reading and once for writing, in each task."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from tests.spark.files import FileMap
from tests.topologies.conftest import feed
from trident import Count, FeederBatchSpout, TridentTopology
from trident.states import OpaqueMap, StateFactory, StateType

_MANY = 20_000
"""More than a batch has that is worth one task only."""


class TalliedMap(OpaqueMap):
    """Leaves in a folder what it has asked its store for."""

    def close(self) -> None:
        folder = self.backing._folder  # type: ignore[attr-defined]
        told = {**asdict(self.counts), "control_calls": self.control.calls}
        (folder / f"{uuid4().hex}.tally").write_text(json.dumps(told))
        super().close()


@dataclass(frozen=True)
class Tallied(StateFactory):
    """Makes states in a folder; pickles."""

    folder: str
    kind = StateType.OPAQUE

    def makeState(self, *_: Any, **__: Any) -> TalliedMap:
        return TalliedMap(FileMap(Path(self.folder)))


def tallies(folder: Path) -> list[dict[str, int]]:
    """Take what the tasks have left since the last time."""
    found = []
    for file in folder.glob("*.tally"):
        found.append(json.loads(file.read_text()))
        file.unlink()
    return found


def test_each_task_reads_once_and_writes_once(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "counts"
    folder.mkdir()
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    words = topology.newStream("words", spout).groupBy("word")
    counts = Tallied(str(folder))
    words.persistentAggregate(counts, Count(), "count").parallelismHint(2)
    batch = [(f"w{n}",) for n in range(_MANY)]
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        feed(run, spout, batch, batch)
        done = tallies(folder)
        assert len(done) == 2 * 2, "two batches of two tasks"
        assert {(task["gets"], task["puts"], task["control_calls"]) for task in done} == {(1, 1, 0)}
        assert sum(task["keys_written"] for task in done) == 2 * _MANY
    [driver] = tallies(folder)
    assert (driver["gets"], driver["puts"]) == (0, 0), "the driver touches the control record alone"
    assert driver["control_calls"] > 0
