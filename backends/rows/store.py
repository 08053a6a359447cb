"""Where rows are kept: the control record, the rows that wait, and the user's table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import orjson

from trident.backends.rows.catalog import catalog, reflected, staging_name
from trident.backends.rows.columns import Types, checked_staging
from trident.backends.rows.database import RowsDatabase, alchemy
from trident.backends.rows.merging import merge
from trident.backends.rows.target import NUMBER, PART, Target
from trident.states.backing_map import IBackingMap
from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError, StaleBatchError, StateError
from trident.states.values import Token

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Column, Connection, Row, Table

Change = tuple[str | None, bytes, bytes | None]
"""A state's name, its new control record, and what that has to be before."""


class RowsStore(IBackingMap):
    """The rows of one state on their way into the user's table; it has no entries.

    The transition of the record from *ready* to committed **is** the merge: whoever makes it, and
    whenever, does both in one transaction. A task writes only; all else is the driver's.
    """

    def __init__(self, database: RowsDatabase, target: Target, name: str, types: Types) -> None:
        self.where = f"the table {target.name} in {database}"
        self.prefix: str = name
        self._database = database
        self._target = target
        self._types = types
        self._catalog = catalog(target.schema)
        self._written: tuple[Token, Mapping[int, int]] = Token(0, 0), {}
        self._made: Table | None = None
        """The staging table as it has to be, once the user's table was looked at."""
        self._staging_fits = False

    # Tasks.

    def stage(self, part: int, rows: pa.Table, record: ControlRecord) -> None:
        """Write the rows of one task, where the control record is still the one that has begun.

        In one transaction: so a task that was overtaken leaves nothing. Those of a task whose
        answer was lost stay, and are not named when the attempt is made ready.
        """
        import pyarrow as pa

        sql, states = alchemy(), self._catalog
        begun = states.c.name == self.prefix, states.c.control == record.encode()
        fence = sql.select(sql.literal(1)).where(*begun).with_for_update(read=True)
        marked = rows.add_column(0, PART, pa.repeat(pa.scalar(part, pa.int64()), rows.num_rows))
        if self._database.numbered:
            marked = marked.add_column(1, NUMBER, pa.array(range(rows.num_rows), pa.int64()))
        staging = _named(self._target, self.prefix, marked.schema.names)
        with self._database.transaction() as connection:
            self._database.load(connection, staging, marked)
            if connection.execute(fence).first() is None:
                raise StaleBatchError(record.token)

    # The driver.

    def written(self, token: Token, parts: Mapping[int, int]) -> None:
        """Note which tasks have written how many rows of an attempt: these count, no others."""
        known = self._written[1] if self._written[0] == token else {}
        self._written = token, {**known, **parts}

    def getControl(self) -> bytes | None:
        self._check()
        with self._database.transaction() as connection:
            return _stored(self._row(connection, self.prefix))

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        self._check()
        with ExitStack() as transaction:
            connection = transaction.enter_context(self._database.transaction())
            if not self._replaced(connection, [(self.prefix, new, expected)]):
                connection.rollback()
                return False
        return self._staging_fits or ControlRecord.decode(new).ready or self._make_staging(new)

    @property
    def catalog(self) -> Hashable:
        return self._database, self._target.schema

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        prepared = self.prepareControls(changes)
        if prepared is None:
            return False
        finish, _ = prepared
        finish()
        return True

    def prepareControls(
        self, changes: Sequence[tuple[str | None, bytes, bytes]]
    ) -> tuple[Callable[[], None], Callable[[], None]] | None:
        with ExitStack() as transaction:
            connection = transaction.enter_context(self._database.transaction())
            if self._replaced(connection, changes):
                held = transaction.pop_all()
                return held.close, partial(_undo, connection, held)
            connection.rollback()
        return None

    def incarnation(self) -> str:
        with self._database.transaction() as connection:
            return self._database.incarnation(connection)

    def multiGet(self, keys: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where}: rows are read with SQL, not by key")

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where}: rows are written by partitionPersist(Rows(…))")

    def _replaced(self, connection: Connection, changes: Sequence[Change]) -> bool:
        """Whether all records were as expected, and are replaced."""
        # Locked in order, so that no two who change several records wait for each other.
        for name, new, expected in sorted(changes, key=lambda change: str(change[0])):
            found = self._row(connection, str(name), lock=True)
            if found is None or _stored(found) != expected:
                return False
            self._become(connection, found, ControlRecord.decode(new))
        return True

    def _become(self, connection: Connection, found: Row[Any], new: ControlRecord) -> None:
        """Do what the change of a record means, and change it."""
        stored = _stored(found)
        old = None if stored is None else ControlRecord.decode(stored)
        told: dict[str, Any] = {"control": new.encode()}
        waits = old is not None and old.ready and not old.is_committed(*old.token)
        if old is not None and waits and new.is_committed(*old.token):
            self._merge(connection, found)
        if old is None or old.token != new.token:  # a begin: nothing that was left there counts
            if self._staging_fits:
                self._database.empty(connection, self._staging(found, Target.decode(found.kept)), 0)
            told |= {"kept": self._target.encode(), "parts": None}
        elif new.ready and not old.ready:
            token, parts = self._written
            counted = {str(part): rows for part, rows in parts.items() if token == new.token}
            told["parts"] = orjson.dumps(counted).decode()
        where = self._catalog.c.name == found.name
        connection.execute(self._catalog.update().where(where).values(told))

    def _merge(self, connection: Connection, found: Row[Any]) -> None:
        parts = {int(part): rows for part, rows in orjson.loads(found.parts or "{}").items()}
        if not parts:
            return
        target, sql = Target.decode(found.kept), alchemy()
        staging = self._staging(found, target)
        counted = sql.select(sql.func.count()).where(staging.c[PART].in_(parts))
        there, due = connection.execute(counted).scalar_one(), sum(parts.values())
        if there != due:
            raise CorruptStateError(
                f"the table {staging.name} in {self._database}",
                f"it has {there} rows of a batch of {due} that is committed",
                "The database has lost what it had confirmed: restore it from a backup.",
            )
        columns = target.columns.values()
        table = sql.Table(
            target.table, sql.MetaData(schema=target.schema), *map(sql.Column, columns)
        )
        merge(connection, self._database, target, table, staging, list(parts))
        self._database.empty(connection, staging, due)

    def _staging(self, found: Row[Any], target: Target) -> Table:
        return _named(target, found.name, [PART, *target.staged])

    def _row(self, connection: Connection, name: str, *, lock: bool = False) -> Row[Any] | None:
        found = alchemy().select(self._catalog).where(self._catalog.c.name == name)
        return connection.execute(found.with_for_update() if lock else found).first()

    def _check(self) -> None:
        """Make what is missing, once; look whether the table takes the rows."""
        if self._made is not None:
            return
        with self._database.transaction() as connection:
            self._catalog.create(connection, checkfirst=True)
        with self._database.transaction() as connection:
            found = self._row(connection, self.prefix)
            record = _stored(found)
            begun = record is not None and not ControlRecord.decode(record).is_unused
            name = staging_name(self.prefix)
            made = checked_staging(
                connection, self._database, self._target, self._types, name, begun=begun
            )
            if found is None:
                row = {"name": self.prefix, "kept": self._target.encode()}
                connection.execute(self._catalog.insert().values(row))
            there = reflected(connection, self._target, name)
        self._made = made
        self._staging_fits = there is not None and _described(there.c) == _described(made.c)

    def _make_staging(self, begun: bytes) -> bool:
        """Make the staging table anew, while the attempt that has just begun is the last to have.

        Rows of one that has begun since may wait to be merged.
        """
        assert self._made is not None
        with self._database.transaction() as connection:
            if _stored(self._row(connection, self.prefix, lock=True)) == begun:
                with self._database.defining(connection) as defining:
                    self._made.drop(defining, checkfirst=True)
                    self._made.create(defining)
                self._staging_fits = True
        return self._staging_fits


def _undo(connection: Connection, held: ExitStack) -> None:
    with held:
        connection.rollback()


def _stored(row: Row[Any] | None) -> bytes | None:
    return None if row is None or row.control is None else bytes(row.control)


def _described(columns: Iterable[Column[Any]]) -> list[tuple[str, str, bool]]:
    return [(column.name, str(column.type), bool(column.nullable)) for column in columns]


def _named(target: Target, name: str, columns: Sequence[str]) -> Table:
    """The staging table of a state, with columns of any type."""
    sql = alchemy()
    metadata = sql.MetaData(schema=target.schema)
    return sql.Table(staging_name(name), metadata, *map(sql.Column, columns))  # type: ignore[no-any-return]
