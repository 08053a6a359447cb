"""Counts words on Spark with batches that overlap, and is killed while it does.

Run as ``python -m``. Beside the words it counts one that is drawn anew whenever a line is computed,
in a map that can't take back what an earlier attempt has written.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from pathlib import Path

from tests.spark.files import wait_for
from tests.spark.lines import PATIENCE, Lines
from trident import Count, Split, TridentTopology
from trident.backends import sqlite
from trident.batch.watchpoints import watching
from trident.spark import local_session
from trident.states.values import Token

AFTER_SPARKS_COMMIT = "after Spark's commit"
PENDING = 3


def drawn(text: str) -> str:
    """A word that nobody has drawn before."""
    return uuid.uuid4().hex


def topology(lines: Lines) -> TridentTopology:
    """Count the words of all lines, and one that is drawn for each line."""
    made = TridentTopology()
    stream = made.newStream("lines", lines.stream(), kind="opaque")
    words = stream.each("value", Split(), "word string").groupBy("word")
    words.persistentAggregate(lines.factory, Count(), "count")
    draws = stream.map(drawn, "draw string").groupBy("draw")
    kept = sqlite.transactional(lines.folder / "drawn.db", "drawn")
    draws.persistentAggregate(kept, Count(), "draws")
    return made


def main(folder: Path, point: str, txid: int) -> None:
    """Count all files of a folder, until killed at a point of a batch, with the next one staged."""
    lines = Lines(local_session(**{"spark.master": "local[2]"}), folder)
    group = lines.checkpoint / "lines"

    def watch(reached: str, token: Token) -> None:
        if token.txid != txid:
            return
        if point == AFTER_SPARKS_COMMIT and reached == "before begin":
            wait_for(group / "spark" / "commits" / str(txid - 1))
        elif reached != point:
            return
        elif not reached.endswith(" stage"):
            wait_for_staged(group / "staged", txid + 1)
        os.kill(os.getpid(), signal.SIGKILL)

    with watching(watch), lines.start(topology(lines), max_pending=PENDING) as run:
        run.awaitTermination(PATIENCE)


def wait_for_staged(folder: Path, txid: int) -> None:
    """Wait until a batch is staged."""
    while not list(folder.glob(f"{txid:020d}-*")):
        wait_for(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
