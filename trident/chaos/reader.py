"""A process that reads committed values while drivers come and go."""

from __future__ import annotations

import json
import os
import select
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO

from trident.chaos.contender import Contender, EpisodePlace, Reader
from trident.chaos.process import Process
from trident.chaos.truth import Reading, Truth
from trident.states.errors import NoStateError, UnavailableError
from trident.states.printable import shortened

_PAUSE = 0.02
_PATIENCE = 60.0
_SHOWN = 2000


@dataclass(frozen=True)
class Findings:
    """What a reader has found in an episode.

    `torn` reads were not the result of some first words, or of fewer than before. How the last read
    differs from the truth is as in `Differences`.
    """

    reads: int = 0
    torn: int = 0
    lost: int = 0
    duplicated: int = 0
    differing: int = 0
    example: str = ""


class ReaderProcess:
    """Reads until it is asked for what it has found."""

    def __init__(self, contender: Contender, place: EpisodePlace, truth: Truth) -> None:
        ask_from, self._ask = os.pipe()
        self._answer, answer_to = os.pipe()

        def work() -> None:
            os.close(self._ask)
            findings = _Observer(contender, place, truth).findings(ask_from)
            with open(answer_to, "w", encoding="utf-8") as answer:
                json.dump(asdict(findings), answer)

        self._process = Process(work, Path(place.folder, "reader.log"))
        os.close(ask_from)
        os.close(answer_to)

    def findings(self) -> Findings:
        """Have it read once more, for the last time, and end."""
        os.close(self._ask)
        answer: IO[str]
        with open(self._answer, encoding="utf-8") as answer:
            told = answer.read()
        self._process.wait(_PATIENCE)
        if not told:
            return Findings(differing=1, example=f"the reader failed: {self._process.problem}")
        return Findings(**json.loads(told))

    def close(self) -> None:
        self._process.close()


class _Observer:
    """Reads and compares, in the reader's process."""

    def __init__(self, contender: Contender, place: EpisodePlace, truth: Truth) -> None:
        self._contender = contender
        self._place = place
        self._truth = truth
        self._seen = 0
        self._found = Findings()

    def findings(self, asked: int) -> Findings:
        """Read until the other end of a pipe is closed, then for the last time."""
        with self._contender.reading(self._place, self._truth.keys) as reader:
            pause = _PAUSE
            while not select.select([asked], [], [], pause)[0]:
                began = time.monotonic()
                self._read(reader)
                # Of a large table a read takes long, and the machine is for the drivers.
                pause = max(_PAUSE, time.monotonic() - began)
            deadline = time.monotonic() + _PATIENCE
            while (last := self._read(reader)) is None and time.monotonic() < deadline:
                time.sleep(_PAUSE)
        found = self._truth.differences(last or {})
        return replace(
            self._found,
            lost=found.lost,
            duplicated=found.duplicated,
            differing=found.differing,
            example=found.example or self._found.example,
        )

    def _read(self, reader: Reader) -> Reading | None:
        """Read once, where the store answers and the states have begun."""
        try:
            reading = reader()
        except (UnavailableError, NoStateError, OSError):
            return None
        words = self._truth.words_in(reading)
        torn = words is None or words < self._seen
        example = self._found.example
        if torn and not example:
            shown = {f"{name} {key}": value for (name, key), value in reading.items()}
            example = f"after {self._seen} words a reader saw {shortened(repr(shown), _SHOWN)}"
        self._seen = max(self._seen, words or 0)
        self._found = replace(
            self._found, reads=self._found.reads + 1, torn=self._found.torn + torn, example=example
        )
        return reading
