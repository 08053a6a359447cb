"""Rows that processes of their own write, as Spark's tasks do: some die, some go on too late."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Mapping, Sequence
from copy import copy
from multiprocessing.connection import Connection
from multiprocessing.connection import Pipe as new_pipe
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from typing import Any, NoReturn

from trident.backends.rows import Rows, RowsState
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, TridentError
from trident.states.state import Batch

_TASKS = 2
"""Of a batch."""
_FATES = {"task killed": 0.02, "task stood still": 0.02, "task ran twice": 0.02}
"""What becomes of how many of them."""
_SOON = 0.015
"""Seconds within which it does: about those that a task takes."""
_STILL = 3.0
"""Seconds that a task stands still, at most: the driver, or the one after it, goes on without."""
_PATIENCE = 1.0
"""Seconds after which the driver gives a task up, and its attempt."""

Written = Mapping[str, int] | TridentError
"""A task's receipt, or why there is none."""


class RowsInTasks(Rows):
    """A table to which processes write the rows of a batch; they outlive their driver.

    In the file `notes` they note what becomes of them, a line each; it follows from `seed`.
    """

    notes: Path
    seed: str
    starter: Starter

    def makeState(self, *_: Any, **options: Any) -> RowsState:
        return _WrittenByTasks(super().makeState(), self)


class _WrittenByTasks(RowsState):
    """The driver's state: it hands rows to tasks, and counts what they say they have written."""

    def __init__(self, own: RowsState, rows_in_tasks: RowsInTasks) -> None:
        vars(self).update(vars(own))
        self._rows_in_tasks = rows_in_tasks
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
        return _Task(self._rows_in_tasks, self._started)


def _share(rows: Any, index: int) -> Any:
    """What a task is given of a batch of Arrow's."""
    share = -(-rows.num_rows // _TASKS)
    return rows.slice(index * share, share)


class _Task:
    """A process that writes rows, one part after the other."""

    def __init__(self, rows: RowsInTasks, number: int) -> None:
        given = copy(rows)
        del given.starter
        self._pipe = rows.starter.start()
        self._pipe.send((given, f"{rows.seed} {rows.target.mode} {number}"))

    def give(self, record: ControlRecord, rows: Sequence[Any]) -> None:
        """Have it write rows."""
        self._pipe.send((record, rows))

    def receipt(self) -> Mapping[str, int]:
        """What it has written; raise FailedException where it does not say so in time."""
        if not self._pipe.poll(_PATIENCE):
            raise FailedException("a task stands still")
        try:
            told: Written = self._pipe.recv()
        except (EOFError, ConnectionResetError):
            raise FailedException("a task was killed") from None
        if isinstance(told, TridentError):
            raise told
        return told


class Starter:
    """A process that forks tasks for a driver.

    The driver can't: a task would inherit its connections and its lock of the checkpoint, which
    are gone with a driver whose tasks are elsewhere.
    """

    def __init__(self) -> None:
        self._pipe, theirs = new_pipe()
        if os.fork() == 0:
            self._pipe.close()
            _start_tasks(theirs)
        theirs.close()

    def start(self) -> Connection:
        """Start a task; return what it is spoken to by."""
        ours, theirs = new_pipe()
        with theirs:
            send_handle(self._pipe, theirs.fileno(), 0)
        return ours


def _start_tasks(driver: Connection) -> NoReturn:
    """Be the starter, as long as there is a driver."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
        while True:
            file = recv_handle(driver)
            if os.fork() == 0:
                driver.close()
                _be_task(Connection(file))
            os.close(file)
    except (EOFError, ConnectionResetError):
        pass
    finally:
        os._exit(0)


def _be_task(pipe: Connection) -> NoReturn:
    """Be a task, as long as there is a driver."""
    try:
        rows, seed = pipe.recv()
        own = _Work(Rows.makeState(rows), random.Random(seed), rows.notes)
        while True:
            pipe.send(own.write(*pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        os._exit(0)


class _Work:
    """What a task does."""

    def __init__(self, state: RowsState, choose: random.Random, notes: Path) -> None:
        self._state = state
        self._choose = choose
        self._notes = notes

    def write(self, record: ControlRecord, rows: Sequence[Any]) -> Written:
        """Write rows; return the receipt, or why there is none."""
        [fate] = self._choose.choices([*_FATES, ""], [*_FATES.values(), 1 - sum(_FATES.values())])
        still = self._choose.uniform(0, _STILL)

        def happen(*_: object) -> None:
            self._note(fate)
            if fate == "task killed":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(still)

        try:
            if fate == "task ran twice":
                self._note(fate)
                self._stage(record, rows)
            elif fate:
                signal.signal(signal.SIGALRM, happen)
                signal.setitimer(signal.ITIMER_REAL, self._choose.uniform(1e-4, _SOON))
            return self._stage(record, rows)
        except TridentError as error:
            return error
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _stage(self, record: ControlRecord, rows: Sequence[Any]) -> Mapping[str, int]:
        self._state.beginCommit(record)
        for batch in rows:
            self._state.append(batch)
        self._state.commit(record)
        return dict(self._state.stage(record))

    def _note(self, what: str) -> None:
        with self._notes.open("a") as notes:
            notes.write(f"{what}\n")
