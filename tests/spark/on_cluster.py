"""Counts words on a cluster, in a state that tasks update; run as ``python -m``.

The first attempt of the first batch fails in a task.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.spark.files import Files
from trident import Count, FeederBatchSpout, TridentTopology
from trident.errors import FailedException
from trident.spark import local_session
from trident.states import OpaqueMap

BATCHES = [["a b a", "c"], ["b b", "d"]]


def main(master: str, folder: Path) -> None:
    """Count the batches, and leave what was counted in a file."""
    spark = local_session(
        **{
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": str(Path.cwd()),
        }
    )

    def split(text: str) -> list[str]:
        marker = folder / "failed"
        if not marker.exists():
            marker.touch()
            raise FailedException("the first task fails")
        return text.split()

    topology, spout = TridentTopology(), FeederBatchSpout("text string")
    factory = OpaqueMap.factory(Files(str(folder)), name="counts")
    words = topology.newStream("texts", spout).each("text", split, "word string")
    words.groupBy("word").persistentAggregate(factory, Count(), "count").parallelismHint(2)
    with topology.start(spark, folder / "checkpoint", engine="spark") as run:
        for batch in BATCHES:
            spout.feed([(text,) for text in batch], 120)
        attempts = [progress.attempts for progress in run.groups["texts"].recentProgress]
    keys = [(word,) for word in "abcd"]
    counts = dict(zip("abcd", factory.makeState().multiGet(keys), strict=True))
    workers = spark.sparkContext.defaultParallelism
    (folder / "result.json").write_text(json.dumps([counts, attempts, workers]))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
