"""Counts words on Spark, by both clocks, and has the JVM killed meanwhile; run as ``python -m``."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from tests.spark.lines import Lines
from trident import FeederBatchSpout, TridentTopology
from trident.spark import local_session
from trident.spouts.feeder import FeedError
from trident.testing import hold_at


def main(folder: Path) -> None:
    """Print the errors with which the runs end."""
    spark = local_session(**{"spark.master": "local[1]"})
    lines = Lines(spark, folder)
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    topology.newStream("words", spout).each("word", str.upper, "upper string")
    spouts = topology.start(spark, engine="spark")
    with hold_at("before write") as hold, lines.start() as frames:
        hold.wait_reached()
        os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
        hold.release()
        with suppress(FeedError):
            spout.feed([("a",)], 60)
        for run in (frames, spouts):
            try:
                print("ended" if run.awaitTermination(60) else "hangs")
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
    spouts.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
