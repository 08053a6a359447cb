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
    Stale,
    Steps,
    StepsOf,
    Store,
    Token,
    Unavailable,
)
from tests.protocol.model.task import Operation


class Row(NamedTuple):
    """A staged row: what it does to the table, and the run of a task that has staged it."""

    run: int
    operation: Operation


class Table(Store):
    """A table (its `cells`), and beside it, in the same database, its record and what is staged.

    The database is a weak one: it doesn't tell that its server has changed, and a statement that
    makes or drops a table is a transaction of its own.
    """

    def __init__(self, setup: Setup, rules: Rules, server: Server) -> None:
        super().__init__(setup, rules, server)
        self.staged: dict[Token, tuple[Row, ...]] = {}
        self.runs = count(1)

    def prepare(self, token: Token) -> Steps:
        """Make the attempt's staging table, then drop what attempts before it have staged."""
        server, rules = self.server.incarnation, self.rules
        yield None
        others = [each for each in self.staged if each < token or not rules.rows_lower_dropped]
        for other in (token, *others):
            if self.server.incarnation != server and rules.rows_connected:
                raise Unavailable
            self._put(other, () if other == token else None)
            yield None

    def stage(self, token: Token, row: Row) -> None:
        """Add a row, where the driver has made the table and no later one has dropped it."""
        if token not in self.staged:
            raise Stale
        self._put(token, (*self.staged[token], row))

    def is_whole(self, record: Record) -> bool:
        """Whether all rows are there that the record names."""
        runs = [row.run for row in self.staged.get(record.token, ())]
        return all(runs.count(run) == rows for run, rows in record.named)

    def confirms(self, ready: Record, incarnation: int) -> bool:
        """What it has written last is there, and so is what was counted before."""
        return self.control == ready

    def merge(self, record: Record) -> None:
        """Do to the table what the named runs have staged."""
        named = [run for run, _ in record.named]
        for run, operation in self.staged.get(record.token, ()):
            if run in named or not self.rules.rows_named:
                cell, _ = self.get(operation.key)
                value = operation.apply(cell.curr if cell else None)
                self._set(operation.key, (Cell(*record.token, value, None), 0))

    def empty(self) -> None:
        super().empty()
        self.staged = {}

    def backup(self) -> Callable[[], None]:
        control, cells, staged = self.control, dict(self.cells), dict(self.staged)

        def restore() -> None:
            self.failover(0)
            self.cells = dict(cells)
            if not self.setup.gap:
                self.control, self.staged = control, dict(staged)

        return restore

    def _put(self, token: Token, rows: tuple[Row, ...] | None) -> None:
        before = self.staged.get(token)

        def put(value: tuple[Row, ...] | None) -> None:
            if value is None:
                self.staged.pop(token, None)
            else:
                self.staged[token] = value

        self.server.undo.append(lambda: put(before))
        put(rows)


@dataclass(frozen=True, eq=False)
class TableTask:
    """What a task of a table does; a duplicate of it does the same, as another run.

    It stages its rows one by one. A transaction for all of them would show less to others.
    """

    store: Table
    token: Token
    operations: Sequence[Operation]
    part: int

    def run(self) -> StepsOf[Named]:
        run = next(self.store.runs) if self.store.rules.rows_own_id else -self.part - 1
        for operation in self.operations:
            yield None
            self.store.stage(self.token, Row(run, operation))
        yield None
        return run, len(self.operations)
