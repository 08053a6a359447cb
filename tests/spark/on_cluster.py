"""What runs on a cluster, in one application; run as ``python -m``.

It counts words in a state that tasks update, where the first attempt of the first batch fails in a
task; then it sums partitions, as `tests.spark.partitioned_on_cluster` does, and writes rows, where
a task dies that has committed its own.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.spark import partitioned_on_cluster
from tests.spark.files import Files
from tests.spark.shared_rows import SharedFile
from trident import Count, FeederBatchSpout, Rows, TridentTopology
from trident.errors import FailedException
from trident.spark import local_session
from trident.states import OpaqueMap

BATCHES = [["a b a", "c"], ["b b", "d"]]


def main(master: str, folder: Path) -> None:
    """Count and sum, and leave what came of both in a file."""
    spark = local_session(
        **{
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.executorEnv.PYTHONPATH": str(Path.cwd()),
        }
    )
    found = {
        "words": counted(spark, folder),
        "sums": partitioned_on_cluster.summed(spark, folder / "sums"),
        "rows": written(spark, folder),
    }
    (folder / "result.json").write_text(json.dumps(found))
    spark.stop()


def counted(spark: Any, folder: Path) -> dict[str, Any]:
    """Count the batches."""

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
    return {"counts": counts, "attempts": attempts, "workers": workers}


def written(spark: Any, folder: Path) -> dict[str, Any]:
    """Write numbers to a table."""
    database = SharedFile(f"{folder}/shop.db")
    topology, spout = TridentTopology(), FeederBatchSpout("n long")
    topology.newStream("numbers", spout).partitionPersist(Rows(database, "t"))
    database.beside("die").touch()
    with topology.start(spark, folder / "rows-log", engine="spark") as run:
        spout.feed([(n,) for n in range(20)], 120)
        attempts = [progress.attempts for progress in run.groups["numbers"].recentProgress]
    with closing(sqlite3.connect(database.path)) as connection:
        rows = sorted(n for (n,) in connection.execute("SELECT n FROM t"))
    died = database.beside("die taken").exists()
    return {"rows": rows, "left": database.left(), "attempts": attempts, "died": died}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
