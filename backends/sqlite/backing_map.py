"""The backing map over one table of a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from trident.backends.sqlite.adding import Adding
from trident.backends.sqlite.connections import FileConnections, transaction
from trident.backends.sqlite.tables import CATALOG, CREATE_CATALOG, SQLiteTable, stored_keys
from trident.states.backing_map import Codec, IBackingMap, Range, between
from trident.states.errors import CorruptStateError
from trident.states.values import Token

_SHOWN = 20
"""How many states an error lists."""


class SQLiteMap(IBackingMap):
    """The table of one state, as a map of encoded keys and value objects.

    Any thread of any process may use it. Each process has connections of its own: one that writes,
    and read-only ones. Pickles without them.

    `patience` is how many seconds to wait while another process is writing.
    """

    codec = Codec.VALUES

    _adding: Adding
    """Belongs to the writing connection, and is made with it."""

    def __init__(self, path: str, table: SQLiteTable, patience: float) -> None:
        self.where = path
        self.prefix = table.name
        self._path = path
        self._table = table
        self._patience = patience
        self._connections = FileConnections(path, patience, self._prepare, self._usable)
        self._unsaved = False

    def __reduce__(self) -> tuple[Any, ...]:
        return SQLiteMap, (self._path, self._table, self._patience)

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        if not keys:
            return []
        with self._connections.reader() as connection:
            if connection is None:
                return [None] * len(keys)
            return self._table.get(connection, keys)

    def multiPut(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        rows = self._table.rows(keys, values)
        with self._transaction() as connection:
            connection.executemany(self._table.upsert, rows)

    def getControl(self) -> bytes | None:
        with self._connections.reader() as connection:
            return None if connection is None else self._control(connection)

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        update = f"UPDATE {CATALOG} SET control = ? WHERE name = ?"
        values = new, self._table.name
        return self._write(expected, lambda connection: connection.execute(update, values))

    def drop(self, fence: bytes) -> bool:
        def drop(connection: sqlite3.Connection) -> None:
            connection.execute(f"DROP TABLE {self._table.quoted}")
            connection.execute(f"DELETE FROM {CATALOG} WHERE name = ?", (self._table.name,))

        dropped = self._write(fence, drop)
        if dropped:
            self.close()  # the next connection makes the table anew
        return dropped

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[Any], fence: bytes) -> bool:
        rows, upsert = self._table.rows(keys, values), self._table.upsert
        return self._write(fence, lambda connection: connection.executemany(upsert, rows))

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        rows, delete = zip(stored_keys(keys), strict=True), self._table.delete
        return self._write(fence, lambda connection: connection.executemany(delete, rows))

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        return self._write(fence, lambda _: self._adding.add(keys, amounts, token, retried))

    def entries(self) -> list[tuple[bytes, Any]]:
        with self._connections.reader() as connection:
            return [] if connection is None else self._table.all(connection)

    def pages(self, part: Range = (None, None)) -> Iterator[list[tuple[bytes, Any]]]:
        after, end = part
        while True:
            with self._connections.reader() as connection:
                page = [] if connection is None else self._table.page(connection, after, end)
            if not page:
                return
            after = page[-1][0]
            yield page

    def parts(self, count: int) -> list[Range]:
        with self._connections.reader() as connection:
            return between([] if connection is None else self._table.bounds(connection, count))

    def occupant(self) -> str | None:
        with self._connections.reader() as connection:
            return None if connection is None else self._table.any(connection)

    def prefixes(self) -> list[str]:
        with self._connections.glance() as connection:
            if connection is None or not _has_table(connection, CATALOG):
                return []
            rows = connection.execute(f"SELECT name FROM {CATALOG} WHERE control IS NOT NULL")
            return [name for (name,) in rows.fetchmany(_SHOWN)]

    def flush(self) -> None:
        if self._unsaved:
            self._connections.sync()
            self._unsaved = False

    def incarnation(self) -> str:
        """Return which file this is, so that a file that has replaced it is noticed."""
        return self._connections.identity()

    def snapshot(self) -> AbstractContextManager[None]:
        return self._connections.pinned()

    def close(self) -> None:
        """Close what this process has open; the map may be used again."""
        self._connections.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connections.writer() as connection, transaction(connection):
            self._unsaved = True
            yield connection

    def _write(self, fence: bytes | None, write: Callable[[sqlite3.Connection], object]) -> bool:
        """Call `write` in a transaction if the control record is `fence`; return whether it is."""
        with self._transaction() as connection:
            if self._control(connection) != fence:
                return False
            write(connection)
            return True

    def _control(self, connection: sqlite3.Connection) -> bytes | None:
        row = connection.execute(
            f"SELECT control FROM {CATALOG} WHERE name = ?", (self._table.name,)
        ).fetchone()
        return None if row is None else row[0]

    def _prepare(self, connection: sqlite3.Connection) -> None:
        with transaction(connection):
            connection.execute(CREATE_CATALOG)
            if not self._is_registered(connection):
                self._register(connection)
        self._adding = Adding(connection, self._table)

    def _usable(self, connection: sqlite3.Connection) -> bool:
        return _has_table(connection, CATALOG) and self._is_registered(connection)

    def _is_registered(self, connection: sqlite3.Connection) -> bool:
        row = connection.execute(
            f"SELECT kind FROM {CATALOG} WHERE name = ?", (self._table.name,)
        ).fetchone()
        if row is None:
            return False
        if row[0] != self._table.kind.value:
            raise CorruptStateError(
                f"state {self._table.name} in {self._path}",
                f"it keeps {row[0]} values, and was opened for {self._table.kind.value} ones",
                "Open it as that kind, or give this state another name.",
            )
        return True

    def _register(self, connection: sqlite3.Connection) -> None:
        if _has_table(connection, self._table.name):
            raise CorruptStateError(
                f"table {self._table.name} in {self._path}",
                "something other than a state has that name",
                "Give this state another name, or another file.",
            )
        connection.execute(self._table.create)
        connection.execute(
            f"INSERT INTO {CATALOG} (name, kind) VALUES (?, ?)",
            (self._table.name, self._table.kind.value),
        )


def _has_table(connection: sqlite3.Connection, name: str) -> bool:
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE", (name,))
    return found.fetchone() is not None
