"""A topology that commands name: it counts words into the store of an environment variable."""

from __future__ import annotations

import os
from typing import Any

from trident import Count, Fields, FixedBatchSpout, IBatchSpout, MapGet, TridentTopology

PLACE = "COUNTED_STATE"


class Endless(IBatchSpout):
    """Emits one word a batch, for ever."""

    kind = "transactional"

    def emitBatch(self, batchId: int, collector: Any) -> None:
        collector.emit(["dog"])

    def getOutputFields(self) -> Fields:
        return Fields(word=str)


def _counting(spout: Any) -> TridentTopology:
    made = TridentTopology()
    counted = made.newStream("words", spout).groupBy("word")
    counts = counted.persistentAggregate(os.environ[PLACE], Count(), "count")
    made.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "n").project("n")
    return made


def topology() -> TridentTopology:
    words = ["dog", "cat", "dog", "", "[bird]", "two\nlines", "\x1b[2J", "ä"]
    return _counting(FixedBatchSpout("word string", 3, *([word] for word in words)))


def endless() -> TridentTopology:
    return _counting(Endless())


def failing() -> TridentTopology:
    made = TridentTopology()
    made.newStream("words", Endless()).map(_fail, "length")
    return made


def _fail(word: str) -> int:
    raise ValueError(f"no length of {word}")


def with_length(key: tuple[str], count: int) -> tuple[tuple[str, int], int] | None:
    """The key and the value of a copy."""
    [word] = key
    return ((word, len(word)), 10 * count) if word else None
