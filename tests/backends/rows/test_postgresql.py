"""What only PostgreSQL does with rows: COPY, MERGE, and what a table of its users has beside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import psycopg
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.rows.test_rows import write
from trident import FixedBatchSpout, Rows, TridentTopology
from trident.backends.rows import RefusedRowError, TableMismatchError
from trident.backends.rows.catalog import catalog
from trident.backends.rows.conformance import Writer
from trident.backends.rows.copying import copy
from trident.backends.rows.urls import database_from_url
from trident.states.errors import StateError, StateUnavailableError
from trident.testing.servers.promised import Served

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.text(
    "\\\"',{}\n\r\t.Nn "
)
MOMENT = st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31, 23, 59, 59))
COLUMNS: dict[str, tuple[str, pa.DataType, st.SearchStrategy[Any]]] = {
    "text": ("text", pa.string(), TEXT),
    "words": ("varchar(9)", pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["", "a b"])),
    "long": ("bigint", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int": ("integer", pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "double": ("double precision", pa.float64(), st.floats()),
    "float": ("real", pa.float32(), st.floats(width=32)),
    "decimal": (
        "numeric(38, 10)",
        pa.decimal128(38, 10),
        st.decimals(Decimal(-(10**27)), Decimal(10**27), places=10),
    ),
    "boolean": ("boolean", pa.bool_(), st.booleans()),
    "binary": ("bytea", pa.binary(), st.binary()),
    "date": ("date", pa.date32(), st.dates()),
    "time": ("time", pa.time64("us"), st.times()),
    "at": ("timestamptz", pa.timestamp("us", "UTC"), MOMENT.map(lambda at: at.replace(tzinfo=UTC))),
    "zoned": (
        "timestamptz",
        pa.timestamp("us", "Asia/Tokyo"),
        st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    ),
    "local": ("timestamp", pa.timestamp("us"), MOMENT),
    "json": ("jsonb", pa.string(), st.just('{"a": "\\u00e9\\n", "b": [null, 1e3]}')),
    "uuid": ("uuid", pa.string(), st.uuids().map(str)),
    "texts": ("text[]", pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    "longs": ("bigint[]", pa.large_list(pa.int64()), st.lists(st.none() | st.integers(0, 9))),
    "blobs": ("bytea[]", pa.list_(pa.binary()), st.lists(st.binary(max_size=3), max_size=2)),
    "moments": ("timestamp[]", pa.list_(pa.timestamp("us")), st.lists(MOMENT, max_size=2)),
    "square": (
        "boolean[]",
        pa.list_(pa.list_(pa.bool_())),
        st.lists(st.tuples(st.booleans(), st.booleans()).map(list), max_size=2),
    ),
}
ROWS = st.lists(st.tuples(*[st.none() | values for _, _, values in COLUMNS.values()]), max_size=4)


@pytest.fixture(scope="module")
def connection(postgres_server: Served) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _, _) in COLUMNS.items())
        connection.execute("SET timezone = 'Asia/Tokyo'")
        connection.execute(f'CREATE TEMPORARY TABLE "all" ({columns})')
        yield connection


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_whatever_a_column_holds_is_copied(
    connection: psycopg.Connection[Any], rows: list[tuple[Any, ...]]
) -> None:
    names = [*COLUMNS]
    kinds = [kind for _, kind, _ in COLUMNS.values()]
    columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(kinds)]
    copy(connection, '"all"', pa.table(columns, names=names))
    shown = '", "'.join(names).replace('"json"', '"json"::text').replace('"uuid"', '"uuid"::text')
    found = connection.execute(f'DELETE FROM "all" RETURNING "{shown}"', binary=True).fetchall()
    assert list(map(_comparable, found)) == list(map(_comparable, rows))


def _comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row in which NaN is equal to itself, and 0.0 not to -0.0; of JSON whether it is there."""
    told = {**dict(zip(COLUMNS, row, strict=True)), "json": row[[*COLUMNS].index("json")] is None}
    return tuple(repr(value) if isinstance(value, float) else value for value in told.values())


