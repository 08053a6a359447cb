"""Rows of a stream in a table of the user's own, each batch of them exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

from trident.backends.rows.catalog import NAME_LENGTH
from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.errors import (
    DuplicateKeyError,
    RefusedRowError,
    TableMismatchError,
    TooManyBadRowsError,
)
from trident.backends.rows.pipeline import Pipeline
from trident.backends.rows.state import RowsState
from trident.backends.rows.store import RowsStore
from trident.backends.rows.target import Mode, OnBadRow, target_of
from trident.backends.rows.urls import database_from_url
from trident.states.errors import UsageError
from trident.states.state import StateFactory
from trident.states.values import StateType

__all__ = [
    "DuplicateKeyError",
    "Pipeline",
    "RefusedRowError",
    "Rows",
    "RowsDatabase",
    "RowsState",
    "TableMismatchError",
    "TooManyBadRowsError",
]


class Rows(StateFactory):
    """A table of yours that takes the rows of a stream, for ``partitionPersist``.

    The columns are of your own types, your other columns, indexes, defaults and triggers stay as
    they are. A batch becomes visible in one transaction, once, whoever is killed. Pickles, with
    the URL's password, and connects to nothing until the topology starts.

    Parameters
    ----------
    database : str or RowsDatabase
        Its URL, ``postgresql://user@host/shop``, ``mysql://…``, ``sqlite:shop.db``; or an object
        of your own.
    table : str or (str, str)
        The table, ``"orders"`` or ``"shop.orders"``. It is made where it is absent, with the types
        of the fields and `key` as its primary key; else checked at the start.
    key : str or sequence of str
        The columns by which a row is found: the primary key, or a unique index.
    mode : str
        ``"upsert"``, the default with a key: a row replaces the one of its key, in the columns
        that are filled. ``"append"``, the default without: rows are added. ``"add"``: the other
        columns are added to what is there.
    columns : mapping of str to str
        The column of a field that has another name; None for a field that is not stored.
    order_by : str, optional
        The field whose greatest value tells the last row of a key. Without it two rows of one key
        in one batch are an error.
    delete_where : str, optional
        The field that says which rows are deleted: a boolean, or a string that is ``"d"`` then, as
        Debezium's `op`. It is not stored, unless `columns` names it.
    on_bad_row : str
        What becomes of a batch in which the table refuses a row: ``"fail"`` stops the run;
        ``"dead-letter"`` puts the row with the reason into ``trident_bad_rows``.
    name : str, optional
        What tells this writer from others of the same table; by default the table.

    Raises
    ------
    UsageError
        For arguments that don't go together.

    Examples
    --------
    >>> orders = Rows("sqlite:shop.db", table="orders", key="order_id")
    >>> orders.label, orders.kind.value, orders.target.mode
    ('Rows(orders, upsert by order_id)', 'opaque', 'upsert')
    """

    kind = StateType.OPAQUE

    def __init__(
        self,
        database: str | RowsDatabase,
        table: str | Sequence[str],
        key: str | Sequence[str] | None = None,
        *,
        mode: Mode | None = None,
        columns: Mapping[str, str | None] | None = None,
        order_by: str | None = None,
        delete_where: str | None = None,
        on_bad_row: OnBadRow = "fail",
        name: str | None = None,
    ) -> None:
        self.database = database_from_url(database) if isinstance(database, str) else database
        self.target = target_of(table, key, mode, order_by, delete_where, on_bad_row)
        self.name = name or self.target.name
        if len(self.name) > NAME_LENGTH:
            raise UsageError(f"Rows: name= has at most {NAME_LENGTH} characters, found", self.name)
        self.hosted = self.database.hosted
        self._named = dict(columns or {})
        self._types: Mapping[str, str | None] = {}

    @property
    def label(self) -> str:
        """What ``explain()`` calls the factory."""
        return str(self.target)

    @property
    def identity(self) -> tuple[str, ...]:  # type: ignore[override]
        """What tells this state from others."""
        return f"a table in {self.database.name}", self.database.place, self.name

    def moved(self, database: RowsDatabase) -> Rows:
        """Return the factory for a database without schemas; its table has the schema's name too.

        For tests of a topology.
        """
        made = copy(self)
        made.database, made.hosted = database, database.hosted
        made.target = replace(self.target, table=self.target.name, schema=None)
        return made

    def of(self, types: Mapping[str, str | None]) -> Rows:
        """Return the factory for rows of these fields; called where the topology declares them."""
        if unknown := [name for name in self._named if name not in types]:
            raise UsageError("Rows: columns= names no field of the rows with", unknown[0], [*types])
        made = copy(self)
        stored = {
            name: self._named.get(name, name) for name in types if name != self.target.delete_where
        }
        stored |= {name: column for name, column in self._named.items() if name not in stored}
        columns = {name: column for name, column in stored.items() if column is not None}
        made.target = replace(self.target, columns=columns)
        made._types = dict(types)
        return made

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> RowsState:
        alchemy(self.database.extra)
        if not self._types:
            raise UsageError("Rows is for partitionPersist, which tells it the fields of its rows")
        store = RowsStore(self.database, self.target, self.name, self._types)
        return RowsState(store, self.target)
