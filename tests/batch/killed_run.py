"""A word count over a SQLite file that dies at a named point: ``folder point txid``."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from tests.batch.counting import STREAMS, CountingEngine, make_runner
from trident.backends.sqlite import SQLiteStore
from trident.batch.loop import SpoutLoop
from trident.batch.opening import LogTerms
from trident.log.checkpoint import Checkpoint
from trident.spouts.fixed import FixedBatchSpout
from trident.states.maps.factory import OpaqueMap
from trident.testing import kill_at

TEXT = [[word] for word in ("the cow jumped over the moon the man went to the store " * 3).split()]
EXPECTED = Counter(word for [word] in TEXT)


def run(folder: Path) -> dict[str, int | None]:
    """Run what is left of the text, six batches in all; return the counts."""
    checkpoint = Checkpoint(folder / "checkpoint")
    state = OpaqueMap(SQLiteStore(str(folder / "counts.db"), "words").open())
    try:
        runner = make_runner(checkpoint.log("words"), state)
        runner.open(LogTerms(streams=STREAMS))
        spout = FixedBatchSpout("word", 6, *TEXT)
        loop = SpoutLoop({"words": spout}, CountingEngine(state), runner, trigger="available")
        loop.start().awaitTermination(60)
        loop.stop()
        words = list(EXPECTED)
        return dict(zip(words, state.multiGet([(word,) for word in words]), strict=True))
    finally:
        state.close()
        checkpoint.release()


if __name__ == "__main__":
    folder, point, txid = sys.argv[1:]
    with kill_at(point, int(txid)) if point else nullcontext():
        run(Path(folder))