def test_a_user_without_the_rights_is_told_which_to_have(postgres_server: Served) -> None:
    user, shop = f"u{uuid4().hex[:8]}", f"s{uuid4().hex[:8]}"
    host = postgres_server.url.partition("@")[2]
    topology = TridentTopology()
    rows = Rows(f"postgresql://{user}@{host}", (shop, "orders"), "id")
    topology.newStream("rows", FixedBatchSpout("id long", 1, [1])).partitionPersist(rows)
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        server.execute(f"CREATE ROLE {user} LOGIN; CREATE SCHEMA {shop}")
        try:
            with pytest.raises(StateUnavailableError, match="USAGE and CREATE on its schema"):
                topology.start()
            server.execute(f"ALTER ROLE {user} SET search_path = {shop}, public")
            server.execute(f"GRANT USAGE ON SCHEMA {shop} TO {user}")
            told = list(map(str, rows.database.examine()))
            assert any(f"GRANT CREATE ON SCHEMA {shop} TO {user}" in each for each in told), told
        finally:
            server.execute(f"DROP SCHEMA {shop}; DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.fixture
def sql(postgres_server: Served) -> Iterator[psycopg.Connection[Any]]:
    """A user, whose tables are in a schema of the test's own."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute('DROP SCHEMA IF EXISTS "Der Laden %" CASCADE')
        connection.execute('CREATE SCHEMA "Der Laden %"')
        connection.execute('SET search_path = "Der Laden %"')
        yield connection


def test_all_that_the_users_table_has_beside_goes_on_working(
    postgres_server: Served, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("CREATE TYPE mood AS ENUM ('well', 'so-so')")
    sql.execute("CREATE TABLE customers (id integer PRIMARY KEY)")
    sql.execute("INSERT INTO customers VALUES (7)")
    sql.execute(
        """
        CREATE TABLE "Bestellungen ""é%" (
            number serial, always integer GENERATED ALWAYS AS IDENTITY, "Key" varchar(9),
            customer integer REFERENCES customers, "n'" numeric(9, 2),
            twice numeric GENERATED ALWAYS AS ("n'" * 2) STORED, made date DEFAULT '2026-01-02',
            mood mood, tags jsonb, UNIQUE ("Key", customer)
        )"""
    )
    sql.execute('CREATE UNIQUE INDEX ON "Bestellungen ""é%" (lower("Key"))')
    sql.execute("CREATE TABLE seen (what text)")
    sql.execute(
        """
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO "Der Laden %".seen VALUES (TG_OP || ' ' || NEW."Key"); RETURN NEW;
        END $$"""
    )
    sql.execute(
        'CREATE TRIGGER note AFTER INSERT OR UPDATE ON "Bestellungen ""é%" '
        "FOR EACH ROW EXECUTE FUNCTION note()"
    )
    place, key = ("Der Laden %", 'Bestellungen "é%'), ("Key", "customer")
    columns = {"key": "Key", "n": "n'"}
    rows = Rows(postgres_server.url, place, key, columns=columns)
    fields = "key string, customer int, n decimal(9,2), mood string, tags string"
    first = [("A", 7, Decimal("1.50"), "well", "[1]"), ("B", 7, None, None, None)]
    write(rows, fields, *first, ("B", 7, Decimal("2.00"), "so-so", None), batch=2)
    found = sql.execute('SELECT * FROM "Bestellungen ""é%" ORDER BY 1').fetchall()
    day = date(2026, 1, 2)
    assert found == [
        (1, 1, "A", 7, Decimal("1.50"), Decimal("3.00"), day, "well", [1]),
        (2, 2, "B", 7, Decimal("2.00"), Decimal("4.00"), day, "so-so", None),
    ]
    assert sql.execute("SELECT what FROM seen").fetchall() == [
        ("INSERT A",),
        ("INSERT B",),
        ("UPDATE B",),
    ]
    for n, (refused, customer, mood, why) in enumerate(
        [
            ("a", 7, "well", "lower"),
            ("C", 8, "well", "foreign key"),
            ("D", 7, "bad", "mood"),
            ("\0", 7, "well", "0x00"),
        ]
    ):
        rows = Rows(postgres_server.url, place, key, columns=columns, name=f"other{n}")
        with pytest.raises(RefusedRowError, match=why):
            write(rows, fields, (refused, customer, None, mood, None))


def test_a_schema_that_is_absent_is_said(postgres_server: Served) -> None:
    with pytest.raises(StateError, match='"nowhere" does not exist. Create it; or where'):
        write(Rows(postgres_server.url, "nowhere.orders"), "id long", (1,))


def test_a_table_of_other_capitals_is_named_and_none_made(
    postgres_server: Served, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("CREATE TABLE purchases (id bigint)")
    with pytest.raises(TableMismatchError, match="but one called purchases is: capitals count"):
        write(Rows(postgres_server.url, ("Der Laden %", "Purchases")), "id long", (1,))


def test_rows_go_into_the_partitions_of_a_table(
    postgres_server: Served, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(
        "CREATE TABLE days (day date, n integer, PRIMARY KEY (day)) PARTITION BY RANGE (day)"
    )
    for year in (2025, 2026):
        sql.execute(
            f"CREATE TABLE days{year} PARTITION OF days "
            f"FOR VALUES FROM ('{year}-01-01') TO ('{year + 1}-01-01')"
        )
    rows = Rows(postgres_server.url, ("Der Laden %", "days"), "day")
    days = [(date(2025, 5, 5), 1), (date(2026, 5, 5), 1), (date(2026, 5, 5), 2)]
    write(rows, "day date, n int", *days, batch=2)
    assert sql.execute("SELECT * FROM days2026").fetchall() == [(date(2026, 5, 5), 2)]
    assert sql.execute("SELECT n FROM days2025").fetchall() == [(1,)]


def test_a_moment_for_a_column_without_zone_is_told_to_be_cast(postgres_server: Served) -> None:
    table = f"t{uuid4().hex[:8]}"
    topology = TridentTopology()
    spout = FixedBatchSpout("at timestamp", 1, [datetime(2026, 1, 1, tzinfo=UTC)])
    topology.newStream("rows", spout).partitionPersist(Rows(postgres_server.url, table))
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        server.execute(f"CREATE TABLE {table} (at timestamp)")
    with pytest.raises(TableMismatchError, match="without time zone, .* cast it to timestamp_ntz"):
        topology.start()


def test_a_driver_that_starts_while_another_makes_the_tables_takes_these(
    postgres_server: Served,
) -> None:
    name = f"fresh{uuid4().hex[:8]}"
    with psycopg.connect(postgres_server.url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    database = database_from_url(f"{postgres_server.url.rpartition('/')[0]}/{name}")
    engine = database.engine
    state = Rows(database, "t", "id").of({"id": "long"}).makeState()
    found: list[object] = []
    starting = Thread(target=lambda: found.append(state.control.read()))
    with database.transaction() as other:
        catalog().create(other)
        starting.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while starting.is_alive() and not other.exec_driver_sql(waiting).scalar_one():
            pass
    starting.join()
    engine.dispose()
    assert found == [None]


def test_a_key_that_somebody_else_has_just_inserted_is_no_refused_row(
    postgres_server: Served,
) -> None:
    url, table = postgres_server.url, f"t{uuid4().hex[:12]}"
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as watch:
        watch.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, n bigint)")
        other.execute(f"INSERT INTO {table} VALUES (2, 0)")
        rows = Rows(url, table, "id", on_bad_row="dead-letter")
        writing = Thread(target=write, args=(rows, "id long, n long", (1, 1), (2, 1)))
        writing.start()
        while not watch.execute(blocked, (other.info.backend_pid,)).fetchone()[0]:  # type: ignore[index]
            assert writing.is_alive()
        other.commit()
        writing.join()
        found = watch.execute(f"SELECT id, n FROM {table} ORDER BY id").fetchall()
    assert found == [(1, 1), (2, 1)]


def test_the_staging_table_does_not_grow_with_what_was_deleted(
    postgres_server: Served, sql: psycopg.Connection[Any]
) -> None:
    rows = Rows(postgres_server.url, ("Der Laden %", "texts"), "n")
    write(rows, "n int, text string", *[(n, "x" * 1000) for n in range(4000)], batch=500)
    [[size]] = sql.execute(
        "SELECT max(pg_relation_size(oid)) FROM pg_class WHERE relname LIKE 'trident_der_laden%'"
    ).fetchall()
    assert size < 2 * 2**20  # all batches are 4 MB


def test_a_batch_that_the_driver_writes_waits_for_nine_answers(
    postgres_server: Served, tmp_path: Path
) -> None:
    rows = Rows(postgres_server.url, f"t{uuid4().hex[:12]}", "id")
    writer = Writer(rows, {"id": "long", "n": "long"}, uuid4().hex)
    writer.write(1, (1, 1))
    with database_from_url(postgres_server.url).engine.connect() as connection:
        session = connection.connection.driver_connection.pgconn  # the one that is used again
    trace = tmp_path / "trace"
    with trace.open("w") as file:
        session.trace(file.fileno())
        writer.write(2, (1, 2), (2, 2))
        session.untrace()
    sent = trace.read_text()
    assert sent.count("CopyInResponse") == 1
    assert sent.count("ReadyForQuery") == 8


def test_a_connection_that_the_server_has_ended_is_opened_anew(postgres_server: Served) -> None:
    database = database_from_url(postgres_server.url)
    asked = "SELECT pg_backend_pid()"
    with database.transaction() as connection:
        first = connection.exec_driver_sql(asked).scalar_one()
    with psycopg.connect(postgres_server.url) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    with database.transaction() as connection:
        assert connection.exec_driver_sql(asked).scalar_one() != first


def test_a_row_that_a_policy_refuses_is_a_bad_row(
    postgres_server: Served, sql: psycopg.Connection[Any]
) -> None:
    user, host = f"u{uuid4().hex[:8]}", postgres_server.url.partition("@")[2]
    sql.execute("CREATE TABLE small (id bigint PRIMARY KEY)")
    sql.execute("ALTER TABLE small ENABLE ROW LEVEL SECURITY")
    sql.execute("CREATE POLICY small ON small USING (id < 5)")
    sql.execute(
        f'CREATE ROLE {user} LOGIN; ALTER ROLE {user} SET search_path = "Der Laden %";'
        f'GRANT ALL ON SCHEMA "Der Laden %" TO {user}; GRANT ALL ON small TO {user}'
    )
    try:
        rows = Rows(f"postgresql://{user}@{host}", "small", "id")
        with pytest.raises(RefusedRowError, match=r"the row \(id=7\).*row-level security policy"):
            write(rows, "id long", (1,), (7,))
    finally:
        sql.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")


def test_writers_of_one_name_in_two_catalogs_have_two_staging_tables(
    postgres_server: Served, sql: psycopg.Connection[Any]
) -> None:
    users, host = [f"u{uuid4().hex[:8]}" for _ in range(2)], postgres_server.url.partition("@")[2]
    sql.execute("CREATE TABLE shared (id bigint)")
    for user in users:
        sql.execute(f"CREATE ROLE {user} LOGIN; CREATE SCHEMA {user} AUTHORIZATION {user}")
        sql.execute(f"ALTER ROLE {user} SET search_path = {user}")
        sql.execute(f'GRANT ALL ON SCHEMA "Der Laden %" TO {user}; GRANT ALL ON shared TO {user}')
    try:
        for user in users:
            rows = Rows(f"postgresql://{user}@{host}", ("Der Laden %", "shared"))
            write(rows, "id long", (1,))
        staging = sql.execute(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'trident%shared%'"
        )
        assert len(staging.fetchall()) == 2
        assert sql.execute("SELECT * FROM shared").fetchall() == [(1,), (1,)]
    finally:
        for user in users:
            sql.execute(f"DROP OWNED BY {user}; DROP ROLE {user}")
