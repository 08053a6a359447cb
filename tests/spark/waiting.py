"""Waits for its topology until Ctrl-C; run as ``python -m``, on Spark if told so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.spark.files import wait_for
from trident import Count, FixedBatchSpout, TridentTopology
from trident.backends import sqlite


def main(folder: Path, engine: str) -> None:
    """Count two groups' words; each group's first batch is under way until it may go on."""
    spark: Any = None
    topology = TridentTopology()

    def held(name: str) -> Any:
        def split(text: str) -> list[str]:
            (folder / f"began {name}").touch()
            wait_for(folder / "go on")
            return text.split()

        return split

    def count(name: str, stream: Any, field: str) -> None:
        words = stream.each(field, held(name), "word string").groupBy("word")
        words.persistentAggregate(sqlite.opaque(folder / f"{name}.db", name), Count(), name)

    if engine == "spark":
        from trident.spark import local_session

        spark = local_session(**{"spark.master": "local[2]"})
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "texts"))
        count("frames", topology.newStream("frames", lines), "value")
    spout = FixedBatchSpout("line string", 1, ("a b",), ("c",), cycle=True)
    count("spouts", topology.newStream("spouts", spout), "line")
    choice = "auto" if spark is None else "spark"
    with topology.start(spark, folder / "checkpoint", engine=choice) as run:
        run.awaitTermination()
    print("not reached")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
