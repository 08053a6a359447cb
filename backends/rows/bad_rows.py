"""Finds the rows that the table refuses, by halves; names them, or puts them aside."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trident.backends.rows.catalog import bad_rows
from trident.backends.rows.database import RowsDatabase, alchemy, explained
from trident.backends.rows.errors import RefusedRowError, TooManyBadRowsError, shown_row
from trident.backends.rows.merging import check_unique, last_of_keys, make_merge, ranked
from trident.backends.rows.pipeline import Pipeline
from trident.backends.rows.target import BAD, DELETED, NUMBER, ORDER, PART, REASON, SOURCE, Target
from trident.states.printable import one_line, shortened
from trident.states.values import Token

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlalchemy import Connection, Subquery, Table

MOST = 1_000
"""How many rows of a batch may be bad: each of them costs some twenty statements to find."""
_LONGEST_REASON = 2_000
_LONGEST_ROW = 1_000_000
"""Characters of a row as JSON, beyond which each of its values is shortened."""


@dataclass(frozen=True)
class Refusals:
    """Writes the rows of one batch of a state where some of them may be refused."""

    pipeline: Pipeline
    database: RowsDatabase
    target: Target
    token: Token

    @property
    def connection(self) -> Connection:
        """The connection of the open transaction."""
        return self.pipeline.connection

    @property
    def where(self) -> str:
        """The table, as errors name it."""
        return self.target.place_in(self.database)

    # In a task: into the staging table.

    def load(self, staging: Table, rows: pa.Table) -> None:
        """Load the rows of a task; raise for the first refused, or for more than are put aside."""

        def write(first: int, end: int) -> RefusedRowError | None:
            given = rows.slice(first, end - first)
            for name in self.target.key if self.target.dead_letters else ():
                if given.column(name).null_count:
                    return RefusedRowError("", "a row can't be without its key", name)
            return self._try_write(
                lambda: self.database.load(self.connection, staging, given), staging.name
            )

        bad = []
        for number, error in self._find_bad(rows.num_rows, write):
            row = rows.slice(number, 1).to_pylist()[0]
            values = self._fields(row)
            source = row.get(SOURCE)
            if not self.target.dead_letters:
                raise self._name_row(error, values, source)
            bad_row = {PART: row[PART], NUMBER: row[NUMBER], SOURCE: source}
            bad.append({**bad_row, REASON: _reason_text(error), BAD: row_text(values)})
        if bad:
            import pyarrow as pa

            self.database.load(self.connection, staging, pa.Table.from_pylist(bad))

    # On the driver: from the staging table into the user's.

    def merge(self, table: Table, staging: Table, parts: Mapping[int, int]) -> None:
        """Merge the rows that these parts wrote; raises as :meth:`load` and `Merge.run` do."""
        write = self._merge_good_rows if self.target.dead_letters else self._merge_or_raise
        write(table, staging, parts)

    def put_aside(self, staging: Table, parts: Mapping[int, int], state: str) -> None:
        """Write what is bad of these parts into the table of bad rows, in the open transaction."""
        sql, into = alchemy(), bad_rows(self.target.schema)
        what = [staging.c[column] for column in (REASON, BAD, SOURCE)]
        values = sql.literal(state), sql.literal(self.token.txid), *what
        bad = staging.c[PART].in_(parts), staging.c[BAD].is_not(None)
        rows = sql.select(*values, sql.func.current_timestamp()).where(*bad).order_by(PART, NUMBER)
        columns = ["state", "txid", "reason", "row_json", "source", "refused_at"]
        done = self.connection.execute(into.insert().from_select(columns, rows))
        if done.rowcount > MOST:
            reason = self.connection.execute(sql.select(staging.c[REASON]).where(*bad).limit(1))
            raise TooManyBadRowsError(self.where, MOST, str(reason.scalar()))

    def _merge_or_raise(self, table: Table, staging: Table, parts: Mapping[int, int]) -> None:
        rows = good_rows(staging, self.target, parts)
        refused = self._try_write(lambda: self._merge(self.target, table, rows))
        if refused is None:
            return
        if self.target.mode == "upsert" and not self.target.order_by:  # else it is known by now
            check_unique(self.connection, self.database, rows, self.target)
        numbered, pieces = self._number_rows(rows), replace(self.target, order_by=None)
        chosen = alchemy().select(numbered)

        def some(first: int, end: int) -> Any:
            return chosen.where([*numbered.c][-1].between(first, end - 1))

        def write(first: int, end: int) -> RefusedRowError | None:
            piece = some(first, end).subquery()
            return self._try_write(lambda: self._merge(pieces, table, piece))

        for number, error in self._find_bad(sum(parts.values()), write):
            row = self.connection.execute(some(number, number + 1)).one()._asdict()
            raise self._name_row(error, self._fields(row), row[SOURCE])
        raise self._name_row(refused)  # only all of them together

    def _number_rows(self, rows: Subquery) -> Subquery:
        """The rows that count, with their number, from 0, in a last column."""
        sql = alchemy()
        if self.target.order_by:
            rows = last_of_keys(rows, self.target)
        by = [rows.c[name] for name in self.target.key or [PART]]
        number = sql.func.row_number().over(order_by=by) - 1
        return sql.select(rows, number.label(None)).subquery()  # type: ignore[no-any-return]

    def _merge_good_rows(self, table: Table, staging: Table, parts: Mapping[int, int]) -> None:
        """Merge all rows but those that are refused; of a key the last that isn't."""
        rows = good_rows(staging, self.target, parts)
        while self._try_write(lambda: self._merge(self.target, table, rows)) is not None:
            if self.target.mode == "upsert":
                last = last_of_keys(rows, self.target) if self.target.order_by else rows
                check_unique(self.connection, self.database, last, self.target)
            apart = self.connection.begin_nested()
            bad = self._merge_in_pieces(table, staging, parts)
            if not bad:  # together they are refused, and one after the other they are not
                apart.commit()
                return
            apart.rollback()
            for number, error in bad.items():
                self._mark(staging, parts, number, error)

    def _merge_in_pieces(
        self, table: Table, staging: Table, parts: Mapping[int, int]
    ) -> Mapping[int, RefusedRowError]:
        """Merge what isn't refused; return what is, by its number among all rows."""
        sql, pieces = alchemy(), replace(self.target, order_by=None)
        if self.target.order_by:
            rows = ranked(good_rows(staging, self.target, parts), self.target)
            same = [rows.c[name] == staging.c[name] for name in (PART, NUMBER)]
            older = sql.exists(sql.select(sql.literal(1)).where([*rows.c][-1] > 1, *same))
            self.connection.execute(staging.delete().where(older.correlate(staging)))

        def write(first: int, end: int) -> RefusedRowError | None:
            piece = sql.select(staging).where(
                staging.c[BAD].is_(None), _between(staging, parts, first, end)
            )
            return self._try_write(lambda: self._merge(pieces, table, piece.subquery()))

        bad = dict(self._find_bad(sum(parts.values()), write))
        # One that refers to another of the batch may have come before that.
        while again := {number: e for number in bad if (e := write(number, number + 1))}:
            if len(again) == len(bad):
                break
            bad = again
        return again

    def _mark(
        self, staging: Table, parts: Mapping[int, int], number: int, error: RefusedRowError
    ) -> None:
        this = _between(staging, parts, number, number + 1)
        row = self.connection.execute(alchemy().select(staging).where(this)).one()._asdict()
        reason = {REASON: _reason_text(error), BAD: row_text(self._fields(row))}
        self.connection.execute(staging.update().where(this).values(reason))

    def _merge(self, target: Target, table: Table, rows: Subquery) -> None:
        make_merge(self.database, target, table, rows).run(self.pipeline)
        self.database.check_deferred(self.pipeline)
        self.pipeline.send()

    # Both.

    def _find_bad(
        self, count: int, write: Callable[[int, int], RefusedRowError | None]
    ) -> Iterator[tuple[int, RefusedRowError]]:
        """Write rows, from one number to another, by halves; return those refused by themselves."""
        pending, found = [(0, count)], 0
        while pending:
            first, end = pending.pop()
            error = write(first, end) if first < end else None
            if error is not None and end - first > 1:
                middle = (first + end) // 2
                pending += [(middle, end), (first, middle)]
            elif error is not None:
                found += 1
                if found > MOST:
                    raise TooManyBadRowsError(self.where, MOST, _reason_text(error))
                yield first, error

    def _try_write(self, write: Callable[[], None], staging: str = "") -> RefusedRowError | None:
        """Write behind a savepoint; return why it is refused, by the user's table's name."""
        savepoint = self.connection.begin_nested()
        try:
            with explained(self.database):
                write()
        except RefusedRowError as error:  # after others there may be no transaction any more
            reason = error.reason.replace(staging, self.target.name) if staging else error.reason
            reason = one_line(shortened(reason, _LONGEST_REASON))
            refused = replace(error, table=self.where, reason=reason)
            try:
                savepoint.rollback()
            except Exception:  # a trigger may have rolled back the whole transaction
                raise refused from None
            return refused
        savepoint.commit()
        return None

    def _fields(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields of a row of the staging table."""
        target = self.target
        named = {field: row[column] for field, column in target.columns.items()}
        if target.delete_where:
            named[target.delete_where] = row[DELETED]
        if target.order_by and target.ordering == ORDER:
            named[target.order_by] = row[ORDER]
        return named

    def _name_row(
        self,
        error: RefusedRowError,
        row: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> RefusedRowError:
        position = f"batch {self.token.txid}, attempt {self.token.attempt}"
        position += f", {source}" if source else ""
        return replace(error, row=shown_row(row or {}), position=position)


def good_rows(staging: Table, target: Target, parts: Any) -> Subquery:
    """What parts of a batch, by number or parameter, wrote, but for what is put aside by now."""
    rows = alchemy().select(staging).where(staging.c[PART].in_(parts))
    if target.dead_letters:
        rows = rows.where(staging.c[BAD].is_(None))
    return rows.subquery()  # type: ignore[no-any-return]


def sources(rest: pa.Table) -> pa.Array:
    """Return the position of each row in its source, by the fields that are not stored, in ASCII.

    Examples
    --------
    >>> import pyarrow as pa
    >>> sources(pa.table({"topic": ["orders", None], "offset": [17, None]})).to_pylist()
    ['topic=orders, offset=17', '']
    """
    import pyarrow as pa
    from pyarrow import compute

    texts = [""]  # join() leaves out a row whose values are all null
    for name, column in zip(rest.column_names, rest.columns, strict=True):
        try:
            text = column.cast(pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            continue  # a list, a struct, or bytes that are no text
        text = compute.utf8_slice_codeunits(text.combine_chunks(), 0, 200)
        text = compute.replace_substring_regex(text, "[^ -~]", "?")
        texts.append(compute.binary_join_element_wise(name.removeprefix("__trident_"), text, "="))
    if len(texts) == 1:
        return pa.array([""] * rest.num_rows, pa.string())
    joined = compute.binary_join_element_wise(*texts, ", ", null_handling="skip")
    return compute.utf8_slice_codeunits(joined, 2)


def row_text(row: Mapping[str, Any]) -> str:
    r"""A row as JSON, in plain letters, whatever is in it.

    Examples
    --------
    >>> row_text({"what": "caf\u00e9", "data": b"\xff", "price": float("nan"), "n": 1})
    '{"what": "caf\\u00e9", "data": "ff", "price": "nan", "n": 1}'
    """
    plain = {name: _plain(value) for name, value in row.items()}
    text = json.dumps(plain)
    if len(text) > _LONGEST_ROW:
        most = _LONGEST_ROW // (8 * len(plain))
        text = json.dumps({name: shortened(str(value), most) for name, value in plain.items()})
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return value if isinstance(value, str | int | float | None) else str(value)


def _reason_text(error: RefusedRowError) -> str:
    text = f"column {error.column}: {error.reason}" if error.column else error.reason
    return text.encode("ascii", "backslashreplace").decode()


def _between(staging: Table, parts: Mapping[int, int], first: int, end: int) -> Any:
    """The rows from one number to another, counted through all parts."""
    sql, found = alchemy(), []
    for part, count in sorted(parts.items()):
        least, beyond = max(first, 0), min(end, count)
        if least < beyond:
            number = staging.c[NUMBER]
            found.append(sql.and_(staging.c[PART] == part, number >= least, number < beyond))
        first, end = first - count, end - count
    return sql.or_(*found)
