"""The backing maps over a table in PostgreSQL."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from time import monotonic
from typing import Any

import orjson

from trident.backends.postgres.connections import Database
from trident.backends.postgres.driver import Array, definition, driver
from trident.backends.postgres.errors import explained
from trident.backends.postgres.statements import (
    GET_CONTROL,
    INCARNATION,
    LOCK_CONTROL,
    PREFIXES,
    PUT_CONTROL,
    PUT_CONTROLS,
    Statements,
)
from trident.backends.postgres.tables import CATALOG, CREATE_CATALOG, PostgresTable, view_of
from trident.states.backing_map import Codec, IBackingMap, Range, between
from trident.states.errors import (
    CorruptStateError,
    LongOverflowError,
    SerializationError,
    StaleBatchError,
    StateError,
)
from trident.states.keys import decode_key
from trident.states.maps.stored_map import StoredMap
from trident.states.values import StateType, Token

_AT_ONCE = 2**26
"""Bytes in a statement; the server takes 16 times as many, and needs memory for them."""
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOOK_SECONDS = 1.0
"""How long to wait for a notification, which a pooler may keep back, before looking anyway."""


class PostgresMap(IBackingMap):
    """The rows of one state, as a map of encoded keys and value objects. Pickles.

    Every call is one statement, and so one transaction and one round trip, unless it writes many
    megabytes. The first write makes the state's table and its view.
    """

    codec = Codec.VALUES

    def __init__(self, server: Database, table: PostgresTable) -> None:
        self.where = str(server)
        self.prefix = table.name
        self._server = server
        self._table = table
        self._statements = Statements(table)
        self._pinned: Any = None

    def multiGet(self, keys: Sequence[bytes]) -> list[Any]:
        if not keys:
            return []
        rows = self._read(self._statements.get, keys=self._table.keys(keys))
        if rows is None:
            self._check_nothing_is_lost()
            return [None] * len(keys)
        return self._table.values_of(rows)

    def multiPut(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        for rows in self._parts(keys, values):
            if self._write(self._statements.put, **rows) is None:
                self._make()
                self._write(self._statements.put, **rows)

    def getControl(self) -> bytes | None:
        for control, kept in self._read(GET_CONTROL, name=self._table.name) or ():
            self._check(kept)
            return None if control is None else bytes(control)
        return None

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        values = {"new": new, "expected": expected, "name": self._table.name}
        if self._write(PUT_CONTROL, **values):
            return True
        if expected is not None or not self._make():
            return False
        return bool(self._write(PUT_CONTROL, **values))

    @property
    def catalog(self) -> Hashable:
        return self._server.settings

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        columns = map(list, zip(*changes, strict=True))
        values = dict(zip(("names", "new", "expected"), columns, strict=True))
        return bool(self._write(PUT_CONTROLS, **values))

    def moveControls(self, moves: Sequence[tuple[str, bytes, bytes, str]]) -> bool:
        """Replace the records, and let each view show what the other state's view shows."""
        with self._server.lend() as connection, connection.transaction():
            for name, _, expected, _ in sorted(moves):
                found = connection.execute(LOCK_CONTROL, [name]).fetchone()
                if found is None or found[0] != expected:
                    return False
            for name, new, expected, to in moves:
                values = {"name": name, "new": new, "expected": expected}
                connection.execute(PUT_CONTROL, values)
                has_view = "SELECT to_regclass(quote_ident(%s)) IS NOT NULL"
                if connection.execute(has_view, [view_of(to)]).fetchone()[0]:
                    names = {"view": view_of(name), "other": view_of(to)}
                    view = definition("VIEW {view} AS SELECT * FROM {other}", **names)
                    try:  # this keeps the grants
                        with connection.transaction():
                            connection.execute(f"CREATE OR REPLACE {view}")
                    except driver().errors.InvalidTableDefinition:  # it has other columns
                        connection.execute(definition("DROP VIEW {view}", view=names["view"]))
                        connection.execute(f"CREATE {view}")
            return True

    def drop(self, fence: bytes) -> bool:
        table, name = self._table, [self._table.name]
        with self._server.lend() as connection, connection.transaction():
            found = connection.execute(LOCK_CONTROL, name).fetchone()
            if found is None or found[0] != fence:
                return False
            connection.execute(definition("DROP VIEW IF EXISTS {view}", view=view_of(table.name)))
            emptied = f"DELETE FROM {{table}} WHERE {table.own}"
            statement = emptied if table.shared else "DROP TABLE {table}"
            connection.execute(definition(statement, table=table.place))
            connection.execute(f"DELETE FROM {CATALOG} WHERE name = %s", name)
            return True

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[Any], fence: bytes) -> bool:
        put = self._statements.put_fenced
        return all(self._write_fenced(put, fence, **rows) for rows in self._parts(keys, values))

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        stored = self._table.keys(keys)
        return self._write_fenced(self._statements.remove_fenced, fence, keys=stored)

    def entries(self) -> list[tuple[bytes, Any]]:
        rows = self._read(self._statements.entries)
        if rows is None:
            self._check_nothing_is_lost()
            return []
        return self._entries(rows)

    def pages(self, part: Range = (None, None)) -> Iterator[list[tuple[bytes, Any]]]:
        after, end = part
        while rows := self._read(self._statements.page, after=after, end=end):
            after = bytes(rows[-1][0])
            yield self._entries([row[1:] for row in rows])
        if rows is None:
            self._check_nothing_is_lost()

    def parts(self, count: int) -> list[Range]:
        place = definition("{table}", table=self._table.place)
        keys = [bytes(key) for (key,) in self._read(self._statements.sample, place=place) or ()]
        places = [len(keys) * number // count for number in range(1, count)]
        return between([keys[place] for place in places] if len(keys) >= count else [])

    def _entries(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[bytes, Any]]:
        values = self._table.values_of([row[1:] for row in rows])
        return [(bytes(row[0]), value) for row, value in zip(rows, values, strict=True)]

    def occupant(self) -> str | None:
        rows = self._read(f"{self._statements.entries} LIMIT 1")
        return f"the row {bytes(rows[0][0])!r}" if rows else None

    def prefixes(self) -> list[str]:
        return [name for (name,) in self._read(PREFIXES) or ()]

    def incarnation(self) -> str:
        """Return which server this is, started when, and whether it has recovered since."""
        rows = self._read(INCARNATION)
        assert rows is not None
        return str(rows[0][0])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self._pinned is not None:
            yield
            return
        with self._server.lend() as connection:
            connection.execute(_BEGIN)
            self._pinned = connection
            try:
                yield
            finally:
                self._pinned = None
            connection.execute("COMMIT")

    @contextmanager
    def listening(self) -> Iterator[Any]:
        """Open a connection that is notified when a control record has changed."""
        with closing(self._server.connect()) as connection, explained(self._server):
            connection.execute(f"LISTEN {CATALOG}")
            yield connection

    def _parts(self, keys: Sequence[bytes], values: Sequence[Any]) -> Iterator[Mapping[str, Array]]:
        """Yield the columns of rows, in parts that the server takes at once."""
        rows = self._table.rows(keys, values)
        middle = len(keys) // 2
        if middle and sum(map(len, rows.values())) > _AT_ONCE:
            yield from self._parts(keys[:middle], values[:middle])
            yield from self._parts(keys[middle:], values[middle:])
        else:
            yield rows

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        if self._pinned is None:
            with self._server.lend() as connection:
                yield connection
        else:
            with explained(self._server):
                yield self._pinned

    def _read(self, statement: str, **values: Any) -> list[Any] | None:
        """Return the rows of a query; None if the table is missing."""
        with self._reader() as connection:
            try:
                rows: list[Any] = connection.execute(statement, values, binary=True).fetchall()
            except driver().errors.UndefinedTable:
                if self._pinned is not None:  # an error ends the transaction
                    connection.execute("ROLLBACK")
                    connection.execute(_BEGIN)
                return None
            return rows

    def _write(self, statement: str, **values: Any) -> int | None:
        """Return a statement's answer, 0 if it has none; None if the table is missing."""
        with self._server.lend() as connection:
            try:
                row = connection.execute(statement, values, binary=True).fetchone()
            except driver().errors.UndefinedTable:
                return None
            return row[0] if row else 0

    def _write_fenced(self, statement: str, fence: bytes, **values: Any) -> bool:
        passed = self._write(statement, name=self._table.name, fence=fence, **values)
        if passed is None:
            self._check_nothing_is_lost()
        return bool(passed)

    def _check_nothing_is_lost(self) -> None:
        """Raise CorruptStateError if the state has begun and its table is missing."""
        if self.getControl() is not None:
            raise CorruptStateError(
                f"table {self._table.place} in {self.where}",
                f"it is missing, but {CATALOG} says that the state {self._table.name} has begun",
                "Restore both from a backup; or begin anew with another prefix.",
            )

    def _check(self, kept: str) -> None:
        if kept != self._table.kept:
            raise CorruptStateError(
                f"state {self._table.name} in {self.where}",
                f"it keeps {kept}, and was opened for {self._table.kept}",
                "Give kind=, values=, serializer= and table= as they were, or another prefix.",
            )

    def _make(self) -> bool:
        """Make what is missing; return whether anything was."""
        with self._server.lend() as connection, connection.transaction():
            # One process at a time: others see the table only when its maker has committed.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [CATALOG])
            [[found]] = connection.execute("SELECT to_regclass(%s)", [CATALOG])
            if found is None:
                self._check_encoding(connection)
                connection.execute(CREATE_CATALOG)
            for _, kept in connection.execute(GET_CONTROL, {"name": self._table.name}):
                self._check(kept)
                return False
            self._create(connection)
            return True

    def _create(self, connection: Any) -> None:
        table = self._table
        register = f"INSERT INTO {CATALOG} (name, kept) VALUES (%s, %s)"
        sharing = f"SELECT FROM {CATALOG} WHERE kept = %s LIMIT 1"
        try:
            if not (table.shared and connection.execute(sharing, [table.kept]).rowcount):
                connection.execute(table.create)
            if table.kind is StateType.OPAQUE:
                connection.execute(table.create_view)
        except driver().errors.DuplicateTable:
            raise CorruptStateError(
                f"table {table.place} or {view_of(table.name)} in {self.where}",
                f"something other than a state that keeps {table.kept} has that name",
                "Give this state another name (prefix=, table=), or another database.",
            ) from None
        connection.execute(register, [table.name, table.kept])

    def _check_encoding(self, connection: Any) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            advice = "Give a database made with ENCODING 'UTF8'."
            raise CorruptStateError(self.where, f"its texts are in {encoding}", advice)


class PostgresNumbers(PostgresMap):
    """The same for values that are numbers, to which the database itself adds."""

    def multiAddFenced(
        self,
        keys: Sequence[bytes],
        amounts: Sequence[int | float],
        token: Token,
        retried: Mapping[int, int],
        fence: bytes,
    ) -> bool:
        values = {
            **self._table.keyed(keys),
            "amounts": self._table.native(list(amounts)),
            "txid": token.txid,
            "attempt": token.attempt,
            "retried": orjson.dumps(dict(retried), option=orjson.OPT_NON_STR_KEYS).decode(),
        }
        errors = driver().errors
        try:
            return self._write_fenced(self._statements.add_fenced, fence, **values)
        except (errors.DivisionByZero, errors.NumericValueOutOfRange):
            found = self._read(self._statements.why_not_added, **values)
        for is_later, txid, attempt, key, total in found or ():
            if is_later:
                raise StaleBatchError(token, Token(txid, attempt))
            if self._table.values == "bigint":
                raise LongOverflowError(f"the value of key {decode_key(key)!r}", int(total))
        raise SerializationError("value", "a sum that is not finite", "Give smaller amounts.")


def wait_committed(state: StoredMap, after: int, timeout: float = 60.0) -> int:
    """Return the txid of the last committed batch, as soon as it is another than `after`.

    It may be below `after`: a state that was built anew, and has taken the place of this one,
    counts its batches anew.

    Parameters
    ----------
    state : StoredMap
        A state in PostgreSQL, of any process, as ``makeState()`` of its factory returns it.
    after : int
        The txid that this returned before, whose batch is known; 0 waits for the first one.
    timeout : float
        Seconds to wait.

    Raises
    ------
    TimeoutError
        When no such batch was committed in time.
    NoStateError
        When there is no state.
    StateUnavailableError
        When the server can't be reached.
    """
    backing = state.backing
    if not isinstance(backing, PostgresMap):
        raise StateError(f"wait_committed() takes a state in PostgreSQL, not {state.control.place}")
    deadline = monotonic() + timeout
    with backing.listening() as connection:
        while True:
            state.locate()
            found = state.control.expect()
            if found is not None and found.committed not in (0, after):
                return found.committed
            remaining = deadline - monotonic()
            if remaining <= 0:
                break
            for _ in connection.notifies(timeout=min(remaining, _LOOK_SECONDS), stop_after=1):
                pass
    raise TimeoutError(f"no batch after {after} was committed within {timeout:g} s")
