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
"""How many a batch has."""
_FATES = {"task killed": 0.02, "task stood still": 0.02, "task ran twice": 0.02}
"""What happens to a task, and to which share of them."""
_SOON = 0.015
"""Seconds within which it happens: about as long as a task takes."""
_STILL = 3.0
"""The most seconds that a task stands still: its driver, or the next one, goes on without it."""
_PATIENCE = 1.0
"""Seconds after which the driver gives up a task of a first attempt; later ones have more, as the
machine may be too busy to start tasks in that time."""
_MAX_PATIENCE = 20.0

Written = Mapping[str, int] | TridentError
"""A task's receipt, or the error instead of one."""


class RowsInTasks(Rows):
    """A table to which processes write the rows of a batch; they outlive their driver.

    In the file `notes` they note what happens to them, a line each; it follows from `seed`.
    """

    notes: Path
    seed: str
    starter: Starter

    def makeState(self, *_: Any, **options: Any) -> RowsState:
        return _TaskWrittenRows(super().makeState(), self)


class _TaskWrittenRows(RowsState):
    """The driver's state: it hands rows to tasks, and counts what they say they have written."""

    def __init__(self, own: RowsState, rows_in_tasks: RowsInTasks) -> None:
        vars(self).update(vars(own))
        self._rows_in_tasks = rows_in_tasks
        self._tasks: list[Connection] = []
        self._started = 0

    def commit(self, batch: Batch) -> None:
        record, pending = self._record(batch), self._rows
        self._rows = []
        if not any(rows.num_rows for rows in pending):
            return
        tasks, self._tasks = self._tasks or [self._start_task() for _ in range(_TASKS)], []
        for index, task in enumerate(tasks):
            task.send((record, [_share(rows, index) for rows in pending]))
        for task in tasks:
            patience = min(_PATIENCE * (1 + record.token.attempt), _MAX_PATIENCE)
            self.take(record.token, _receive_receipt(task, patience))
        self._tasks = tasks  # after an error they are left alone

    def _start_task(self) -> Connection:
        self._started += 1
        rows = self._rows_in_tasks
        given = copy(rows)
        del given.starter
        task = rows.starter.start()
        task.send((given, f"{rows.seed} {rows.target.mode} {self._started}"))
        return task


def _share(rows: Any, index: int) -> Any:
    """Return the part of an Arrow batch that one task writes."""
    share = -(-rows.num_rows // _TASKS)
    return rows.slice(index * share, share)


def _receive_receipt(task: Connection, patience: float) -> Mapping[str, int]:
    """Return what a task has written; raise FailedException if it does not say so in time."""
    if not task.poll(patience):
        raise FailedException("a task stands still")
    try:
        answer: Written = task.recv()
    except (EOFError, ConnectionResetError):
        raise FailedException("a task was killed") from None
    if isinstance(answer, TridentError):
        raise answer
    return answer


class Starter:
    """A process that forks tasks for a driver.

    The driver can't: a task would inherit its connections and its lock of the checkpoint, which
    end with a driver whose tasks run on other machines.
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
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for them
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
        state, choose = Rows.makeState(rows), random.Random(seed)
        while True:
            [fate] = choose.choices([*_FATES, ""], [*_FATES.values(), 1 - sum(_FATES.values())])
            pipe.send(_write_rows(state, fate, choose, rows.notes, *pipe.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        os._exit(0)


def _write_rows(
    state: RowsState,
    fate: str,
    choose: random.Random,
    notes: Path,
    record: ControlRecord,
    rows: Sequence[Any],
) -> Written:
    """Write rows; return the receipt, or the error instead of one."""

    def stage() -> Mapping[str, int]:
        state.beginCommit(record)
        for batch in rows:
            state.append(batch)
        state.commit(record)
        return dict(state.stage(record))

    def note() -> None:
        with notes.open("a") as file:
            file.write(f"{fate}\n")

    def happen(*_: object) -> None:
        note()
        if fate == "task killed":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(choose.uniform(0, _STILL))

    try:
        if fate == "task ran twice":
            note()
            stage()
        elif fate:
            signal.signal(signal.SIGALRM, happen)
            signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-4, _SOON))
        return stage()
    except TridentError as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
