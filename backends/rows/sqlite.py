"""Rows in a SQLite file: the driver writes them."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.errors import CHANGED, RefusedRowError, TableMismatchError
from trident.backends.rows.merging import Change
from trident.backends.rows.pipeline import Pipeline
from trident.backends.sqlite import SQLiteStore
from trident.backends.sqlite.connections import file_identity
from trident.backends.state_url import StateURL
from trident.states.errors import StateError, StateUnavailableError
from trident.states.finding import Finding

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Executable, Select, Table

_PRAGMAS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")

_DIGITS = 15
"""The digits of a decimal that SQLite keeps: it has no type for decimals, and makes a double."""

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
    adds_decimals = False
    dialect = "sqlite"
    # A transaction that read first could not begin to write while another one has written.
    beginning = ("BEGIN IMMEDIATE",)

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

    def upsert(
        self, table: Table, key: Sequence[str], changed: Mapping[str, Change], rows: Select[Any]
    ) -> Executable:
        from sqlalchemy.dialects.sqlite import insert

        made = insert(table).from_select(list(rows.selected_columns.keys()), rows)
        if not changed:
            return made.on_conflict_do_nothing(index_elements=key)
        values = {
            name: _check_sum(table.c[name], made.excluded[name], change)
            for name, change in changed.items()
        }
        return made.on_conflict_do_update(index_elements=key, set_=values)

    def load(self, connection: Connection, staging: Table, rows: pa.Table) -> None:
        names = rows.schema.names
        columns = [_bindable(self, name, rows.column(name)) for name in names]
        super().load(connection, staging, rows.from_arrays(columns, names=names))

    def check_deferred(self, pipeline: Pipeline) -> None:
        connection = pipeline.connection
        deferred = "SELECT 1 FROM sqlite_master WHERE sql LIKE '%INITIALLY DEFERRED%' LIMIT 1"
        if connection.exec_driver_sql(deferred).first() is None:
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


def _check_sum(old: Any, new: Any, change: Change) -> Any:
    """The new value of a column; an error where the sum of whole numbers has more than 64 bits.

    SQLite would keep a double near the sum. An expression can raise an error only by abs() of the
    least number, which has no absolute value.
    """
    sql = alchemy()
    made = change(old, new)
    if made is new:
        return made
    kind = sql.func.typeof
    whole = [kind(old) == "integer", kind(new) == "integer", kind(made) == "real"]
    overflow = sql.func.abs(sql.literal_column("-9223372036854775807 - 1"))
    return sql.case((sql.and_(*whole), overflow), else_=made)


def _bindable(database: SQLite, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that SQLite takes and keeps: decimals, dates and moments are texts, these in UTC.

    Raises RefusedRowError for a value of which it would silently keep another one.
    """
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if pa.types.is_floating(kind) and compute.any(compute.is_nan(column)).as_py():
        raise RefusedRowError(str(database), "SQLite can't hold nan: it would keep null", name)
    if pa.types.is_decimal(kind) and kind.precision > _DIGITS:
        exact = [_exact(database, name, value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(exact, pa.string())])
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us"))  # of a moment, its time in UTC
    elif not (pa.types.is_decimal(kind) or pa.types.is_date(kind)):
        return column
    return column.cast(pa.string())


def _exact(database: SQLite, name: str, value: Decimal | None) -> str | None:
    """A decimal as a text that SQLite keeps as the same number."""
    if value is None:
        return None
    significant = "".join(map(str, value.as_tuple().digits)).strip("0")
    if len(significant) <= _DIGITS:
        return str(value)
    if value == int(value) and abs(value) < 2**63:
        return str(int(value))
    reason = f"SQLite keeps {_DIGITS} digits of a decimal, and {value} has {len(significant)}"
    advice = "Give the table a column of texts, and cast the field to string"
    raise RefusedRowError(str(database), f"{reason}. {advice}", name)


def from_url(url: StateURL) -> SQLite:
    """Return the database of ``sqlite:shop.db``; ``timeout=`` is in seconds."""
    file = SQLiteStore(url.local_path())  # which refuses what is none
    return SQLite(file.path, **url.read_own(timeout=float))
