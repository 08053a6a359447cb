"""A word count whose log and state are elsewhere; run as ``python -m``, on any machine.

It knows nothing but two URLs, and ends as it is told to in the middle of a batch: killed, or
stopped until it is continued.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

from trident.api.topology import TridentTopology
from trident.batch.watchpoints import watching
from trident.operations.builtin import Count, Split, TupleCollectionGet
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout
from trident.states.values import Token
from trident.tuples.fields import Fields

_choose = random.Random(7)
SENTENCES = [" ".join(_choose.choices("abcdefghij", k=5)) for _ in range(60)]
COUNTS = Counter(" ".join(SENTENCES).split())


class Shifting(ITridentSpout):
    """Goes on after the last committed sentence, by as many as each attempt draws anew."""

    kind = "opaque"

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _Coordinator(self)

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return _Emitter(self)

    def getOutputFields(self) -> Fields:
        return Fields(sentence=str)

    done = False


class _Coordinator(BatchCoordinator):
    def __init__(self, spout: Shifting) -> None:
        self._spout = spout

    def isReady(self, txid: int) -> bool:
        return not self._spout.done


class _Emitter(Emitter):
    def __init__(self, spout: Shifting) -> None:
        self._spout = spout

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        start = metadata or 0
        end = start + random.Random(repr(token)).randint(1, 9)
        for sentence in SENTENCES[start:end]:
            collector.emit([sentence])
        self._spout.done = end >= len(SENTENCES)
        return min(end, len(SENTENCES))


def topology(state: str) -> TridentTopology:
    """The query ``counts`` answers with all counts."""
    made = TridentTopology()
    words = made.newStream("sentences", Shifting()).each("sentence", Split(), "word")
    counts = words.groupBy("word").persistentAggregate(state, Count(), "count")
    made.newDRPCStream("counts").stateQuery(counts, TupleCollectionGet(), "word, count").project(
        "word, count"
    )
    return made


def main(checkpoint: str, state: str, how: str, point: str) -> None:
    """Run to the end; send this process the signal `how` in the third batch, or none."""

    def watch(reached: str, token: Token) -> None:
        if reached == point and token.txid % 3 == 0 and token.attempt == 0:
            os.kill(os.getpid(), signal.Signals[how])

    with (
        watching(watch),
        topology(state).start(None, checkpoint, trigger="available", max_pending=3) as run,
    ):
        run.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
