"""Starts a session of ours and leaves it in some way; run as ``python -m``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from trident.spark import local_session
from trident.spark.scratch import scratch


def main(way: str) -> None:
    """Shuffle, tell the folder and its files, and end."""
    spark = local_session(**{"spark.master": "local[1]"})
    spark.range(10).repartition(2).count()
    log = Path(spark.conf.get("spark.trident.log") or "")
    assert log.parent == scratch()
    assert log.is_file()
    assert scratch().stat().st_mode & 0o77 == 0
    print(scratch(), flush=True)
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "stopped":
        spark.stop()
        assert [path.name for path in scratch().iterdir()] == [".trident-scratch"]


if __name__ == "__main__":
    main(sys.argv[1])
