"""The tests that every database of rows has to pass."""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Barrier, Thread
from typing import Any, ClassVar
from uuid import uuid4

from trident.backends.rows import (
    DuplicateKeyError,
    RefusedRowError,
    Rows,
    RowsDatabase,
    RowsState,
)
from trident.backends.rows.catalog import bad_rows, catalog
from trident.backends.rows.database import alchemy
from trident.backends.rows.target import Target
from trident.states.control import ControlRecord, Prepared, announce_all, prepare_all
from trident.states.errors import StaleBatchError
from trident.states.values import Token

Row = tuple[Any, ...]
FIELDS = {"id": "long", "n": "long", "what": "string"}
_MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789012)
_VALUES: dict[str, Any] = {
    "long": -(2**63),
    "int": 2**31 - 1,
    "double": 0.1,
    "decimal(9,2)": Decimal("1234567.89"),
    "boolean": True,
    "binary": b"\0\xff",
    "date": date(1969, 12, 31),
    "timestamp": _MOMENT.replace(tzinfo=UTC),
    "timestamp_ntz": _MOMENT,
    "string": "\\N\t\n' \N{SNOWMAN}\N{PILE OF POO}",
}


class Writer:
    """Writes batches to one table, step by step, as a driver and its tasks do."""

    def __init__(self, rows: Rows, fields: dict[str, str], log_id: str) -> None:
        self.fields = fields
        self.rows = rows.of(fields)
        self.log_id = log_id
        self.driver = self.task()

    def task(self) -> RowsState:
        """A state of the table as another process has it."""
        return pickle.loads(pickle.dumps(self.rows)).makeState()  # type: ignore[no-any-return]

    def begun(self, txid: int, attempt: int = 0) -> ControlRecord:
        """Begin an attempt; the batches before it are committed."""
        record = ControlRecord(self.log_id, Token(txid, attempt), txid - 1)
        self.driver.control.begin(record)
        return record

    def stage(self, state: RowsState, record: ControlRecord, *rows: Row) -> None:
        """Write the rows of a task, or the driver's, which follow with its record."""
        import pyarrow as pa

        columns = list(zip(*rows, strict=True))
        kinds = [_arrow(kind) for kind in self.fields.values()]
        arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
        state.beginCommit(record)
        state.append(pa.RecordBatch.from_arrays(arrays, list(self.fields)))
        state.commit(record)
        if state is not self.driver:
            state.stage(record)

    def ready(self, txid: int, *rows: Row) -> ControlRecord:
        """Do all of a batch that comes before its merge."""
        record = self.begun(txid)
        self.stage(self.driver, record, *rows)
        return self.driver.control.ready(record)

    def write(self, txid: int, *rows: Row) -> None:
        """Write a batch."""
        ready = self.ready(txid, *rows)
        [merged] = prepare_all([self.driver.control], ready)
        merged.announce()


