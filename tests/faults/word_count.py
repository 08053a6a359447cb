"""A word count that goes through its words in batches, whatever befalls its store."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trident.api.run import Run
from trident.api.topology import TridentTopology
from trident.batch.watchpoints import POINTS, watching
from trident.operations.builtin import Count
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout
from trident.states.kinds import OPAQUE
from trident.states.maps.factory import MapStateFactory
from trident.states.serializers import JSONSerializer
from trident.states.values import OpaqueValue, Token
from trident.tuples.fields import Fields

PATIENCE = 100.0


class WordCount:
    """Counts words in a state and keeps its log in a folder, as often as it is run.

    Parameters
    ----------
    factory : MapStateFactory
        Makes the state.
    folder : Path
        For the checkpoint.
    batches : int
        How many there are, if none is retried: a batch that is retried is a smaller one.
    size : int
        How many words a batch has, and how many different ones there are.
    spark : SparkSession or None
        Where it runs; None for the local engine.
    """

    def __init__(
        self,
        factory: MapStateFactory,
        folder: Path,
        batches: int = 4,
        size: int = 400,
        spark: Any = None,
    ) -> None:
        self.spark = spark
        self.factory = factory.named("count")
        self.folder = folder
        self.size = size
        self.vocabulary = [f"w{number}" for number in range(size)]
        self.words = random.Random(7).choices(self.vocabulary, k=batches * size)

    def start(self, **options: Any) -> Run:
        """Start a run that ends when all words are counted."""
        topology = TridentTopology()
        stream = topology.newStream("words", _Words(self.words, self.size))
        words = stream.groupBy("word")
        counts = words.persistentAggregate(self.factory, Count(), "count", name="count")
        checkpoint = self.folder / "checkpoint"
        if self.spark is not None:
            options["engine"] = "spark"
            counts.parallelismHint(2)  # or the driver would write so few counts
        return topology.start(self.spark, checkpoint, trigger="available", **options)

    def run(self, **options: Any) -> dict[int, int]:
        """Count what is not counted yet; return the attempts of each batch that had several."""
        with self.start(**options) as run:
            assert run.awaitTermination(PATIENCE)
            progress = run.groups["words"].recentProgress
        return {done.txid: done.attempts for done in progress if done.attempts > 1}

    @property
    def counts(self) -> Counter[str]:
        """What the state has committed."""
        state = self.factory.makeState()
        try:
            found = state.multiGet([(word,) for word in self.vocabulary])
        finally:
            state.close()
        return Counter(
            {word: n for word, n in zip(self.vocabulary, found, strict=True) if n is not None}
        )

    def written(self, txid: int) -> float:
        """Return how much of a first attempt is in the store, committed or not: from 0 to 1.

        No batch before it may have been retried.
        """
        keys = [
            word.encode() for word in set(self.words[(txid - 1) * self.size : txid * self.size])
        ]
        backing = self.factory.store.open()
        try:
            found = backing.multiGet(keys)
        finally:
            backing.close()
        return sum(_written_by(value) == txid for value in found) / len(keys)

    def counted(self) -> int:
        """Return how many words are counted, after a look that each was counted once."""
        counts = self.counts
        assert counts == Counter(self.words[: counts.total()])
        return counts.total()

    def counted_all(self) -> bool:
        """Return whether each word was counted, once."""
        return self.counted() == len(self.words)


def _written_by(entry: Any) -> int | None:
    """Return the batch that has written an opaque entry, as a store keeps it."""
    if entry is None or isinstance(entry, OpaqueValue):
        return entry and entry.txid
    [stored] = OPAQUE.loads([entry], JSONSerializer())
    return stored and stored.txid


class _Words(ITridentSpout):
    """Goes on after the last committed word; a retried batch has half of the words it had."""

    kind = "opaque"

    def __init__(self, words: list[str], size: int) -> None:
        self._part = _Part(words, size)

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _UntilDone(self._part)

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return self._part

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


class _Part(Emitter):
    def __init__(self, words: list[str], size: int) -> None:
        self._words = words
        self._size = size
        self.done = False

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        start = metadata or 0
        end = start + (self._size // 2 if token.attempt else self._size)
        for word in self._words[start:end]:
            collector.emit([word])
        self.done = end >= len(self._words)
        return min(end, len(self._words))


class _UntilDone(BatchCoordinator):
    def __init__(self, part: _Part) -> None:
        self._part = part

    def isReady(self, txid: int) -> bool:
        return not self._part.done


@contextmanager
def at(point: str, txid: int, attempt: int, do: Callable[[], object]) -> Iterator[None]:
    """Do something when that attempt comes to the point, in its thread; it has to come there."""
    assert point in POINTS
    done = []

    def watch(reached: str, token: Token) -> None:
        if reached == point and token == (txid, attempt):
            done.append(token)
            do()

    with watching(watch):
        yield
    assert done, f"attempt {attempt} of batch {txid} did not come to {point!r}"


@contextmanager
def when_waiting(do: Callable[[], object]) -> Iterator[None]:
    """Do something when a batch begins to wait for its store, in its thread; one has to."""
    waiting = []

    def tell(record: logging.LogRecord) -> bool:
        if " waits: " in record.getMessage() and not waiting:
            waiting.append(record)
            do()
        return True

    logger = logging.getLogger("trident")
    logger.addFilter(tell)
    try:
        yield
    finally:
        logger.removeFilter(tell)
    assert waiting, "no batch had to wait"


def assert_told(caplog: pytest.LogCaptureFixture, place: str, advice: str) -> None:
    """Every line of the log has to name the store's place, one has to give `advice`."""
    told = [record.getMessage() for record in caplog.records if record.name == "trident"]
    assert told, "nothing was told"
    assert all(place in line for line in told), told
    assert any(advice in line for line in told), told
