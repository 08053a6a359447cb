"""Counts words with Spark's own checkpoint at a URL, until killed or held at a point of a batch.

Run as ``python -m``. It counts what `tests.spark.staged_program` does. Where it is held it makes a
file ``reached``, and goes on when there is a file ``release``. Where it waits for a file system it
makes a file ``waits``.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from pathlib import Path

from tests.spark.files import wait_for
from tests.spark.lines import PATIENCE, Lines
from tests.spark.staged_program import PENDING, topology
from trident.batch.watchpoints import watching
from trident.spark import local_session
from trident.states.values import Token


class Noted(logging.Handler):
    """Makes a file when a batch waits."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def emit(self, record: logging.LogRecord) -> None:
        if " waits: " in record.getMessage():
            self.path.touch()


def main(folder: Path, checkpoint: str, url: str, settings: str, way: str, txid: int) -> None:
    """Count all files of a folder; `way` is what happens, and at which point."""
    what, _, point = way.partition(" ")

    def watch(reached: str, token: Token) -> None:
        if (reached, token.txid) != (point, txid):
            return
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        (folder / "reached").touch()
        wait_for(folder / "release")

    logging.getLogger("trident").addHandler(Noted(folder / "waits"))
    spark = local_session(**{"spark.master": "local[2]", **json.loads(settings)})
    options = {"trigger": "available", "spark_checkpoint": url, "max_pending": PENDING}
    with (
        watching(watch),
        topology(Lines(spark, folder)).start(spark, checkpoint, **options) as run,
    ):
        run.awaitTermination(PATIENCE)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:6], int(sys.argv[6]))
