"""The same word count in a classical opaque map: each value has its batch and the one before it.

A batch that is replayed begins from the value before it, so a driver that dies does no harm. But a
write that comes late, by a driver that was taken over, looks like any other. So this has to fail
where drivers are stopped and continued, or the test of late writes is worth nothing.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trident.batch.watchpoints import reached
from trident.chaos.by_hand import CountedByHand, InMap, Numbers
from trident.chaos.contender import EpisodePlace
from trident.chaos.process import Life
from trident.states.errors import StaleBatchError
from trident.states.values import Token

Entry = tuple[int, int, int]
"""A batch, the number that it made, and the number before it."""


@dataclass(frozen=True)
class Classical(CountedByHand):
    """A loop over a classical opaque map, whose log refuses a batch that is there already."""

    taken_over = 0.5

    @property
    def name(self) -> str:  # type: ignore[override]
        """What it is called."""
        return "a classical (txid, previous value) map"

    def drive(self, place: EpisodePlace, life: Life) -> None:
        entries = Entries(self.factory, place.name)
        position, batch = _last(place.folder)
        while position < self.record.length:
            batch += 1
            token = Token(batch, 0)
            reached("before begin", token)
            # As of an opaque source: a batch that comes back has other words
            size = random.Random(f"{place.seed} {batch} {life.number}").randint(1, self.most)
            words = self.record.words[position : position + size]
            amounts = {**Counter(words), "": len(words)}
            befores = [
                before if txid == batch else current
                for txid, current, before in entries.entries([*amounts])
            ]
            reached("before write", token)
            entries.put(
                [*amounts],
                [
                    (batch, before + more, before)
                    for before, more in zip(befores, amounts.values(), strict=True)
                ],
            )
            reached("after write", token)
            position += len(words)
            reached("before commit", token)
            _note(place.folder, batch, position)
            reached("after commit", token)

    def numbers(self, place: EpisodePlace) -> Numbers:
        return Entries(self.factory, place.name)


class Entries(InMap):
    """Numbers with their batch and the number before it."""

    def entries(self, names: Sequence[str]) -> list[Entry]:
        """Return the entries; zeros where there is none."""
        return [json.loads(entry) if entry else (0, 0, 0) for entry in self._get(names)]

    def put(self, names: Sequence[str], entries: Sequence[Entry]) -> None:
        """Write entries, whatever is there."""
        self._put(names, list(map(json.dumps, entries)))

    def read(self, names: Sequence[str]) -> list[int]:
        return [current for _, current, _ in self.entries(names)]


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
