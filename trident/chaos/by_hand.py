"""The same word count as it is written by hand, in ways that can't be exact.

A plain loop adds each batch, then notes how far it came: a process that dies between the two adds
the batch again. A classical opaque map keeps of each value its batch and the one before it, so such
a death does no harm; but a write that comes late, by a driver that was taken over, looks like any
other. Where the test reports nothing of either, it is worth nothing.
"""

from __future__ import annotations

import json
import os
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from trident.batch.watchpoints import reached
from trident.chaos.contender import Contender, EpisodePlace, Reader
from trident.chaos.process import Life
from trident.chaos.record import Record
from trident.chaos.truth import Key, Reading
from trident.states.backing_map import Codec
from trident.states.errors import StaleBatchError
from trident.states.maps.factory import MapStateFactory
from trident.states.values import Token

Write = Callable[[], object]
"""Writes a batch that was prepared."""


class ReadAndPut:
    """Numbers in any store, which are read, added to, and put back.

    The factory is of states that keep values alone, without a prefix.
    """

    def __init__(self, factory: MapStateFactory, prefix: str) -> None:
        self._map = factory.store.named(prefix).open()
        self._bytes = self._map.codec is Codec.BYTES

    def add(self, amounts: Mapping[str, int]) -> None:
        found = self.read([*amounts])
        sums = [number + more for number, more in zip(found, amounts.values(), strict=True)]
        self.put([*amounts], sums)

    def read(self, names: Sequence[str]) -> list[int]:
        return [int(value or 0) for value in self.get(names)]

    def get(self, names: Sequence[str]) -> Sequence[Any]:
        return self._map.multiGet([name.encode() for name in names])

    def put(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Replace values, whatever they were."""
        kept = [str(value).encode() for value in values] if self._bytes else values
        self._map.multiPut([name.encode() for name in names], kept)


class Entries(ReadAndPut):
    """Numbers, each with the batch that made it before it and the number before that behind it."""

    def entries(self, names: Sequence[str]) -> list[tuple[int, int, int]]:
        """Return the entries; zeros for those that are missing."""
        return [json.loads(entry) if entry else (0, 0, 0) for entry in self.get(names)]

    def read(self, names: Sequence[str]) -> list[int]:
        return [current for _, current, _ in self.entries(names)]


@dataclass(frozen=True)
class ByHand(Contender):
    """A loop that reads a batch, adds it, and notes its position in a file.

    A batch that was noted by another driver is refused.
    """

    record: Record
    most: int
    reads_whole = False
    points = ("before begin", "before write", "after write", "before commit", "after commit")

    @abstractmethod
    def preparing(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], Write]:
        """Return what prepares the write of a batch: of its number, and its words."""

    def drive(self, place: EpisodePlace, life: Life) -> None:
        prepare = self.preparing(place, life)
        position, batch = _last(place.folder)
        while position < self.record.length:
            batch += 1
            token = Token(batch, 0)
            reached("before begin", token)
            # As of an opaque source: a batch that comes back has other words
            size = random.Random(f"{place.seed} {batch} {life.number}").randint(1, self.most)
            words = self.record.words[position : position + size]
            write = prepare(batch, words)
            reached("before write", token)
            write()
            reached("after write", token)
            position += len(words)
            reached("before commit", token)
            _note(place.folder, batch, position)
            reached("after commit", token)


@dataclass(frozen=True)
class CountedByHand(ByHand):
    """A loop that counts in any store."""

    factory: MapStateFactory
    name = "a plain loop that reads, adds and puts"

    def preparing(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], Write]:
        add = self.counters(place).add
        return lambda _, words: partial(add, {**Counter(words), "": len(words)})

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        counters = self.counters(place)
        names = ["" if key is None else str(key[0]) for _, key in keys]

        def read() -> Reading:
            found = counters.read(names)
            return {key: number or None for key, number in zip(keys, found, strict=True)}

        yield read

    def counters(self, place: EpisodePlace) -> ReadAndPut:
        return ReadAndPut(self.factory, place.name)


@dataclass(frozen=True)
class Classical(CountedByHand):
    """A loop over a classical opaque map."""

    taken_over = 0.5
    name = "a classical (txid, previous value) map"

    def preparing(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], Write]:
        kept = self.counters(place)

        def prepare(batch: int, words: Sequence[str]) -> Write:
            amounts = {**Counter(words), "": len(words)}
            entries = []
            for (txid, current, before), more in zip(
                kept.entries([*amounts]), amounts.values(), strict=True
            ):
                start = before if txid == batch else current
                entries.append(json.dumps((batch, start + more, start)))
            return partial(kept.put, [*amounts], entries)

        return prepare

    def counters(self, place: EpisodePlace) -> Entries:
        return Entries(self.factory, place.name)


def _last(folder: Path) -> tuple[int, int]:
    """Return how far the words are counted, and by how many batches."""
    noted = [int(file.name.removeprefix("noted-")) for file in folder.glob("noted-*")]
    batch = max(noted, default=0)
    return (int((folder / f"noted-{batch}").read_text()) if batch else 0), batch


def _note(folder: Path, batch: int, position: int) -> None:
    part = folder / f"part-{batch}-{os.getpid()}"
    part.write_text(str(position))
    try:
        os.link(part, folder / f"noted-{batch}")
    except FileExistsError:
        raise StaleBatchError(Token(batch, 0), Token(batch, 1)) from None
