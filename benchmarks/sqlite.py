"""The embedded state alone: folding 100,000 counts into it, beside an upsert by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks.by_hand import Counts
from benchmarks.report import Figure, alternated, throughput
from trident.backends import sqlite
from trident.operations.builtin import Count
from trident.operations.interfaces import CombinerAggregator
from trident.states.control import ControlRecord
from trident.states.values import Token

_KEYS = 100_000
_ROUNDS = 8


class Max(CombinerAggregator[int]):
    """A combiner that the database does not know: the state reads, combines and writes."""

    def init(self, tuple: tuple[int, ...]) -> int:
        return tuple[0]

    def combine(self, a: int, b: int) -> int:
        return max(a, b)

    def zero(self) -> int:
        return 0


def figures(folder: Path) -> Iterator[Figure]:
    """Measure batches of 100,000 keys, the first of which are all new."""
    words = [f"word{number}" for number in range(_KEYS)]
    random.Random(1).shuffle(words)
    keys = [word.encode() for word in words]
    amounts = [1 + number % 50 for number in range(_KEYS)]
    by_hand = Counts(folder / "by-hand.db")
    batches = iter(range(1, 1_000))

    def folded(prefix: str, combiner: CombinerAggregator[int]) -> Iterator[None]:
        state = sqlite.opaque(folder / "ours.db", prefix).makeState()
        for txid in range(1, 1_000):
            record = ControlRecord("a1", Token(txid, 0), txid - 1)
            state.control.begin(record)
            state.beginCommit(record)
            state.multiFold(keys, amounts, combiner)
            state.commit(record)
            state.control.announce(state.control.ready(record))
            yield
        state.close()

    adding, combining = folded("adding", Count()), folded("combining", Max())
    times = alternated(
        _ROUNDS,
        lambda: by_hand.add(next(batches), words, amounts),
        lambda: next(adding),
        lambda: next(combining),
    )
    by_hand.close()
    base, added, combined = times
    yield throughput("SQLite state: 100,000 keys, Count", _KEYS, added, base, target=0.5)
    yield throughput(
        "SQLite state: 100,000 keys, a combiner in Python", _KEYS, combined, base, target=0.2
    )
