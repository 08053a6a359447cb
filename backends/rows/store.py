"""Where rows are kept: the control record, the rows that wait, and the user's table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import orjson

from trident.backends.rows.bad_rows import Refusals, sources
from trident.backends.rows.catalog import CATALOG, bad_rows, catalog, reflected
from trident.backends.rows.columns import Types, checked_staging
from trident.backends.rows.database import RowsDatabase, alchemy, explained
from trident.backends.rows.entries import (
    Entry,
    OvertakenError,
    entry_of,
    lock_entries,
    replace_entry,
    waiting_names,
    waits,
)
from trident.backends.rows.errors import RefusedRowError
from trident.backends.rows.pipeline import Pipeline
from trident.backends.rows.target import BAD, NUMBER, PART, REASON, SOURCE, Target
from trident.backends.rows.waiting import check_whole, merge_of, staging_table, users_table
from trident.states.backing_map import IBackingMap
from trident.states.control import ControlRecord
from trident.states.errors import (
    CorruptStateError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
)
from trident.states.values import Token

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Table

_logger = logging.getLogger("trident")

Replacement = tuple[str | None, bytes, bytes | None]
"""A state's name, its new control record, and the record that it replaces."""


class RowsStore(IBackingMap):
    """Stages the rows of one state, and merges them into the user's table; it has no entries.

    The transition of the record from *ready* to committed **is** the merge: whoever makes it, and
    whenever, does both in one transaction. A task writes only; all else is the driver's.
    """

    def __init__(self, database: RowsDatabase, target: Target, name: str, types: Types) -> None:
        self.where = target.place_in(database)
        self.prefix: str = name
        quoted = name.replace("'", "''")
        self.removal = f"DELETE FROM {CATALOG} WHERE name = '{quoted}'"
        self._database = database
        self._target = target
        self._types = types
        self._counts: tuple[Token, Mapping[int, int]] = Token(0, 0), {}
        """An attempt, and how many rows each part of it has that counts."""
        self._kept: tuple[Token, pa.Table] | None = None
        """An attempt, and its rows that this process has to write."""
        self._last: Entry | None = None
        """The entry that this process has put last, if nothing has gone wrong since."""
        self._incarnation: str | None = None
        """The server's, as of the transaction that made an attempt ready."""
        self._encoded_target = ""
        self._has_begun = False
        self._outdated: Target | None = None
        """What the entry has kept before a begin, if its staging table was another one."""

    # Tasks.

    def stage(self, record: ControlRecord) -> None:
        """Write the rows that are kept, where the control record is still the one that has begun.

        In one transaction: so a task that was overtaken leaves nothing. Those of a task whose
        answer was lost stay, and are not named when the attempt is made ready.
        """
        try:
            self._stage(record, careful=False)
        except RefusedRowError:
            self._stage(record, careful=True)

    def _stage(self, record: ControlRecord, *, careful: bool) -> None:
        with self._fenced(record) as (pipeline, target):
            self._load(pipeline, target, record.token, careful)

    @contextmanager
    def _fenced(self, record: ControlRecord) -> Iterator[tuple[Pipeline, Target]]:
        """A transaction that ends well only where `record` is still the one that has begun."""
        states = catalog()
        begun = states.c.name == self.prefix, states.c.control == record.encode()
        fence = alchemy().select(states.c.kept).where(*begun)
        with self._database.pipeline() as pipeline:
            kept = pipeline.connection.execute(fence).scalar()
            if kept is None:
                raise StaleBatchError(record.token)
            yield pipeline, Target.decode(kept)
            if pipeline.connection.execute(fence.with_for_update(read=True)).first() is None:
                raise StaleBatchError(record.token)

    # Both.

    def keep(self, token: Token, part: int, rows: pa.Table, rest: pa.Table) -> None:
        """Keep the rows of an attempt: the driver's are written with the record that is ready.

        `rest` are the fields of the rows that are not stored: what the user lets them carry along.
        """
        import pyarrow as pa

        number = pa.repeat(pa.scalar(part, pa.int64()), rows.num_rows)
        rows = rows.add_column(0, PART, number)
        if self._database.numbered or self._target.dead_letters:
            rows = rows.add_column(1, NUMBER, pa.array(range(rows.num_rows), pa.int64()))
        if rest.num_columns:
            rows = rows.append_column(SOURCE, sources(rest))
        self._kept = token, rows
        self.count_rows(token, {part: rows.num_rows})

    def _load(self, pipeline: Pipeline, target: Target, token: Token, careful: bool) -> None:
        """Write the rows that are kept of an attempt into the staging table."""
        if self._kept is None or self._kept[0] != token:
            return
        _, rows = self._kept
        staging = staging_table(target, (*rows.schema.names, *[REASON, BAD] * target.dead_letters))
        keyless = target.dead_letters and any(rows.column(name).null_count for name in target.key)
        if careful or keyless:
            Refusals(pipeline, self._database, target, token).load(staging, rows)
        else:
            self._database.load(pipeline.connection, staging, rows)

    # The driver.

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows of the user's table, ordered by the key."""
        with self._database.transaction() as connection:
            table = reflected(connection, self._target)
            if table is None:
                return []
            key = [table.c[name] for name in self._target.key]
            found = connection.execute(alchemy().select(table).order_by(*key))
            return [tuple(row) for row in found]

    def count_rows(self, token: Token, parts: Mapping[int, int]) -> None:
        """Let the rows of these parts of an attempt count: a number of rows for each part."""
        counted = self._counts[1] if self._counts[0] == token else {}
        self._counts = token, {**counted, **parts}

    def getControl(self) -> bytes | None:
        self._check()
        with self._database.transaction() as connection:
            entry = entry_of(connection, self.prefix)
            return None if entry is None else entry.control

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        return self._put([(self.prefix, new, expected)])

    @property
    def catalog(self) -> Hashable:
        return self._database

    def putControls(self, changes: Sequence[tuple[str | None, bytes, bytes]]) -> bool:
        return self._put(changes)

    def prepareControls(
        self, changes: Sequence[tuple[str | None, bytes, bytes]]
    ) -> tuple[Callable[[], None], Callable[[], None]] | None:
        try:
            held = self._hold(changes)
        except CorruptStateError as lost:  # of a batch that is not committed yet
            raise StateUnavailableError(lost.what, lost.found, "The batch is retried.") from None
        return None if held is None else (partial(self._finish, *held), partial(_undo, held[0]))

    def _put(self, changes: Sequence[Replacement]) -> bool:
        held = self._hold(changes)
        if held is not None:
            self._finish(*held)
            self._kept = None
        return held is not None

    def _finish(self, transaction: ExitStack, entries: Sequence[Entry]) -> None:
        transaction.close()
        self._last = entries[0] if len(entries) == 1 else None
        if self._outdated is not None:
            self._drop(self._outdated)

    def _hold(self, changes: Sequence[Replacement]) -> tuple[ExitStack, Sequence[Entry]] | None:
        """Replace records in a transaction that stays open; return what commits it, and the
        entries.

        None where a record is not as expected. Where the table refuses a row, the transaction is
        begun anew, and finds each row that is at fault.
        """
        self._check()
        self._outdated = None
        last, self._last = self._last, None
        self._incarnation = None
        known = last if last and [change[2] for change in changes] == [last.control] else None
        try:
            return self._try_hold(changes, known, careful=False)
        except RefusedRowError:
            return self._try_hold(changes, known, careful=True)

    def _try_hold(
        self, changes: Sequence[Replacement], known: Entry | None, *, careful: bool
    ) -> tuple[ExitStack, Sequence[Entry]] | None:
        with suppress(OvertakenError), ExitStack() as transaction:
            pipeline = transaction.enter_context(self._database.pipeline())
            entries = self._replace_records(pipeline, changes, known, careful)
            pipeline.send()
            return transaction.pop_all(), entries
        return None

    def incarnation(self) -> str:
        known, self._incarnation = self._incarnation, None
        if known is not None:
            return known
        with explained(self._database), self._database.engine.connect() as connection:
            return self._database.incarnation(connection)

    def unmerged(self, record: bytes) -> list[str]:
        self._check()
        with self._database.transaction() as connection:
            return sorted(waiting_names(connection, ControlRecord.decode(record)))

    def close(self) -> None:
        if self._target.staging:  # else it is a task's, and the next one may use the connection
            # Not the engine's: its new pool would lose the connections of other runs.
            self._database.engine.pool.dispose()

    def multiGet(self, keys: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where}: rows are read with SQL, not by key")

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where}: rows are written by partitionPersist(Rows(…))")

    def _replace_records(
        self, pipeline: Pipeline, changes: Sequence[Replacement], known: Entry | None, careful: bool
    ) -> Sequence[Entry]:
        """Replace records, in the order given; raise OvertakenError where one is not as expected.

        The entry of a single state that this process has put last is `known`, and is not read.
        """
        records = {str(name): ControlRecord.decode(new) for name, new, _ in changes}
        if known is not None and self._goes_on(known.record, records[known.name]):
            entries: Mapping[str, Entry] = {known.name: known}
        else:
            entries = lock_entries(pipeline.connection, records)
        for name, _, expected in changes:
            if str(name) not in entries or entries[str(name)].control != expected:
                raise OvertakenError
        first = next(iter(records.values()))
        for name in entries.keys() - records.keys():
            old = entries[name].record
            if old is not None and waits(old, first):
                self._replace_record(pipeline, entries[name], old.announced(), careful)
        replaced = [
            self._replace_record(pipeline, entries[name], new, careful)
            for name, new in records.items()
        ]
        olds = {name: entries[name].record for name in records}
        if any(new.ready and (old := olds[name]) and old.ready for name, new in records.items()):
            self._database.check_deferred(pipeline)
        return replaced

    def _goes_on(self, old: ControlRecord | None, new: ControlRecord) -> bool:
        """Whether the catalog need not be searched for batches that wait.

        It must be at the first begin of this process, and at a begin after an attempt that was
        given up or never announced.
        """
        if old is None or old.token == new.token:
            return old is not None
        return self._has_begun and old.committed >= old.token.txid

    def _replace_record(
        self, pipeline: Pipeline, entry: Entry, new: ControlRecord, careful: bool
    ) -> Entry:
        """Replace a record, and do what its transition means; return the new entry."""
        old = entry.record
        begins = old is None or old.token != new.token
        readies = not begins and new.ready and old is not None and not old.ready
        replaced = entry._replace(control=new.encode(), whole=False)
        if begins:
            replaced = replaced._replace(kept=self._encoded_target, parts=None)
        elif readies:
            parts = self._counts[1] if self._counts[0] == new.token else {}
            encoded = orjson.dumps({str(part): rows for part, rows in parts.items()}).decode()
            own = self._kept is not None and self._kept[0] == new.token
            replaced = replaced._replace(parts=encoded, whole=own and len(parts) == 1)
        replace_entry(pipeline, entry, replaced)
        if old is not None and waits(replace(old, log_id=new.log_id), new):
            self._merge(pipeline, entry, old.token, careful)
        if begins:
            self._has_begun = not new.is_unused
            kept = Target.decode(entry.kept)
            is_same = kept.staging == self._target.staging
            if not is_same or old is None or old.committed < old.token.txid:
                # Rows of attempts that were given up; else the merge has emptied the table.
                staging = staging_table(self._target, (PART, *self._target.staged))
                self._database.empty(pipeline, staging)
            self._outdated = None if is_same else kept
        elif readies:
            self._load(pipeline, Target.decode(entry.kept), new.token, careful)
            self._incarnation = self._database.incarnation(pipeline.connection)
        return replaced

    def _merge(self, pipeline: Pipeline, entry: Entry, token: Token, careful: bool) -> None:
        parts = entry.counted
        if not parts:
            return
        target = Target.decode(entry.kept)
        staging = staging_table(target, (PART, *target.staged))
        if not entry.whole:
            check_whole(pipeline.connection, self._database, staging, parts)
        refusals = Refusals(pipeline, self._database, target, token)
        if careful:
            refusals.merge(users_table(target), staging, parts)
        else:
            merge_of(self._database, entry.kept).run(pipeline, {"parts": list(parts)})
        if target.dead_letters:
            refusals.put_aside(staging, parts, entry.name)
        self._database.empty(pipeline, staging)

    def _drop(self, outdated: Target) -> None:
        """Drop a staging table that the catalog has ceased to name: its rows count no more, and
        tasks that still write into it are overtaken.

        The begin is committed by now, so a table that others lock is only a warning.
        """
        table = staging_table(outdated, (PART,))
        try:
            with self._database.transaction() as connection:
                table.drop(connection, checkfirst=True)
        except (StateError, StateUnavailableError) as error:
            _logger.warning("the table %s is not needed any more, drop it: %s", table, error)

    def _check(self) -> None:
        """Make what is missing, once; look whether the table takes the rows."""
        if self._target.staging:
            return
        self._make(catalog())
        if self._target.dead_letters:
            self._make(bad_rows(self._target.schema))
        with self._database.transaction() as connection:
            entry = entry_of(connection, self.prefix)
            begun = entry is not None and (record := entry.record) and not record.is_unused
            made = checked_staging(
                connection,
                self._database,
                self._target,
                self._types,
                self.prefix,
                begun=bool(begun),
            )
            target = replace(self._target, staging=made.name)
            if entry is None:
                row = {"name": self.prefix, "kept": target.encode()}
                connection.execute(catalog().insert().values(row))
        self._target, self._encoded_target = target, target.encode()

    def _make(self, table: Table) -> None:
        """Make a table of all states where it is absent; another driver may make it meanwhile."""
        try:
            with self._database.transaction() as connection:
                table.create(connection, checkfirst=True)
        except Exception:
            with self._database.transaction() as connection:
                if not alchemy().inspect(connection).has_table(table.name, table.schema):
                    raise


def _undo(held: ExitStack) -> None:
    """Close a transaction without a commit, though its connection may be gone."""
    with suppress(_Undone, StateUnavailableError), held:
        raise _Undone


class _Undone(Exception):
    """Ends a transaction that is given up."""
