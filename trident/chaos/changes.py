"""A record for tables: changes as a database's log tells them, and what tables make of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from trident.chaos.record import Record
from trident.chaos.truth import Key, Reading, Truth

CHANGES, SUMS, MIRROR = TABLES = ("changes", "sums", "mirror")
"""All changes; how many each key has had, and the sum of their values; the last one of each key
that was not deleted."""
HOW_MANY: Key = (CHANGES, None)


class RowChange(NamedTuple):
    """The n-th change: the row of a key is created (c), updated (u) or deleted (d)."""

    n: int
    k: int
    op: str
    v: int | None

    @staticmethod
    def parse(word: str) -> RowChange:
        """Return the change that a word of the record is."""
        n, k, op, v = word.split(",")
        return RowChange(int(n), int(k), op, int(v) if v else None)


@dataclass(frozen=True)
class Changes(Record):
    """So many changes, each a word."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        choose = random.Random(self.seed)
        there: set[int] = set()
        words = []
        for n in range(self.length):
            k = choose.randrange(self.different)
            op = choose.choice("uud") if k in there else "c"
            there ^= {k} if op != "u" else set()
            words.append(f"{n},{k},{op},{'' if op == 'd' else choose.randint(1, 9)}")
        return tuple(words)


class ChangesTruth(Truth):
    """What the tables hold after so many changes.

    Examples
    --------
    >>> truth = ChangesTruth(Changes("7", 3))
    >>> truth.words_in(truth.after(2)), truth.words_in({**truth.after(2), ("mirror", (0,)): "?"})
    (2, None)
    """

    def __init__(self, record: Record) -> None:
        super().__init__(())
        self._changes = list(map(RowChange.parse, record.words))
        self._held: dict[Key, Any] = {}
        self.whole = dict(self.after(record.length))

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return tuple(self.whole)

    def words_in(self, reading: Reading) -> int | None:
        words = reading.get(HOW_MANY, 0)
        return words if words <= len(self._changes) and reading == self.after(words) else None

    def after(self, words: int) -> Reading:
        """Return what a reader finds after so many changes; the next call changes it."""
        held = self._held
        if words < held.get(HOW_MANY, 0):
            held.clear()
        for n, k, op, v in self._changes[held.get(HOW_MANY, 0) : words]:
            held[HOW_MANY] = n + 1
            held[CHANGES, (n, k, v)] = 1
            held[SUMS, (k, "changes")] = held.get((SUMS, (k, "changes")), 0) + 1
            held[SUMS, (k, "v")] = held.get((SUMS, (k, "v")), 0) + (v or 0)
            held[MIRROR, (k,)] = f"change {n}, {v}"
            if op == "d":
                del held[MIRROR, (k,)]
        return held
