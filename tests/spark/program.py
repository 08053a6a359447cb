"""Counts words on Spark and is killed while it does; run as ``python -m``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path

from tests.spark.lines import PATIENCE, Lines
from trident.spark import local_session
from trident.testing import kill_at


def main(folder: Path, point: str, txid: int) -> None:
    """Count all files of a folder, until killed at a point of a batch."""
    lines = Lines(local_session(**{"spark.master": "local[2]"}), folder)
    with kill_at(point, txid) if point else nullcontext(), lines.start() as run:
        run.awaitTermination(PATIENCE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
