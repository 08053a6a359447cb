"""A table of the user's: tasks stage its rows, and they are merged once the log has the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from tests.protocol.model.rules import Rules, Setup
from tests.protocol.model.shared import (
    Cell,
    Named,
    Record,
    Server,
    Steps,
    StepsOf,
    Store,
)
from tests.protocol.model.task import Operation


class Row(NamedTuple):
    """A staged row: what it does to the table, and the run of a task that has staged it."""

    run: int
    operation: Operation


class Table(Store):
    """A table (its `cells`), and beside it, in the same database, its record and what is staged.

    The database is a weak one, which doesn't tell that its server has changed.
    """

    def __init__(self, setup: Setup, rules: Rules, server: Server) -> None:
        super().__init__(setup, rules, server)
        self.staged: tuple[Row, ...] = ()
        self.runs = count(1)

    def stage(self, rows: tuple[Row, ...]) -> None:
        """Replace what is staged."""
        before = self.staged

        def undo() -> None:
            self.staged = before

        self.server.undo.append(undo)
        self.staged = rows

    def put_control(self, new: Record, expected: Record | None, compared: bool) -> bool:
        """A begin also removes what is staged, in the same transaction."""
        begins = self.control is None or self.control.token != new.token
        with self.server.transaction():
            put = super().put_control(new, expected, compared)
            if put and begins and self.rules.rows_emptied_with_record:
                self.stage(())
        return put

    def after_begin(self) -> Steps:
        if not self.rules.rows_emptied_with_record:
            yield None
            self.stage(())

    def is_whole(self, record: Record) -> bool:
        """Whether all rows are there that the record names."""
        runs = [row.run for row in self.staged]
        return all(runs.count(run) == rows for run, rows in record.named)

    def confirms(self, ready: Record, incarnation: int) -> bool:
        """What it has written last is there, and so is what was counted before."""
        return self.control == ready

    def merge(self, record: Record) -> None:
        """Do to the table what the named runs have staged."""
        named = [run for run, _ in record.named]
        for run, operation in self.staged:
            if run in named or not self.rules.rows_named:
                cell, _ = self.get(operation.key)
                value = operation.apply(cell.curr if cell else None)
                self._set(operation.key, (Cell(*record.token, value, None), 0))

    def empty(self) -> None:
        super().empty()
        self.staged = ()

    def backup(self) -> Callable[[], None]:
        control, cells, staged = self.control, dict(self.cells), self.staged

        def restore() -> None:
            self.failover(0)
            self.cells = dict(cells)
            if not self.setup.gap:
                self.control, self.staged = control, staged

        return restore


@dataclass(frozen=True, eq=False)
class TableTask:
    """What a task of a table does; a duplicate of it does the same, as another run.

    It stages its rows one by one, and nothing refuses them: a transaction for all of them, which
    looks whether its attempt is still the one that has begun, shows less to others.
    """

    store: Table
    operations: Sequence[Operation]
    part: int

    def run(self) -> StepsOf[Named]:
        run = next(self.store.runs) if self.store.rules.rows_own_id else -self.part - 1
        for operation in self.operations:
            yield None
            self.store.stage((*self.store.staged, Row(run, operation)))
        yield None
        return run, len(self.operations)
