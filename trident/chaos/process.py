"""A process of our own, such as a driver's, that may be stopped and killed, and its fate.

It is forked from the one that has everything loaded, so it is at work within milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn

from trident.batch.errors import OutageError
from trident.batch.watchpoints import POINTS, watching
from trident.log.errors import (
    CheckpointInUseError,
    LogConflictError,
    LogMismatchError,
    LogUnavailableError,
    TakenOverError,
)
from trident.states.errors import MovedStateError, OtherLogError, StaleBatchError, UnavailableError
from trident.states.printable import masked
from trident.states.values import Token

_OVERTAKEN = (
    StaleBatchError,
    TakenOverError,
    LogConflictError,
    CheckpointInUseError,  # for one that was stopped before it had its checkpoint
    OtherLogError,  # for one that was stopped between its look at an empty log and one at the state
    LogMismatchError,  # for one whose batches a changed topology has continued
    MovedStateError,  # for one whose state was built anew meanwhile
)
_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG

STARTING = "before the first batch"
"""The phase of a driver that has passed no point yet."""
SWAPPING = "swap"
"""The phase of a driver that swaps states in."""
PHASES = (STARTING, *POINTS, SWAPPING)


class DriverEnd(Enum):
    """How a driver has ended; the value is its exit status, negative for a signal."""

    FINISHED = 0
    KILLED = -signal.SIGKILL
    OVERTAKEN = 3
    FAILED = 4
    GAVE_UP = 5
    """Its store was away for too long, or when it started."""


class Process:
    """A forked process that does some work, and can be stopped, continued and killed.

    It ends when this process does.

    What it prints goes to `log`, and the traceback of what it fails with. A driver has a `life`.
    """

    def __init__(self, work: Callable[[], object], log: Path, life: Life | None = None) -> None:
        self.log = log
        self.life = life or Life(0, UNHARMED, log.with_suffix(".mark"))
        self.outcome: DriverEnd | None = None
        self.stopped = False
        self.born = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self._live(work, life)

    def _live(self, work: Callable[[], object], life: Life | None) -> NoReturn:
        status = DriverEnd.FAILED
        try:
            end_with_parent()
            os.setpgid(0, 0)  # Ctrl-C is for the parent
            to = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(to, 1)
            os.dup2(to, 2)
            sys.stdout = sys.stderr = os.fdopen(2, "w", closefd=False)
            with life.watched() if life else nullcontext():
                status = run_to_end(work)
            sys.stderr.flush()
        finally:
            os._exit(status.value)

    @property
    def problem(self) -> str:
        """The last line of its log, which is its error."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        lines = [line for line in text.splitlines() if line.strip()]
        return masked(lines[-1]) if lines else "it left no message"

    def wait(self, seconds: float, *, or_stopped: bool = False) -> bool:
        """Wait for its end, or until it has stopped itself; return whether that came in time."""
        deadline = time.monotonic() + seconds
        while self.outcome is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                self.stopped = True
            elif pid:
                self.outcome = _outcome(os.waitstatus_to_exitcode(status))
                break
            if or_stopped and self.stopped:
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(0.001, left))
        return True

    def stop(self) -> None:
        """Stop it; return when it stands still, or has ended."""
        self._send(signal.SIGSTOP)
        self.wait(10, or_stopped=True)

    def resume(self) -> None:
        self.stopped = False
        self._send(signal.SIGCONT)

    def close(self) -> None:
        """Kill it, where it hasn't ended, and wait for that."""
        self._send(signal.SIGKILL)
        self.wait(10)

    def _send(self, number: signal.Signals) -> None:
        # Not reaped yet, so the number can't be another's.
        if self.outcome is None:
            os.kill(self.pid, number)


def run_to_end(work: Callable[[], object]) -> DriverEnd:
    """Do the work; return how it ended, after the traceback was printed where it failed."""
    try:
        work()
    except _OVERTAKEN:
        return DriverEnd.OVERTAKEN
    except (UnavailableError, LogUnavailableError, OutageError):
        traceback.print_exc()
        return DriverEnd.GAVE_UP
    except BaseException:
        traceback.print_exc()
        return DriverEnd.FAILED
    return DriverEnd.FINISHED


def end_with_parent() -> None:
    """Let this process be killed when the one that made it ends, also while it is stopped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)


def _outcome(status: int) -> DriverEnd:
    try:
        return DriverEnd(status)
    except ValueError:
        return DriverEnd.FAILED


@dataclass(frozen=True)
class Fate:
    """What a driver does to itself; pickles.

    It ends at a `point`, one of `POINTS`, after it has passed that `passes` times; it does not if
    that is empty. It `ends` with SIGKILL, or with SIGSTOP if it may be continued.
    """

    point: str = ""
    passes: int = 0
    ends: signal.Signals = signal.SIGKILL


UNHARMED = Fate()


@dataclass(frozen=True)
class Life:
    """The life of a driver; pickles.

    `number` counts the drivers of the episode, from 1. The file `mark` has the last point that its
    batch has passed, for those who watch it.
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
        with self.mark.open("wb") as mark:
            remaining = self.fate.passes

            def watch(point: str, token: Token) -> None:
                nonlocal remaining
                if point not in PHASES:
                    return
                os.pwrite(mark.fileno(), bytes([PHASES.index(point)]), 0)
                if point == self.fate.point:
                    remaining -= 1
                    if remaining == -1:
                        os.kill(os.getpid(), self.fate.ends)

            with watching(watch):
                yield
