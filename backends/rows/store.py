"""Where rows are kept: the control record, the rows that wait, and the user's table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import orjson

from trident.backends.rows.bad_rows import Refusals, sources
from trident.backends.rows.catalog import bad_rows, catalog, reflected
from trident.backends.rows.columns import Types, checked_staging
from trident.backends.rows.database import RowsDatabase, alchemy, explained
from trident.backends.rows.entries import (
    Entry,
    OvertakenError,
    change,
    entry_of,
    locked,
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
        self._written: tuple[Token, Mapping[int, int]] = Token(0, 0), {}
        self._kept: tuple[Token, pa.Table] | None = None
        self._left: Entry | None = None
        """What this process has put last, if nothing has gone wrong since."""
        self._asked: str | None = None
        self._how = ""
        """The target, as the catalog keeps it."""
        self._has_begun = False

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
        with self._begun(record) as (pipeline, target):
            self._load(pipeline, target, record.token, careful)

    @contextmanager
    def _begun(self, record: ControlRecord) -> Iterator[tuple[Pipeline, Target]]:
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

        own = self._target
        rows = rows.add_column(0, PART, pa.repeat(pa.scalar(part, pa.int64()), rows.num_rows))
        if self._database.numbered or own.dead_letters:
            rows = rows.add_column(1, NUMBER, pa.array(range(rows.num_rows), pa.int64()))
        if rest.num_columns:
            rows = rows.append_column(SOURCE, sources(rest))
        self._kept = token, rows
        self.written(token, {part: rows.num_rows})

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

    def written(self, token: Token, parts: Mapping[int, int]) -> None:
        """Note which tasks have written how many rows of an attempt: these count, no others."""
        known = self._written[1] if self._written[0] == token else {}
        self._written = token, {**known, **parts}

    def getControl(self) -> bytes | None:
        self._check()
        with self._database.transaction() as connection:
            found = entry_of(connection, self.prefix)
            return None if found is None else found.control

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
            held = self._held(changes)
        except CorruptStateError as lost:  # of a batch that is not committed yet
            raise StateUnavailableError(lost.what, lost.found, "The batch is retried.") from None
        return None if held is None else (partial(self._finish, *held), partial(_undo, held[0]))

    def _put(self, changes: Sequence[Change]) -> bool:
        held = self._held(changes)
        if held is not None:
            self._finish(*held)
            self._kept = None
        return held is not None

    def _finish(self, transaction: ExitStack, left: Sequence[Entry]) -> None:
        transaction.close()
        self._left = left[0] if len(left) == 1 else None

    def _held(self, changes: Sequence[Change]) -> tuple[ExitStack, Sequence[Entry]] | None:
        """Replace records in a transaction that is left open, and committed when it is closed.

        None where one is not as expected. Where the table refuses a row it is done anew, with a
        look at each row that is at fault.
        """
        self._check()
        left, self._left = self._left, None
        self._asked = None
        known = left if left and [change[2] for change in changes] == [left.control] else None
        try:
            return self._tried(changes, known, careful=False)
        except RefusedRowError:
            return self._tried(changes, known, careful=True)

    def _tried(
        self, changes: Sequence[Change], known: Entry | None, *, careful: bool
    ) -> tuple[ExitStack, Sequence[Entry]] | None:
        with suppress(OvertakenError), ExitStack() as transaction:
            pipeline = transaction.enter_context(self._database.pipeline())
            left = self._replaced(pipeline, changes, known, careful)
            pipeline.send()
            return transaction.pop_all(), left
        return None

    def incarnation(self) -> str:
        # What was asked in the transaction that made an attempt ready is of the server that has it.
        asked, self._asked = self._asked, None
        if asked is not None:
            return asked
        with explained(self._database), self._database.engine.connect() as connection:
            return self._database.incarnation(connection)

    def multiGet(self, keys: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where}: rows are read with SQL, not by key")

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where}: rows are written by partitionPersist(Rows(…))")

    def _replaced(
        self, pipeline: Pipeline, changes: Sequence[Change], known: Entry | None, careful: bool
    ) -> Sequence[Entry]:
        """Replace records, in the order given; raise OvertakenError where one is not as expected.

        What is `known` of a single one, as this process has left it, needn't be read.
        """
        told = {str(name): ControlRecord.decode(new) for name, new, _ in changes}
        if known is not None and self._goes_on(known.record, told[known.name]):
            found: Mapping[str, Entry] = {known.name: known}
        else:
            found = locked(pipeline.connection, told)
        for name, _, expected in changes:
            if str(name) not in found or found[str(name)].control != expected:
                raise OvertakenError
        for name in found.keys() - told.keys():
            old = found[name].record
            if old is not None and waits(old, told[str(changes[0][0])]):
                self._become(pipeline, found[name], old.announced(), careful)
        left = [self._become(pipeline, found[name], new, careful) for name, new in told.items()]
        olds = {name: found[name].record for name in told}
        if any(new.ready and (old := olds[name]) and old.ready for name, new in told.items()):
            self._database.check_deferred(pipeline)
        return left

    def _goes_on(self, old: ControlRecord | None, new: ControlRecord) -> bool:
        """Whether the catalog need not be searched for batches that wait.

        It must be at the first begin of this process, and at a begin after an attempt that was
        given up or never announced.
        """
        if old is None or old.token == new.token:
            return old is not None
        return self._has_begun and old.committed >= old.token.txid

    def _become(self, pipeline: Pipeline, found: Entry, new: ControlRecord, careful: bool) -> Entry:
        """Change a record, and do what that means; return the entry as it is then."""
        old, written = found.record, self._written
        begins = old is None or old.token != new.token
        readies = not begins and new.ready and old is not None and not old.ready
        left = found._replace(control=new.encode(), whole=False)
        if begins:
            left = left._replace(kept=self._how, parts=None)
        elif readies:
            parts = written[1] if written[0] == new.token else {}
            counted = orjson.dumps({str(part): rows for part, rows in parts.items()}).decode()
            own = self._kept is not None and self._kept[0] == new.token
            left = left._replace(parts=counted, whole=own and len(parts) == 1)
        change(pipeline, found, left)
        if old is not None and waits(replace(old, log_id=new.log_id), new):
            self._merge(pipeline, found, old.token, careful)
        if begins:  # nothing that was left there counts
            self._has_begun = not new.is_unused
            kept = Target.decode(found.kept)
            unfinished = old is None or old.committed < old.token.txid  # else the merge emptied it
            for target in {kept.staging: kept, self._target.staging: self._target}.values():
                if target.staging and (unfinished or kept.staging != self._target.staging):
                    self._database.empty(pipeline, staging_table(target, (PART, *target.staged)))
        elif readies:
            self._load(pipeline, Target.decode(found.kept), new.token, careful)
            self._asked = self._database.incarnation(pipeline.connection)
        return left

    def _merge(self, pipeline: Pipeline, found: Entry, token: Token, careful: bool) -> None:
        parts = found.counted
        if not parts:
            return
        target = Target.decode(found.kept)
        staging = staging_table(target, (PART, *target.staged))
        if not found.whole:
            check_whole(pipeline.connection, self._database, staging, parts)
        refusals = Refusals(pipeline, self._database, target, token)
        if careful:
            refusals.merge(users_table(target), staging, parts)
        else:
            merge_of(self._database, found.kept).run(pipeline, {"parts": list(parts)})
        if target.dead_letters:
            refusals.put_aside(staging, parts, found.name)
        self._database.empty(pipeline, staging)

    def _check(self) -> None:
        """Make what is missing, once; look whether the table takes the rows."""
        if self._target.staging:
            return
        self._make(catalog())
        if self._target.dead_letters:
            self._make(bad_rows(self._target.schema))
        with self._database.transaction() as connection:
            found = entry_of(connection, self.prefix)
            begun = found is not None and (record := found.record) and not record.is_unused
            made = checked_staging(
                connection,
                self._database,
                self._target,
                self._types,
                self.prefix,
                begun=bool(begun),
            )
            target = replace(self._target, staging=made.name)
            if found is None:
                row = {"name": self.prefix, "kept": target.encode()}
                connection.execute(catalog().insert().values(row))
        self._target, self._how = target, target.encode()

    def _make(self, table: Table) -> None:
        """Make a table of all states where it is absent; another driver may just do so."""
        for again in (True, False):
            try:
                with self._database.transaction() as connection:
                    table.create(connection, checkfirst=True)
                return
            except Exception:
                if not again:
                    raise


def _undo(held: ExitStack) -> None:
    """Close a transaction without a commit, though its connection may be gone."""
    with suppress(_Undone, StateUnavailableError), held:
        raise _Undone


class _Undone(Exception):
    """Ends a transaction that is given up."""
