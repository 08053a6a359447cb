"""Rows in PostgreSQL: tasks copy them, and one MERGE brings those of a batch into the table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from trident.backends.postgres.connections import OPTIONS, Database, address, examine_server
from trident.backends.postgres.driver import definition, driver
from trident.backends.postgres.errors import explain
from trident.backends.postgres.statements import INCARNATION
from trident.backends.rows.database import RowsDatabase
from trident.backends.rows.errors import CHANGED, RefusedRowError
from trident.backends.rows.merging import Change
from trident.backends.rows.pipeline import Pipeline, Statement
from trident.backends.sockets import is_quiet
from trident.backends.state_url import StateURL
from trident.states.errors import CorruptStateError, StateError, StateUnavailableError
from trident.states.finding import Finding

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Dialect, Executable, Select, Table

_SECONDS = 600.0
"""How long a statement may take, unless the URL says another time."""

_LOCK_SECONDS = 30
"""How long others may hold what is wanted, before the batch is tried again."""

_OFTEN = 2**20
"""Bytes of a staging table that are rather given back than deleted row by row."""

_REFUSED = ("21000", "22", "23", "44", "P0")
"""What the codes of errors about a row begin with; the last is what triggers raise."""
_RAISING = ("exec_stmt_raise", "ExecWithCheckOptions")
"""Functions of the server that refuse a row with a code of a trigger's own, or by a policy."""
_COPIED = re.compile(r"^COPY .*, line \d+, column ([^:]+)")

_FORBIDDEN = "42501"
_RIGHTS = (
    "Grant this user SELECT, INSERT, UPDATE and DELETE on the table, and USAGE and CREATE on its "
    "schema and on that of trident_rows, public if no search_path says another."
)

_NO_SCHEMA = "3F000"
_MAKE = 'Create it; or where it is part of the table\'s name, give table=("schema", "a.name").'


@dataclass(frozen=True)
class PostgreSQL(RowsDatabase):
    """A database of a PostgreSQL server, 15 or newer.

    Parameters
    ----------
    server : Database
        Where it is; its timeout bounds each statement, so a merge too.
    """

    server: Database

    extra = "rows,postgres"
    dialect = "postgresql+psycopg"
    finds_duplicates = True
    pings = False

    @property
    def place(self) -> str:
        return self.server.place

    def connect(self) -> Any:
        return self.server.connect()

    def is_elsewhere(self, connection: Any) -> bool:
        # What the server has said, unasked, is its farewell.
        return connection.closed or not is_quiet(connection.fileno())

    @property
    def beginning(self) -> Sequence[str]:  # type: ignore[override]
        # Who stands still loses the locks before others, as the next driver, give up waiting.
        patience = min(_LOCK_SECONDS, self.server.timeout)
        return (
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            f"SET LOCAL idle_in_transaction_session_timeout = '{patience / 2 * 1000:.0f}ms'",
            f"SET LOCAL lock_timeout = '{patience * 1000:.0f}ms'",
        )

    def send(self, connection: Connection, statements: Sequence[Statement]) -> None:
        if len(statements) == 1:  # which SQLAlchemy may have compiled before
            super().send(connection, statements)
            return
        # In one message of the simple protocol. psycopg's own pipeline ends with a Flush, after
        # which the server doesn't count how long a transaction is idle.
        session = _psycopg(connection)
        quoting = driver().ClientCursor(session)
        texts = [_text(quoting, connection.dialect, each) for each in statements]
        results = session.execute(";\n".join(texts))
        for statement in statements:
            if statement.check is not None:
                statement.check(results)
            results.nextset()

    def load(self, connection: Connection, staging: Table, rows: pa.Table) -> None:
        from trident.backends.rows.copying import copy

        copy(_psycopg(connection), _named(staging), rows)

    def upsert(
        self, table: Table, key: Sequence[str], changed: Mapping[str, Change], rows: Select[Any]
    ) -> Executable:
        from trident.backends.rows.merge_into import MergeInto

        return MergeInto(table, key, changed, rows)

    def empty(self, pipeline: Pipeline, staging: Table) -> None:
        # Deleted rows stay until a vacuum; but a new file for a few rows takes longer than they do.
        name = _named(staging)
        text = name.replace("'", "''")
        pipeline.add(
            f"""
            DO $$ BEGIN
                IF pg_relation_size('{text}'::regclass) > {_OFTEN} THEN
                    LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE NOWAIT;
                    TRUNCATE {name};
                ELSE
                    DELETE FROM {name};
                END IF;
            EXCEPTION WHEN lock_not_available THEN DELETE FROM {name};
            END $$"""
        )

    def check_deferred(self, pipeline: Pipeline) -> None:
        pipeline.add("SET CONSTRAINTS ALL IMMEDIATE")

    def incarnation(self, connection: Connection) -> str:
        return str(_psycopg(connection).execute(INCARNATION).fetchone()[0])

    def examine(self) -> Iterator[Finding]:
        return examine_server(self.server)

    def explain(self, error: Exception) -> Exception:
        code = getattr(error, "sqlstate", None) or ""
        told = getattr(error, "diag", None)
        if told and (code.startswith(_REFUSED) or told.source_function in _RAISING):
            copied = _COPIED.search(told.context or "")
            column = told.column_name or (copied and copied[1])
            detail = told.message_detail or ""
            if detail.startswith("Failing row"):  # we say more of it
                detail = ""
            reason = ". ".join(filter(None, (told.message_primary, detail)))
            return RefusedRowError(str(self), reason, column)
        found = explain(str(self), error)
        if code == _FORBIDDEN and isinstance(found, StateUnavailableError):
            return StateUnavailableError(found.place, found.problem, _RIGHTS)
        if code == _NO_SCHEMA:
            return StateError(f"{self}: {error.diag.message_primary}. {_MAKE}")  # type: ignore[attr-defined]
        if isinstance(found, CorruptStateError):
            return StateError(f"{self}: {found.found}. {CHANGED}")
        return found


def from_url(url: StateURL) -> PostgreSQL:
    """Return the database of ``postgresql://user:password@host:port/database``.

    The options are libpq's, and ``timeout=``, in seconds.
    """
    own = url.read_own(timeout=float, **dict.fromkeys(OPTIONS, str))
    timeout = own.pop("timeout", _SECONDS)
    return PostgreSQL(Database.of({**address(url), **own}, timeout))


def _psycopg(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _text(quoting: Any, dialect: Dialect, statement: Statement) -> str:
    """A statement with its parameters in it, quoted by the driver."""
    if isinstance(statement.sql, str):
        return statement.sql
    state = _compiled(statement.sql, dialect).construct_expanded_state(statement.parameters)
    return str(quoting.mogrify(state.statement, state.parameters))


@lru_cache
def _compiled(sql: Executable, dialect: Dialect) -> Any:
    return sql.compile(dialect=dialect)  # type: ignore[attr-defined]


def _named(table: Table) -> str:
    parts = {"schema": table.schema, "name": table.name} if table.schema else {"name": table.name}
    return definition(".".join(f"{{{part}}}" for part in parts), **parts)
