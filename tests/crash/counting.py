"""A program that counts words and is killed while it does; run as ``python -m``.

It has two batch groups. In the one a replayed batch is as before, in the other it holds other
sentences: as many as a number drawn anew for each attempt.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trident.api.topology import TridentTopology
from trident.backends import sqlite
from trident.batch.watchpoints import watching
from trident.operations.builtin import Count, SnapshotGet, Split, TupleCollectionGet
from trident.operations.interfaces import TridentCollector
from trident.spouts.fixed import FixedBatchSpout
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout
from trident.states.values import Token
from trident.tuples.fields import Fields

_choose = random.Random(7)
SENTENCES = [" ".join(_choose.choices("abcdefghij", k=5)) for _ in range(600)]


class Shifting(ITridentSpout):
    """Goes on after the last committed sentence, by a few or many."""

    kind = "opaque"

    def __init__(self) -> None:
        self._some = _Some()

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _UntilDone(self._some)

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return self._some

    def getOutputFields(self) -> Fields:
        return Fields(sentence=str)


class _Some(Emitter):
    done = False

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        start = metadata or 0
        end = start + random.Random(repr(token)).randint(1, 9)
        for sentence in SENTENCES[start:end]:
            collector.emit([sentence])
        self.done = end >= len(SENTENCES)
        return min(end, len(SENTENCES))


class _UntilDone(BatchCoordinator):
    def __init__(self, some: _Some) -> None:
        self._some = some

    def isReady(self, txid: int) -> bool:
        return not self._some.done


def topology(folder: Path) -> TridentTopology:
    """Both groups; queries ``shifting`` and ``fixed`` answer with all counts and their total."""
    made = TridentTopology()
    fixed = FixedBatchSpout("sentence string", 4, *((text,) for text in SENTENCES))
    opaque = sqlite.opaque(folder / "counts.db")
    plain = sqlite.transactional(folder / "counts.db")
    for stream_id, spout, factory in (("fixed", fixed, plain), ("shifting", Shifting(), opaque)):
        words = made.newStream(stream_id, spout).each("sentence", Split(), "word")
        counts = words.groupBy("word").persistentAggregate(
            factory, Count(), "count", name=f"{stream_id}_words"
        )
        total = words.persistentAggregate(factory, Count(), "total", name=f"{stream_id}_total")
        (
            made.newDRPCStream(stream_id)
            .stateQuery(counts, TupleCollectionGet(), "word, count")
            .stateQuery(total, SnapshotGet(), "total")
            .project("word, count, total")
        )
    return made


def main(folder: Path, where: str, left: int) -> None:
    """Run until killed at a named point, the one after so many passed."""

    def watch(point: str, token: Token) -> None:
        nonlocal left
        if point == where:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    with watching(watch), topology(folder).start(None, folder / "run", trigger="available") as run:
        run.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
