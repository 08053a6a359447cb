"""A program as a user writes it, fully typed: type checkers pass it, and it runs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import assert_type

import trident
from trident import (
    CombinerAggregator,
    Count,
    FixedBatchSpout,
    Function,
    MapGet,
    QueryFunction,
    Run,
    TridentCollector,
    TridentTopology,
    TridentTuple,
)
from trident.states import SnapshottableMap


class Words(Function):
    """Splits a line, and leaves out words that are short."""

    def __init__(self, shortest: int) -> None:
        self.shortest = shortest

    def execute(self, tuple: TridentTuple, collector: TridentCollector) -> None:
        for word in str(tuple[0]).split():
            if len(word) >= self.shortest:
                collector.emit([word])


class Longest(CombinerAggregator[str]):
    """The longest word; of several the first in the alphabet."""

    def init(self, tuple: TridentTuple) -> str:
        return str(tuple[0])

    def combine(self, a: str, b: str) -> str:
        return min(a, b, key=lambda word: (-len(word), word))

    def zero(self) -> str:
        return ""


class Percent(QueryFunction[SnapshottableMap, int | None]):
    """How many of a hundred tuples had the word."""

    def batchRetrieve(
        self, state: SnapshottableMap, tuples: Sequence[TridentTuple]
    ) -> list[int | None]:
        return state.multiGet([(each[0],) for each in tuples])

    def execute(self, tuple: TridentTuple, result: int | None, collector: TridentCollector) -> None:
        collector.emit([100 * (result or 0) // 6])


def declare(place: str) -> TridentTopology:
    topology = TridentTopology()
    lines = FixedBatchSpout("line string", 1, ("the cow saw a cat",), ("the dog saw a cow",))
    words = topology.newStream("lines", lines).each("line", Words(2), "word string")
    counts = words.groupBy("word").persistentAggregate(place, Count(), "count")
    words.persistentAggregate(trident.backends.sqlite.opaque("longest.db"), "word", Longest(), "l")
    asked = topology.newDRPCStream("share").stateQuery(counts, "args", MapGet(), "count")
    asked.stateQuery(counts, "args", Percent(), "percent long").project("count", "percent")
    return topology


def main(place: str, engine: str) -> None:
    topology = declare(place)
    spark = trident.spark.local_session() if engine == "spark" else None
    with topology.start(spark, Path("checkpoint"), retries=1) as run:
        assert_type(run, Run)
        run.processAllAvailable()
        answer = run.drpc.execute("share", "cow")
        assert_type(answer, str)
        print(answer, run.lastProgress.txid if run.lastProgress else 0)
    state: SnapshottableMap = trident.backends.state_from_url(f"{place}?prefix=count").makeState()
    print(state.multiGet([("saw",), ("dog",)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
