"""Rows that processes of their own write, as Spark's tasks do: some die, some go on too late."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from trident.backends.rows import Rows, RowsState
from trident.backends.rows.store import RowsStore
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, TridentError
from trident.states.state import Batch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_TASKS = 2
"""Of a batch."""
_FATES = {"task killed": 0.02, "task stood still": 0.02, "task ran twice": 0.02}
"""What becomes of how many of them."""
_SOON = 0.015
"""Seconds within which it does: about those that a task takes."""
_STILL = 2.0
"""Seconds that a task stands still, at most: the driver, or the one after it, goes on without."""
_PATIENCE = 0.3
"""Seconds after which the driver gives a task up, and its attempt."""
_LOOK = 0.1
"""Seconds after which a task without work looks whether it has a driver."""


class RowsInTasks(Rows):
    """A table to which processes write the rows of a batch; they outlive their driver.

    In the file `notes` they note what becomes of them, a line each; it follows from `seed`.
    """

    notes: Path
    seed: str

    def makeState(self, *_: Any, **options: Any) -> RowsState:
        def store() -> RowsStore:
            return RowsStore(self.database, self.target, self.name, self._types)

        def work(number: int) -> _Work:
            choose = random.Random(f"{self.seed} {self.target.mode} {number}")
            return _Work(RowsState(store(), self.target), choose, self.notes)

        return _WrittenByTasks(RowsState(store(), self.target), work)


class _WrittenByTasks(RowsState):
    """The driver's state: it hands rows to tasks, and counts what they say they have written."""

    def __init__(self, own: RowsState, work: Callable[[int], _Work]) -> None:
        vars(self).update(vars(own))
        self._work = work
        self._tasks: list[_Task] = []
        self._started = 0

    def commit(self, batch: Batch) -> None:
        record, pending = self._record(batch), self._rows
        self._rows = []
        if not any(rows.num_rows for rows in pending):
            return
        tasks, self._tasks = self._tasks or [self._task() for _ in range(_TASKS)], []
        for index, task in enumerate(tasks):
            task.give(record, [_share(rows, index) for rows in pending])
        for task in tasks:
            self.take(record.token, task.receipt())
        self._tasks = tasks  # else they are left alone

    def _task(self) -> _Task:
        self._started += 1
        return _Task(self._work, self._started)


def _share(rows: Any, index: int) -> Any:
    """What a task is given of a batch of Arrow's."""
    share = -(-rows.num_rows // _TASKS)
    return rows.slice(index * share, share)


class _Task:
    """A process that writes rows, one part after the other."""

    def __init__(self, work: Callable[[int], _Work], number: int) -> None:
        self._pipe, theirs = Pipe()
        if os.fork() == 0:
            _live(theirs, work, number)
        theirs.close()

    def give(self, record: ControlRecord, rows: Sequence[Any]) -> None:
        """Have it write rows."""
        self._pipe.send((record, rows))

    def receipt(self) -> dict[str, int]:
        """What it has written; raise FailedException where it does not say so in time."""
        if not self._pipe.poll(_PATIENCE):
            raise FailedException("a task stands still")
        try:
            told: dict[str, int] | TridentError = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            raise FailedException("a task was killed") from None
        if isinstance(told, TridentError):
            raise told
        return told


class _Work:
    """What a task does."""

    def __init__(self, state: RowsState, choose: random.Random, notes: Path) -> None:
        self._state = state
        self._choose = choose
        self._notes = notes

    def write(self, record: ControlRecord, rows: Sequence[Any]) -> dict[str, int] | TridentError:
        """Write rows; return the receipt, or why there is none."""
        [fate] = self._choose.choices([*_FATES, ""], [*_FATES.values(), 1 - sum(_FATES.values())])
        still = self._choose.uniform(0, _STILL)

        def happen(*_: object) -> None:
            self._note(fate)
            if fate == "task killed":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(still)

        if fate == "task ran twice":
            self._note(fate)
            self._stage(record, rows)
        elif fate:
            signal.signal(signal.SIGALRM, happen)
            signal.setitimer(signal.ITIMER_REAL, self._choose.uniform(1e-4, _SOON))
        try:
            return self._stage(record, rows)
        except TridentError as error:
            return error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _stage(self, record: ControlRecord, rows: Sequence[Any]) -> dict[str, int]:
        self._state.beginCommit(record)
        for batch in rows:
            self._state.append(batch)
        self._state.commit(record)
        return dict(self._state.stage(record))

    def _note(self, what: str) -> None:
        with self._notes.open("a") as notes:
            notes.write(f"{what}\n")


def _live(pipe: Connection, work: Callable[[int], _Work], number: int) -> NoReturn:
    """Be a task, until there is no driver any more."""
    try:
        _leave_connections(pipe)
        driver, own = os.getppid(), work(number)
        while os.getppid() == driver:
            if pipe.poll(_LOOK):
                pipe.send(own.write(*pipe.recv()))
    except (EOFError, BrokenPipeError):
        pass
    finally:
        os._exit(0)


def _leave_connections(pipe: Connection) -> None:
    """Let go of the driver's connections, whose locks would outlive it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in map(int, os.listdir("/proc/self/fd")):
        if each > 2 and each not in (nothing, pipe.fileno()):  # the listing's own is closed by now
            os.dup2(nothing, each)
