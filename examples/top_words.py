"""The words that occur most, kept up to date from the new values of the counts.

    python examples/top_words.py

Each batch of lines changes some counts. The new values of these go on as a stream, and the list of
the first words is a second state made of them, committed with the same batch. Nothing reads all
counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from trident import (
    CombinerAggregator,
    Count,
    FeederBatchSpout,
    MemoryMapState,
    SnapshotGet,
    Split,
    TridentTopology,
    TridentTuple,
)

BATCHES = [
    ["the cat sat on the mat", "the dog sat"],
    ["a cat and a dog ran", "a man and a cat"],
    ["the dog and the man", "the end of the day and of the dog"],
]

Ranking = list[list[Any]]
"""``[[count, word], …]``, the highest count first; JSON keeps it as it is."""


class First(CombinerAggregator[Ranking]):
    """The `n` words of the highest counts.

    Counts only grow. So a word that is among the first was so before, or has been changed by this
    batch; and of two counts of a word the higher one is the newer.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def init(self, tuple: TridentTuple) -> Ranking:
        return [[tuple["count"], tuple["word"]]]

    def combine(self, a: Ranking, b: Ranking) -> Ranking:
        counts: dict[str, int] = {}
        for count, word in a + b:
            counts[word] = max(count, counts.get(word, 0))
        ranked = sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
        return [[count, word] for word, count in ranked[: self.n]]

    def zero(self) -> Ranking:
        return []


def top_words(lines: FeederBatchSpout, n: int) -> TridentTopology:
    """Describe the counts, the list of the first `n`, and a query of it."""
    topology = TridentTopology()
    counts = (
        topology.newStream("lines", lines)
        .each("line", Split(), "word")
        .groupBy("word")
        .persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    )
    first = counts.newValuesStream().persistentAggregate(
        MemoryMapState.Factory(), "word, count", First(n), "first"
    )
    topology.newDRPCStream("top").stateQuery(first, "args", SnapshotGet(), "first").project("first")
    return topology


def in_a_line(ranking: Sequence[Sequence[Any]]) -> str:
    return "  ".join(f"{word} {count}" for count, word in ranking)


def main() -> None:
    lines = FeederBatchSpout("line string")
    with top_words(lines, 3).start() as run:
        for number, batch in enumerate(BATCHES, 1):
            lines.feed([line] for line in batch)
            [[first]] = json.loads(run.drpc.execute("top", ""))
            print(f"batch {number}: {in_a_line(first)}")


if __name__ == "__main__":
    main()
