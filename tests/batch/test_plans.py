"""What a transactional coordinator plans: once a batch, whatever fails before it is in the log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.batch.counting import CountingEngine, counts, make_runner, memory_state
from trident.batch.loop import SpoutLoop
from trident.batch.opening import LogTerms
from trident.log.log import MemoryLog
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout
from trident.states.errors import FailedException
from trident.states.values import Token
from trident.tuples.fields import Fields


class HandsOut(ITridentSpout, BatchCoordinator, Emitter):
    """Its coordinator hands each word out once: it goes on by itself, not by the metadata."""

    kind = "transactional"

    def __init__(self, *words: str) -> None:
        self.words = list(words)
        self.asked: list[int] = []

    def getOutputFields(self) -> Fields:
        return Fields("word")

    def getCoordinator(self, *_: Any) -> BatchCoordinator:
        return self

    def getEmitter(self, *_: Any) -> Emitter:
        return self

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        self.asked.append(txid)
        return self.words.pop(0)

    def isReady(self, txid: int) -> bool:
        return bool(self.words)

    def emitBatch(self, token: Token, metadata: Any, collector: SpoutCollector) -> None:
        collector.emit([metadata])

    def success(self, token: Any) -> None:
        return None


class FailsOnce(CountingEngine):
    failed = False

    def compute(self, record: Any, emitted: Any) -> Any:
        if record.token.txid == 2 and not self.failed:
            self.failed = True
            raise FailedException("no")
        return super().compute(record, emitted)


@pytest.mark.parametrize("max_pending", [1, 3])
def test_a_batch_is_planned_once_also_where_it_fails_before_it_begins(max_pending: int) -> None:
    state, spout = memory_state(), HandsOut("a", "b", "c", "d")
    runner = make_runner(MemoryLog("log"), state)
    runner.open(LogTerms(streams={"words": "word"}))
    loop = SpoutLoop(
        {"words": spout}, FailsOnce(state), runner, trigger="available", max_pending=max_pending
    ).start()
    assert loop.awaitTermination(20)
    assert spout.asked == [1, 2, 3, 4]
    assert counts(state, "a b c d") == [1, 1, 1, 1]
