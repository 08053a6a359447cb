"""A process that reads committed values while drivers come and go."""

from __future__ import annotations

import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from trident.chaos.contender import Contender, EpisodePlace, Reader
from trident.chaos.process import Process
from trident.chaos.truth import Findings, Reading, Truth
from trident.states.errors import NoStateError, UnavailableError
from trident.states.printable import shortened

_PAUSE = 0.02
_PATIENCE = 60.0
_SHOWN = 2000


class ReaderProcess:
    """Reads until it is asked for what it has found."""

    def __init__(self, contender: Contender, place: EpisodePlace, truth: Truth) -> None:
        self._pipe, theirs = Pipe()

        def work() -> None:
            self._pipe.close()
            theirs.send(_Observer(contender, place, truth).findings(theirs))

        self._process = Process(work, Path(place.folder, "reader.log"))
        theirs.close()

    def findings(self) -> Findings:
        """Have it read once more, for the last time, and end."""
        try:
            self._pipe.send(None)
            found: Findings = self._pipe.recv()
        except (EOFError, OSError):
            self._process.wait(_PATIENCE)
            return Findings(differing=1, example=f"the reader failed: {self._process.problem}")
        self._process.wait(_PATIENCE)
        return found

    def close(self) -> None:
        self._process.close()
        self._pipe.close()


class _Observer:
    """Reads and compares, in the reader's process."""

    def __init__(self, contender: Contender, place: EpisodePlace, truth: Truth) -> None:
        self._contender = contender
        self._place = place
        self._truth = truth
        self._seen = 0
        self._found = Findings()

    def findings(self, asked: Connection) -> Findings:
        """Read until something comes through a pipe, then for the last time."""
        with self._contender.reading(self._place, self._truth.keys) as reader:
            pause = _PAUSE
            while not asked.poll(pause):
                began = time.monotonic()
                self._read(reader)
                # Of a large table a read takes long, and the machine is for the drivers.
                pause = max(_PAUSE, time.monotonic() - began)
            deadline = time.monotonic() + _PATIENCE
            while (last := self._read(reader)) is None and time.monotonic() < deadline:
                time.sleep(_PAUSE)
        return self._truth.differences(last or {}) + self._found

    def _read(self, reader: Reader) -> Reading | None:
        """Read once, where the store answers and the states have begun."""
        try:
            reading = reader()
        except (UnavailableError, NoStateError, OSError):
            return None
        words = self._truth.words_in(reading)
        torn = words is None or words < self._seen
        example = ""
        if torn and not self._found.example:
            shown = {f"{name} {key}": value for (name, key), value in reading.items()}
            example = f"after {self._seen} words a reader saw {shortened(repr(shown), _SHOWN)}"
        self._seen = max(self._seen, words or 0)
        self._found += Findings(1, int(torn), example=example)
        return reading
