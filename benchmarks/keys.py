"""A SQLite state of 100 k, 1 M and 10 M keys: folding batches of 100,000 Zipf words into it.

Beside an upsert by hand, into a table of as many words. Bars: 0.5 of it, as `sqlite` has; and 0.9
at 10 M keys, where the pages that a batch writes bound it, and ours go in the order of the keys.
The last line is the rate at 10 M keys, with the goal of 0.4 M words a second, which SQLite misses:
docs/performance.md says why.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.by_hand import Counts
from benchmarks.report import Figure, alternated, rate, throughput
from benchmarks.words import zipf_words
from trident.backends import sqlite
from trident.operations.builtin import Count
from trident.states.control import ControlRecord
from trident.states.values import Token

_WORDS = 100_000
_ROUNDS = 8
_TARGETS = {100_000: 0.5, 1_000_000: 0.5, 10_000_000: 0.9}
_GOAL = 400_000


def figures(folder: Path) -> Iterator[Figure]:
    """Measure states that hold every word before the first batch."""
    own: Sequence[float] = ()
    for keys, target in _TARGETS.items():
        words = zipf_words(_WORDS * (_ROUNDS + 1), keys)
        batches = [Counter(words[at : at + _WORDS]) for at in range(0, len(words), _WORDS)]
        ours = _folded(folder / f"{keys}.db", keys, batches)
        by_hand = _added(folder / f"{keys}-by-hand.db", keys, batches)
        own, base = alternated(_ROUNDS, ours.__next__, by_hand.__next__)
        yield throughput(f"SQLite state of {keys:,} keys", _WORDS, own, base, target=target)
    yield rate("SQLite state of 10,000,000 keys", _WORDS, own, target=_GOAL)


def _folded(path: Path, keys: int, batches: Sequence[Counter[str]]) -> Iterator[None]:
    state = sqlite.opaque(path, "count").makeState()
    for txid, batch in enumerate([Counter(["word0"]), *batches], 1):
        record = ControlRecord("a1", Token(txid, 0), txid - 1)
        state.control.begin(record)
        state.beginCommit(record)
        state.multiFold([word.encode() for word in batch], list(batch.values()), Count())
        state.commit(record)
        state.control.announce(state.control.ready(record))
        if txid == 1:
            _fill(path, "INSERT OR IGNORE INTO count VALUES (?, 1, 0, 1, NULL)", keys)
        else:
            yield


def _added(path: Path, keys: int, batches: Sequence[Counter[str]]) -> Iterator[None]:
    counts = Counts(path)
    _fill(path, "INSERT INTO counts VALUES (?, 1)", keys)
    for number, batch in enumerate(batches):
        counts.add(number, batch, list(batch.values()))
        yield


def _fill(path: Path, statement: str, keys: int) -> None:
    """Put each word into a table; in order, which is seven times as fast."""
    words = sorted([f"word{number}" for number in range(keys)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(statement, ((word,) for word in words))
