"""The life of a driver: which one it is, what becomes of it, and how far its batch is."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trident.batch.watchpoints import POINTS, watching
from trident.states.values import Token

STARTING = "before the first batch"
"""The phase of a driver that has passed no point yet."""

PHASES = (STARTING, *POINTS)


@dataclass(frozen=True)
class Fate:
    """What a driver does to itself; pickles.

    `point` is one of `POINTS`, empty for nowhere; the driver `passes` it so often before. It `ends`
    with SIGKILL, or with SIGSTOP if it may be continued.
    """

    point: str = ""
    passes: int = 0
    ends: signal.Signals = signal.SIGKILL


UNHARMED = Fate()


@dataclass(frozen=True)
class Life:
    """The life of a driver; pickles.

    `number` is which of the episode's it is, from 1. In the file `mark` it keeps, for those who
    watch it, how far its batch is.
    """

    number: int
    fate: Fate
    mark: Path

    @property
    def phase(self) -> str:
        """The last point that a batch of it has passed."""
        try:
            return PHASES[self.mark.read_bytes()[0]]
        except (FileNotFoundError, IndexError):
            return STARTING

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Mark what batches of this process pass, and let the fate happen."""
        self.mark.write_bytes(b"\0")
        with self.mark.open("r+b") as file, mmap.mmap(file.fileno(), 1) as mark:
            left = self.fate.passes

            def watch(point: str, token: Token) -> None:
                nonlocal left
                if point not in PHASES:
                    return
                mark[0] = PHASES.index(point)
                if point == self.fate.point:
                    left -= 1
                    if left == -1:
                        os.kill(os.getpid(), self.fate.ends)

            with watching(watch):
                yield
