"""Counts words on Spark, and has the JVM killed meanwhile; run as ``python -m``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.spark.lines import Lines
from trident.spark import local_session
from trident.testing import hold_at


def main(folder: Path) -> None:
    """Print the error with which the run ends."""
    spark = local_session(**{"spark.master": "local[1]"})
    lines = Lines(spark, folder)
    with hold_at("before write") as hold, lines.start() as run:
        hold.wait_reached()
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        hold.release()
        try:
            print("ended" if run.awaitTermination(60) else "hangs")
        except Exception as error:
            print(type(error).__name__)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
