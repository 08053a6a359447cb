"""A program that counts what Spark makes up, and whose session is stopped before its run ends."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path

from trident import Count, TridentTopology
from trident.backends import sqlite
from trident.spark import local_session
from trident.testing.servers.process import wait_until


def main(folder: Path) -> None:
    """Count until a batch is counted, and leave the rest to the end of the interpreter."""
    session = local_session()
    topology = TridentTopology()
    numbers = session.readStream.format("rate").option("rowsPerSecond", 50).load()
    numbers = numbers.selectExpr("value % 5 AS number")
    counts = sqlite.opaque(folder / "counts.db")
    stream = topology.newStream("numbers", numbers)
    stream.groupBy("number").persistentAggregate(counts, Count(), "count")
    run = topology.start(session, folder / "checkpoint")
    atexit.register(session.stop)  # called before the run's own
    wait_until(lambda: bool(run.recentProgress), 100)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
