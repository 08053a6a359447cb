"""Counts the rows of a shelf through Spark Connect and is killed there; run as ``python -m``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.spark.connect import connected
from tests.spark.lines import PATIENCE
from tests.spark.shelves import OpaqueShelf, Shelf
from tests.spark.test_tasks import in_files
from trident import Sum, TridentTopology
from trident.testing import kill_at


def count(session: object, folder: Path) -> None:
    """Count what is on the shelf of a folder."""
    topology = TridentTopology()
    stream = topology.newStream("rows", OpaqueShelf(Shelf(str(folder)))).groupBy("text")
    stream.persistentAggregate(in_files(folder / "state"), "number", Sum(), "sum")
    with topology.start(session, folder / "log", trigger="available") as run:
        run.awaitTermination(PATIENCE)


def main(url: str, folder: Path, point: str, txid: int) -> None:
    """Count until killed at a point of a batch."""
    with kill_at(point, txid), connected(url) as session:
        count(session, folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
