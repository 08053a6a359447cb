"""Rows in a SQLite file: the driver writes them."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.errors import CHANGED, RefusedRowError, TableMismatchError
from trident.backends.rows.merging import Change
from trident.backends.sqlite import SQLiteStore
from trident.backends.sqlite.connections import file_identity
from trident.backends.state_url import StateURL
from trident.states.errors import StateError, StateUnavailableError
from trident.states.finding import Finding

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Executable, Select, Table

_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")

_COLUMN = re.compile(r"^NOT NULL constraint failed: .*\.(.+)$")


class _Connection(sqlite3.Connection):
    """A connection that knows which file it has opened."""

    file = ""


@dataclass(frozen=True)
class SQLite(RowsDatabase):
    """A SQLite file, on a local disk.

    Parameters
    ----------
    path : str
        The file; made where it is absent, in a folder that exists.
    timeout : float
        Seconds to wait while another process is writing.
    """

    path: str
    timeout: float = field(default=30.0, compare=False)

    hosted = "driver"
    zoned = False
    dialect = "sqlite"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.path.realpath(self.path))

    @property
    def place(self) -> str:
        return self.path

    def connect(self) -> sqlite3.Connection:
        try:
            made = _Connection(
                self.path, self.timeout, isolation_level=None, check_same_thread=False
            )
            for pragma in _PRAGMAS:
                made.execute(f"PRAGMA {pragma}")
            made.file = file_identity(self.path)
        except sqlite3.OperationalError as error:
            advice = "Is the folder there, and may this user write to it?"
            raise StateUnavailableError(self.path, str(error), advice) from None
        return made

    def is_elsewhere(self, connection: Any) -> bool:
        return bool(connection.file != file_identity(self.path))

    def begin(self, connection: Connection) -> None:
        # A transaction that read first could not begin to write while another one has written.
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def upsert(
        self, table: Table, key: Sequence[str], changed: Mapping[str, Change], rows: Select[Any]
    ) -> Executable:
        from sqlalchemy.dialects.sqlite import insert

        made = insert(table).from_select(list(rows.selected_columns.keys()), rows)
        if not changed:
            return made.on_conflict_do_nothing(index_elements=key)
        told = {
            name: _whole(table.c[name], made.excluded[name], change)
            for name, change in changed.items()
        }
        return made.on_conflict_do_update(index_elements=key, set_=told)

    def load(self, connection: Connection, staging: Table, rows: pa.Table) -> None:
        columns = [_bindable(column) for column in rows.columns]
        super().load(connection, staging, rows.from_arrays(columns, names=rows.schema.names))

    def check_deferred(self, connection: Connection) -> None:
        told = "SELECT 1 FROM sqlite_master WHERE sql LIKE '%INITIALLY DEFERRED%' LIMIT 1"
        if connection.exec_driver_sql(told).first() is None:
            return
        found = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
        if found is not None:
            reason = f"a row of {found[0]} refers to a row of {found[2]} that isn't there"
            raise RefusedRowError(str(self), f"FOREIGN KEY constraint failed: {reason}")

    def refine(self, connection: Connection, table: Table) -> None:
        # SQLite finds a table by any capitals; what looks for its keys doesn't.
        asked = "SELECT name FROM sqlite_master WHERE tbl_name = name AND name = ? COLLATE NOCASE"
        name = connection.exec_driver_sql(asked, (table.name,)).scalar()
        if name not in (None, table.name):
            raise TableMismatchError(f"{table.name} in {self}", [f"it is called {name}: name that"])
        found = connection.exec_driver_sql(
            "SELECT c.name, c.coll FROM pragma_index_list(?) AS i, pragma_index_xinfo(i.name) AS c "
            """WHERE i."unique" AND c.key AND c.coll <> 'BINARY'""",
            (table.name,),
        )
        for name, collation in found:
            if name in table.c:
                table.c[name].type = alchemy().Text(collation=collation)

    def incarnation(self, connection: Connection) -> str:
        return ""

    def examine(self) -> Iterator[Finding]:
        return SQLiteStore(self.path).examine()

    def explain(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError):
            column = _COLUMN.search(str(error))
            return RefusedRowError(str(self), str(error), column and column[1])
        if "unknown database" in str(error):
            advice = "A file of SQLite has no schemas: name the table without one."
            return StateError(f"{self}: {error}. {advice}")
        if isinstance(error, sqlite3.OperationalError):
            if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                return StateUnavailableError(str(self), str(error), "Does another process hold it?")
            if "overflow" in str(error):
                return RefusedRowError(str(self), str(error))
            return StateError(f"{self}: {error}. {CHANGED}")
        return error


def _whole(there: Any, given: Any, change: Change) -> Any:
    """What a column becomes; an error where whole numbers add up to what has more than 64 bits.

    SQLite would keep a number that is only near it. That of which there is no absolute value is how
    an expression raises an error.
    """
    sql = alchemy()
    made = change(there, given)
    if made is given:
        return made
    kind = sql.func.typeof
    whole = [kind(there) == "integer", kind(given) == "integer", kind(made) == "real"]
    overflow = sql.func.abs(sql.literal_column("-9223372036854775807 - 1"))
    return sql.case((sql.and_(*whole), overflow), else_=made)


def _bindable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that SQLite takes: decimals, dates and moments are texts, these in UTC."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))  # of a moment, its time in UTC
    elif not (pa.types.is_decimal(column.type) or pa.types.is_date(column.type)):
        return column
    return column.cast(pa.string())


def from_url(url: StateURL) -> SQLite:
    """Return the database of ``sqlite:shop.db``; ``timeout=`` is in seconds."""
    file = SQLiteStore(url.local_path())  # which refuses what is none
    return SQLite(file.path, **url.read_own(timeout=float))
