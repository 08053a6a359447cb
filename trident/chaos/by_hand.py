"""The same word count as it is written by hand: add each batch, then note how far one came.

A process that dies between the two adds the batch again. Where the test reports nothing of it, the
test is worth nothing.
"""

from __future__ import annotations

import json
import os
import random
import socket
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trident.batch.watchpoints import reached
from trident.chaos.contender import Contender, EpisodePlace, Reader
from trident.chaos.process import Life
from trident.chaos.record import Record
from trident.chaos.truth import Key, Reading
from trident.states.backing_map import Codec
from trident.states.maps.factory import MapStateFactory
from trident.states.values import Token


class Numbers(ABC):
    """Numbers in a store."""

    @abstractmethod
    def read(self, names: Sequence[str]) -> list[int]:
        """Return the numbers; 0 where there is none."""


class Incremented(Numbers):
    """Numbers in Redis, by ``INCRBY``."""

    def __init__(self, host: str, port: int, prefix: str) -> None:
        self._prefix = prefix
        self._socket = socket.create_connection((host, port), timeout=5)
        self._answers = self._socket.makefile("rb")

    def add(self, amounts: Mapping[str, int]) -> None:
        self._incremented(amounts)

    def read(self, names: Sequence[str]) -> list[int]:
        return self._incremented(dict.fromkeys(names, 0))

    def _incremented(self, amounts: Mapping[str, int]) -> list[int]:
        lines = [f"INCRBY {self._prefix}:{name} {more}\r\n" for name, more in amounts.items()]
        self._socket.sendall("".join(lines).encode())
        return [int(self._answers.readline()[1:] or 0) for _ in lines]


class InMap(Numbers):
    """Numbers in any store, whose factory is of states that keep values alone, without a prefix."""

    def __init__(self, factory: MapStateFactory, prefix: str) -> None:
        self._map = factory.store.named(prefix).open()
        self._bytes = self._map.codec is Codec.BYTES

    def _get(self, names: Sequence[str]) -> Sequence[Any]:
        return self._map.multiGet([name.encode() for name in names])

    def _put(self, names: Sequence[str], values: Sequence[Any]) -> None:
        kept = [str(value).encode() for value in values] if self._bytes else values
        self._map.multiPut([name.encode() for name in names], kept)


class ReadAndPut(InMap):
    """Numbers that are read, added to, and put back."""

    def add(self, amounts: Mapping[str, int]) -> None:
        found = self.read([*amounts])
        sums = [number + more for number, more in zip(found, amounts.values(), strict=True)]
        self._put([*amounts], sums)

    def read(self, names: Sequence[str]) -> list[int]:
        return [int(value or 0) for value in self._get(names)]


@dataclass(frozen=True)
class ByHand(Contender):
    """A loop that reads a batch, adds it, and notes in a file where it is."""

    record: Record
    most: int
    reads_whole = False
    points = ("before begin", "before write", "after write", "before commit", "after commit")

    @abstractmethod
    def adding(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], None]:
        """Return what adds the words of a batch, which has a number."""

    def drive(self, place: EpisodePlace, life: Life) -> None:
        add = self.adding(place, life)
        noted = place.folder / "noted"
        position, batch = json.loads(noted.read_text()) if noted.exists() else (0, 0)
        while position < self.record.length:
            batch += 1
            token = Token(batch, 0)
            reached("before begin", token)
            # As of an opaque source: a batch that comes back has other words
            size = random.Random(f"{place.seed} {batch} {life.number}").randint(1, self.most)
            words = self.record.words[position : position + size]
            reached("before write", token)
            add(batch, words)
            reached("after write", token)
            position += len(words)
            reached("before commit", token)
            _note(noted, [position, batch])
            reached("after commit", token)


@dataclass(frozen=True)
class CountedByHand(ByHand):
    """A loop that counts in any store.

    `redis` is where the store is, if it is a Redis server: then numbers are incremented by it.
    """

    factory: MapStateFactory
    redis: tuple[str, int] | None

    @property
    def name(self) -> str:  # type: ignore[override]
        """What it is called."""
        return "a plain loop and INCRBY" if self.redis else "a plain loop that reads, adds and puts"

    def adding(self, place: EpisodePlace, life: Life) -> Callable[[int, Sequence[str]], None]:
        counters = self.counters(place)
        return lambda _, words: counters.add({**Counter(words), "": len(words)})

    @contextmanager
    def reading(self, place: EpisodePlace, keys: Sequence[Key]) -> Iterator[Reader]:
        opened: list[Numbers] = []
        names = ["" if key is None else str(key[0]) for _, key in keys]

        def read() -> Reading:
            if not opened:
                opened.append(self.numbers(place))
            try:
                found = opened[0].read(names)
            except OSError:
                opened.clear()
                raise
            return {key: number or None for key, number in zip(keys, found, strict=True)}

        yield read

    def numbers(self, place: EpisodePlace) -> Numbers:
        """Return the numbers of an episode, for a reader."""
        return self.counters(place)

    def counters(self, place: EpisodePlace) -> Incremented | ReadAndPut:
        """Return the numbers of an episode, for a driver."""
        if self.redis is not None:
            return Incremented(*self.redis, place.name)
        return ReadAndPut(self.factory, place.name)


def _note(file: Path, what: Any) -> None:
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(what))
    part.rename(file)
