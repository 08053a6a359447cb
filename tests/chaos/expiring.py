"""Visits whose counts expire: some time after its last visit nobody has come yet."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from trident.api.topology import TridentTopology
from trident.chaos.by_hand import CountedByHand, Entries, Write
from trident.chaos.contender import (
    Contender,
    EpisodePlace,
    MapContender,
    Reader,
    TopologyFunction,
    WordSource,
)
from trident.chaos.process import Life
from trident.chaos.record import Record
from trident.chaos.store import MapStore
from trident.chaos.truth import Key, Reading, Truth
from trident.chaos.ways import MOST, Way
from trident.operations.builtin import Count

_LIVES = 40
"""Milliseconds that a count lives; there is a visit in each."""
_LATE = 3
"""How many of them a visit is late, at most."""
_SOON = _LIVES - _LATE - MOST - 3
_LATER = _LIVES + _LATE + 2
"""Who comes again does so within the first, or after the second, visits. Between them it would
depend on how visits are cut into batches whether the count has expired."""
_LATELY = 0.8
"""How many visits are of those who have been there lately."""

COUNT, TOTAL = "count", "total"


@dataclass(frozen=True)
class Visits(Record):
    """So many visits, each a word: who comes, and when."""

    @cached_property
    def words(self) -> tuple[str, ...]:
        choose = random.Random(self.seed)
        last: dict[int, int] = {}
        words = []
        for now in range(self.length):
            since = {who: now - last.get(who, -_LATER) for who in range(self.different)}
            here = [who for who, gap in since.items() if gap <= _SOON]
            others = [who for who, gap in since.items() if gap >= _LATER]
            known = not others or (here and choose.random() < _LATELY)
            who = choose.choice(here if known else others)
            last[who] = now
            words.append(f"w{who},{now - choose.randint(0, _LATE)}")
        return tuple(words)


def visit(word: str) -> tuple[str, int]:
    """Return who comes, and when."""
    who, at = word.split(",")
    return who, int(at)


def counted(words: Sequence[str]) -> Iterator[Reading]:
    """Count visits one by one; give what there is after each."""
    counts: dict[str, tuple[int, int]] = {}
    reached = 0
    for number, (who, at) in enumerate(map(visit, words), 1):
        reached = max(reached, at)
        count, until = counts.get(who, (0, 0))
        counts[who] = (count if until > reached else 0) + 1, max(until, at + _LIVES)
        there = {who: count for who, (count, until) in counts.items() if until > reached}
        yield {(TOTAL, None): number} | {(COUNT, (who,)): count for who, count in there.items()}


def topology(source: Any, state: Any) -> TridentTopology:
    """Count the visits of each, and forget who stays away."""
    made = TridentTopology()
    words = made.newStream("words", source)
    visits = words.each("word", lambda word: [visit(word)], "who string, at long")
    visits.groupBy("who").persistentAggregate(
        *(state, Count(), "count"),
        name=COUNT,
        expire_after=timedelta(milliseconds=_LIVES),
        time_field="at",
    ).parallelismHint(2)
    visits.persistentAggregate(state, Count(), "total", name=TOTAL)
    return made


@dataclass(frozen=True)
class VisitsByHand(CountedByHand):
    """A loop that keeps each count with the moment until which it lives."""

    name = "a plain loop that keeps moments"

    def preparing(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], Write]:
        kept = self.counters(place)

        def prepare(_: int, words: Sequence[str]) -> Write:
            visits = [*map(visit, words)]
            (reached, total, _), *found = kept.entries(["", *(who for who, _ in visits)])
            counts = {who: entry for (who, _), entry in zip(visits, found, strict=True)}
            reached = max(reached, *(at for _, at in visits))
            for who, at in visits:
                until, count, _ = counts[who]
                counts[who] = (max(until, at + _LIVES), (count if until > reached else 0) + 1, 0)
            entries = {"": (reached, total + len(visits), 0)} | counts
            return partial(kept.put, [*entries], [json.dumps(each) for each in entries.values()])

        return prepare

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        kept = self.counters(place)
        names = ["" if key is None else str(key[0]) for _, key in keys]

        def read() -> Reading:
            (reached, _, _), *found = kept.entries(["", *names])
            return {
                key: count if until > reached or key[1] is None else None
                for key, (until, count, _) in zip(keys, found, strict=True)
            }

        yield read

    def counters(self, place: EpisodePlace) -> Entries:
        return Entries(self.factory, place.name)


class ExpiringStore(MapStore):
    """Map states whose entries expire."""

    takes_topology = False

    def record(self, seed: str, length: int) -> Visits:
        return Visits(seed, length)

    def truth(self, make: TopologyFunction, record: Record) -> Truth:
        return Truth.of_readings(counted(record.words))

    def contender(
        self, name: str, make: TopologyFunction, way: Way, source: WordSource
    ) -> MapContender:
        return MapContender(name, source, way.run, self.factory(), topology)

    def compared(self, way: Way, record: Record, source: WordSource) -> Sequence[Contender]:
        return [VisitsByHand(record, MOST, self.plain())]