class RowsDatabaseConformance(ABC):
    """Subclass it in a test module, say how your database is reached, and run pytest.

    Each test makes tables of its own, whose names begin with ``conformance``.

    Attributes
    ----------
    types : sequence of str
        The types of fields whose values come back from a table as they were.

    Notes
    -----
    ``make_database()`` returns the database.

    Examples
    --------
    >>> from trident.backends.rows.sqlite import SQLite
    >>> class TestSQLite(RowsDatabaseConformance):
    ...     def make_database(self):
    ...         return SQLite("conformance.db")
    """

    types: ClassVar[Sequence[str]] = tuple(_VALUES)

    @abstractmethod
    def make_database(self) -> RowsDatabase:
        """Return the database, in which tables may be made."""

    def writer(self, key: str | None = "id", **options: Any) -> Writer:
        """Return what writes to a table of its own."""
        fields = options.pop("fields", FIELDS)
        table = options.pop("table", None) or f"conformance_{uuid4().hex[:12]}"
        rows = Rows(self.make_database(), table, key, **options)
        return Writer(rows, fields, uuid4().hex)

    def found(self, writer: Writer) -> list[Row]:
        """Return the rows of the table, in order, as another session sees them."""
        sql, target = alchemy(), writer.rows.target
        with self.make_database().engine.connect() as connection:
            table = sql.Table(target.table, sql.MetaData(), autoload_with=connection)
            return sorted(map(tuple, connection.execute(sql.select(table))), key=repr)

    def waiting(self, writer: Writer) -> int:
        """Return how many rows wait in the staging table."""
        sql, states = alchemy(), catalog()
        kept = sql.select(states.c.kept).where(states.c.name == writer.rows.name)
        with self.make_database().engine.connect() as connection:
            staging = Target.decode(connection.execute(kept).scalar_one()).staging
            rows = sql.select(sql.func.count()).select_from(sql.table(staging))
            return int(connection.execute(rows).scalar_one())

    def test_it_pickles_and_is_equal_to_its_copy(self) -> None:
        database = self.make_database()
        copy = pickle.loads(pickle.dumps(database))
        assert (copy, hash(copy)) == (database, hash(database)), (
            "a database is a frozen dataclass of what it takes to connect: copies are equal"
        )

    def test_it_is_the_same_server_until_that_restarts(self) -> None:
        database = self.make_database()
        told = []
        for _ in range(2):
            with database.transaction() as connection:
                told.append(database.incarnation(connection))
        assert told[0] == told[1], "incarnation() changes only where a server is started anew"

    def test_a_transaction_that_fails_leaves_nothing(self) -> None:
        writer, sql = self.writer(), alchemy()
        writer.write(1, (1, 1, "a"))
        table = sql.table(writer.rows.target.table, *map(sql.column, FIELDS))

        def delete_and_fail() -> None:
            with self.make_database().transaction() as connection:
                connection.execute(table.delete())
                raise RuntimeError

        with _raised(RuntimeError):
            delete_and_fail()
        assert self.found(writer) == [(1, 1, "a")], (
            "connect() returns a connection; beginning, or its driver, begins transactions"
        )

    def test_values_of_each_type_come_back(self) -> None:
        fields = {f"f{at}": kind for at, kind in enumerate(self.types)}
        writer = self.writer(None, fields=fields)
        writer.write(1, tuple(map(_VALUES.get, self.types)), (None,) * len(self.types))
        whole, empty = sorted(self.found(writer), key=lambda row: row[0] is None)
        told = dict(zip(self.types, whole, strict=True))
        if "double" in told:  # some drivers return a decimal
            told["double"] = float(told["double"])
        if "timestamp" in told and told["timestamp"].tzinfo is None:
            told["timestamp"] = told["timestamp"].replace(tzinfo=UTC)
        wrong = [kind for kind in self.types if told[kind] != _VALUES[kind]]
        assert not wrong, f"of these types values came back as others: {wrong}"
        assert {*empty} == {None}, "null stays null"

    def test_an_upsert_replaces_the_row_of_its_key(self) -> None:
        writer = self.writer()
        writer.write(1, (1, 1, "a"), (2, 2, "b"), (3, 3, "c"))
        writer.write(2, (2, 20, None), (4, 4, "d"))
        assert self.found(writer) == [(1, 1, "a"), (2, 20, None), (3, 3, "c"), (4, 4, "d")]

    def test_an_upsert_of_keys_alone_changes_nothing(self) -> None:
        writer = self.writer(fields={"id": "long"})
        writer.write(1, (1,), (2,))
        writer.write(2, (2,), (3,))
        assert self.found(writer) == [(1,), (2,), (3,)], "changed={} inserts what is not there"

    def test_numbers_are_added_and_null_is_nothing(self) -> None:
        writer = self.writer(mode="add", fields={"id": "long", "n": "long"})
        writer.write(1, (1, 1), (1, 2), (2, None))
        writer.write(2, (1, 10), (2, 5), (3, None))
        assert self.found(writer) == [(1, 13), (2, 5), (3, None)], (
            "upsert() sets what the functions of changed= return for the column as it is there"
        )

    def test_decimals_are_added_exactly(self) -> None:
        if "decimal(9,2)" not in self.types or not self.make_database().adds_decimals:
            return
        writer = self.writer(mode="add", fields={"id": "long", "n": "decimal(18,2)"})
        writer.write(1, (1, Decimal("9007199254740993.01")), (1, Decimal("0.01")))
        writer.write(2, (1, Decimal("0.01")))
        assert self.found(writer) == [(1, Decimal("9007199254740993.03"))], (
            "a database that adds decimals as doubles has adds_decimals = False"
        )

    def test_rows_are_appended(self) -> None:
        writer = self.writer(None)
        writer.write(1, (1, 1, "a"), (1, 1, "a"))
        assert self.found(writer) == [(1, 1, "a")] * 2

    def test_the_last_row_of_a_key_counts_and_rows_are_deleted(self) -> None:
        fields = {**FIELDS, "at": "long", "gone": "boolean"}
        writer = self.writer(
            order_by="at", delete_where="gone", columns={"at": None}, fields=fields
        )
        writer.write(1, (1, 1, "old", 1, False), (2, 2, "b", 1, False), (1, 3, "new", 2, False))
        assert self.found(writer) == [(1, 3, "new"), (2, 2, "b")]
        writer.write(2, (2, None, None, 2, True), (2, 9, "older", 1, False))
        assert self.found(writer) == [(1, 3, "new")]

    def test_two_rows_of_a_key_are_an_error(self) -> None:
        writer = self.writer()
        ready = writer.ready(1, (1, 1, "a"), (1, 2, "b"))
        with _raised(DuplicateKeyError):
            prepare_all([writer.driver.control], ready)

    def test_a_refused_row_is_named(self) -> None:
        writer = self.writer()
        record = writer.begun(1)
        with _raised(RefusedRowError) as refused:
            writer.stage(writer.task(), record, (1, 1, "a"), (None, 2, "b"), (3, 3, "c"))
        assert refused[0].row == "id=None, n=2, what='b'", (
            "explain() returns a RefusedRowError for what is wrong with a row, and load() leaves "
            "a transaction that can go back to a savepoint"
        )

    def test_a_refused_row_is_put_aside(self) -> None:
        writer = self.writer(on_bad_row="dead-letter")
        writer.write(1, (1, 1, "a"), (2, 2, "b"))
        name = writer.rows.target.table
        with self.make_database().transaction() as connection:
            connection.exec_driver_sql(f"CREATE UNIQUE INDEX {name}_n ON {name} (n)")
        writer.write(2, (3, 3, "c"), (4, 1, "taken"), (5, 5, "e"))
        assert [row[0] for row in self.found(writer)] == [1, 2, 3, 5]
        sql, table = alchemy(), bad_rows(None)
        with self.make_database().transaction() as connection:
            asked = sql.select(table.c.txid, table.c.row_json).where(table.c.state == name)
            told = list(map(tuple, connection.execute(asked)))
        assert told == [(2, '{"id": 4, "n": 1, "what": "taken"}')]

    def test_nothing_is_visible_before_the_last_step(self) -> None:
        writer = self.writer(None)
        writer.write(1, (1, 1, "a"))
        ready = writer.ready(2, (2, 2, "b"))
        assert self.found(writer) == [(1, 1, "a")], "rows wait in the staging table"
        self._held(writer, ready).drop()
        assert self.found(writer) == [(1, 1, "a")], "a merge that is given up leaves nothing"
        self._held(writer, ready).announce()
        assert self.found(writer) == [(1, 1, "a"), (2, 2, "b")]

    def test_a_merge_that_was_lost_is_made_by_the_next_driver_and_once(self) -> None:
        writer = self.writer(None)
        ready = writer.ready(1, (1, 1, "a"))
        self._held(writer, ready).drop()  # as the server does where the driver has died
        for _ in range(2):
            announce_all([writer.task().control], ready)
        assert self.found(writer) == [(1, 1, "a")]

    def test_of_drivers_that_merge_at_once_one_does(self) -> None:
        writer = self.writer(None)
        ready = writer.ready(1, (1, 1, "a"), (2, 2, "b"))
        gate, failed = Barrier(3), []

        def announce() -> None:
            control = writer.task().control
            gate.wait()
            try:
                control.announce(ready)
            except Exception as error:
                failed.append(error)

        threads = [Thread(target=announce) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed, f"the record's row is locked, and others wait for it: {failed}"
        assert self.found(writer) == [(1, 1, "a"), (2, 2, "b")], (
            "rows were merged twice: SELECT … FOR UPDATE, or beginning, has to lock the record"
        )

    def test_a_task_that_was_overtaken_writes_nothing(self) -> None:
        writer = self.writer(None)
        old, late = writer.begun(1), writer.task()
        record = writer.begun(1, attempt=1)
        with _raised(StaleBatchError):
            writer.stage(late, old, (1, 1, "late"))
        writer.stage(writer.driver, record, (2, 2, "b"))
        self._held(writer, writer.driver.control.ready(record)).announce()
        assert self.found(writer) == [(2, 2, "b")]

    def test_of_a_task_that_ran_twice_the_rows_count_once(self) -> None:
        writer = self.writer(None)
        record, lost, taken = writer.begun(1), writer.task(), writer.task()
        for task in (lost, taken):
            writer.stage(task, record, (1, 1, "a"))
        writer.driver.take(record.token, taken.receipt)
        self._held(writer, writer.driver.control.ready(record)).announce()
        assert self.found(writer) == [(1, 1, "a")]
        assert self.waiting(writer) == 0, "empty() deletes the rows of all tasks"

    def test_tables_of_a_batch_change_together_or_not_at_all(self) -> None:
        one, other = self.writer(), self.writer()
        other.log_id = one.log_id
        controls = [one.driver.control, other.driver.control]
        one.ready(1, (1, 1, "a"))
        ready = other.ready(1, (1, 1, "a"))
        [merged] = prepare_all(controls, ready)
        assert self.found(one) == self.found(other) == []
        merged.announce()
        assert self.found(one) == self.found(other) == [(1, 1, "a")]
        one.ready(2, (2, 2, "b"))
        ready = other.ready(2, (2, 2, "b"), (2, 3, "c"))
        with _raised(DuplicateKeyError):
            prepare_all(controls, ready)
        assert self.found(one) == self.found(other) == [(1, 1, "a")]

    def _held(self, writer: Writer, ready: ControlRecord) -> Prepared:
        [held] = prepare_all([writer.driver.control], ready)
        return held


@contextmanager
def _raised(kind: type[Exception]) -> Iterator[list[Any]]:
    """Fail where no error of this kind is raised; hold the one that is."""
    caught: list[Any] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"a {kind.__name__} has to be raised"


def _arrow(kind: str) -> Any:
    import pyarrow as pa

    kinds = {
        "long": pa.int64(),
        "int": pa.int32(),
        "double": pa.float64(),
        "decimal(9,2)": pa.decimal128(9, 2),
        "decimal(18,2)": pa.decimal128(18, 2),
        "boolean": pa.bool_(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "string": pa.string(),
    }
    return kinds[kind]
