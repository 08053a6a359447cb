"""The state that takes a batch's tuples as rows of a table."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trident.backends.rows.store import RowsStore
from trident.backends.rows.target import DELETED, ORDER, Target
from trident.states.control import Control, ControlRecord
from trident.states.errors import StateError
from trident.states.state import Batch, State
from trident.states.values import StateType, Token

if TYPE_CHECKING:
    import pyarrow as pa

Receipt = Mapping[str, int]
"""How many rows a task has written, by the number under which it did."""


class RowsState(State):
    """Writes the rows of one task, or on the driver of a whole batch.

    What a task has written counts once the driver has heard of it: `receipt` crosses to it, and
    the driver's own state takes it.
    """

    kind = StateType.OPAQUE
    names_attempts = False

    def __init__(self, store: RowsStore, target: Target) -> None:
        self.control: Control = Control(store)
        self.receipt: Receipt = {}
        """What the last commit has written."""
        self.rows_written = 0
        """How many rows this process has written."""
        self._store = store
        self._target = target
        self._rows: list[pa.RecordBatch] = []

    def beginCommit(self, batch: Batch) -> None:
        self._rows = []
        self.receipt = {}

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows to the batch that has begun; the columns are fields."""
        self._rows.append(rows)

    def commit(self, batch: Batch) -> None:
        record = self._record(batch)
        pending, self._rows = self._rows, []
        if not pending:
            return
        import pyarrow as pa

        given, part = pa.Table.from_batches(pending), secrets.randbits(63)
        rows, rest = _staged(given, self._target), given.drop_columns(self._target.fields)
        self._store.keep(record.token, part, rows, rest)
        self.receipt = {str(part): rows.num_rows}
        self.rows_written += rows.num_rows

    def stage(self, batch: Batch) -> Receipt:
        """Write what was committed, by a task; return what is to cross to the driver."""
        if self.receipt:
            self._store.stage(self._record(batch))
        return self.receipt

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows of the user's table, ordered by the key, else as they come: for tests."""
        return self._store.rows()

    def take(self, token: Token, receipt: Receipt) -> None:
        """Let what a task has written count, of the attempt of `token`; the driver's state only."""
        self._store.count_rows(token, {int(part): rows for part, rows in receipt.items()})

    def close(self) -> None:
        self._store.close()

    def _record(self, batch: Batch) -> ControlRecord:
        if not isinstance(batch, ControlRecord):
            raise StateError(
                f"{self._store.where}: rows are written by a topology, whose log says which of its "
                f"attempts count; it was begun with {batch!r}. Use partitionPersist."
            )
        return batch


def _staged(rows: pa.Table, target: Target) -> pa.Table:
    """The columns of the staging table, of the fields of rows."""
    import pyarrow as pa
    from pyarrow import compute

    made = {column: rows.column(field) for field, column in target.columns.items()}
    if target.delete_where:
        deleted = compute.fill_null(_is_deleted(rows, target.delete_where), False)
        for column in made.keys() - {*target.key, target.ordering}:  # which alone count of a delete
            nulls = pa.nulls(1, made[column].type)[0]
            made[column] = compute.if_else(deleted, nulls, made[column])
        made[DELETED] = deleted
    if target.order_by and target.ordering == ORDER:
        made[ORDER] = rows.column(target.order_by)
    return pa.table(made)


def _is_deleted(rows: pa.Table, field: str) -> pa.ChunkedArray:
    import pyarrow as pa
    from pyarrow import compute

    given = rows.column(field)
    if pa.types.is_boolean(given.type) or pa.types.is_null(given.type):
        return given.cast(pa.bool_())
    if pa.types.is_string(given.type) or pa.types.is_large_string(given.type):
        return compute.equal(given, "d")
    raise StateError(
        f"delete_where= names {field}, whose values have the type {given.type}. It takes a "
        "boolean, or a string that is 'd' for a row to delete. Cast the field."
    )
