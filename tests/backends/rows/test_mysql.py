"""What MySQL and MariaDB do in their own way, and would do silently."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymysql
import pytest

from tests.backends.rows.databases import Place
from tests.backends.rows.test_rows import write
from tests.servers.certificates import make_certificates
from trident.backends.rows import DuplicateKeyError, RefusedRowError, TableMismatchError
from trident.backends.rows.mysql import MySQL
from trident.backends.rows.urls import database_from_url
from trident.batch.watchpoints import POINTS, watching
from trident.cli.main import main
from trident.states.errors import StateError, StateUnavailableError, StateURLError
from trident.states.values import Token
from trident.testing.servers.mariadb import MariaDBServer
from trident.testing.servers.promised import Served

TEXTS = [
    *("", "NULL", "null", r"\N", "'", '"', "`", "\\", "\\'", "\\\\'", "%s %% %(a)s", "\0", "a\0b"),
    *(
        "\n",
        "\r\n",
        "\t",
        "\x1a",
        "),(1,'x'",
        "-- ",
        "/*",
        "ü",
        "\N{PILE OF POO}",
        " a ",
        "x" * 70_000,
    ),
]


@pytest.fixture
def place(mariadb_server: Served) -> Place:
    return Place.at(mariadb_server.url)


@pytest.fixture
def database(place: Place) -> MySQL:
    found = database_from_url(place.url)
    assert isinstance(found, MySQL)
    return found


def test_any_text_and_bytes_arrive_as_they_are(place: Place) -> None:
    rows = [(number, text, text.encode()) for number, text in enumerate(TEXTS)]
    rows.append((len(rows), None, None))  # type: ignore[arg-type]
    write(place.rows(), "n long, text string, bytes binary", *rows, batch=100)
    assert sorted(place.found()) == rows


def test_any_number_arrives_to_its_last_digit(place: Place) -> None:
    chosen = random.Random(1)
    doubles = [struct.unpack("d", chosen.randbytes(8))[0] for _ in range(300)]
    doubles = [*filter(math.isfinite, doubles), 5e-324, 1.7976931348623157e308, -0.0, 0.1 + 0.2]
    tiny = Decimal("1.23456789012345678901E-9")
    rows = [(number, double, tiny) for number, double in enumerate(doubles)]
    write(place.rows(), "n long, x double, d decimal(38,29)", *rows, batch=500)
    assert sorted(place.found("n, x, d")) == rows


def test_the_first_and_the_last_days_arrive(place: Place) -> None:
    rows = [(day, datetime.combine(day, datetime.max.time())) for day in (date.min, date.max)]
    write(place.rows(), "day date, at timestamp_ntz", *rows)
    assert sorted(place.found()) == rows


@pytest.mark.parametrize(
    ("column", "field", "value", "told"),
    [
        ("x DOUBLE", "x double", math.nan, "column x: MySQL can't hold the number nan"),
        ("x DOUBLE", "x double", -math.inf, "can't hold the number -inf"),
        ("x TINYINT", "x long", 128, "Out of range"),
        ("x INT UNSIGNED", "x long", -1, "Out of range"),
        ("x VARCHAR(3)", "x string", "abcd", "Data too long"),
        ("x VARCHAR(3) CHARACTER SET latin1", "x string", "\N{SNOWMAN}", "Incorrect string"),
        ("x ENUM('a', 'b')", "x string", "c", "truncated"),
        ("x BIGINT NOT NULL", "x long", None, "cannot be null"),
        ("x DECIMAL(3,1)", "x decimal(9,1)", Decimal("100.5"), "Out of range"),
        ("x BIGINT CHECK (x > 5)", "x long", 1, "CONSTRAINT"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_never_made_to(
    place: Place, column: str, field: str, value: object, told: str
) -> None:
    place.execute(f"CREATE TABLE {{table}} (n BIGINT, {column})")
    with pytest.raises(RefusedRowError, match=told):
        write(place.rows(), f"n long, {field}", (1, value))
    assert place.found() == []


def test_a_row_larger_than_the_server_takes_is_said(place: Place) -> None:
    with pytest.raises(RefusedRowError, match="max_allowed_packet"):
        write(place.rows(), "text string", ("x" * 17_000_000,))


def test_rows_too_large_for_one_statement_are_several(place: Place) -> None:
    write(place.rows(), "text string", *[("x" * 3_000_000,)] * 5, batch=5)
    assert place.found("LENGTH(text)") == [(3_000_000,)] * 5


@pytest.mark.parametrize("mode", ["upsert", "add"])
def test_another_row_with_a_value_of_a_unique_index_is_refused_and_not_changed(
    place: Place, mode: Any
) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, mail BIGINT UNIQUE, n BIGINT)")
    place.execute("INSERT INTO {table} VALUES (1, 7, 0)")
    with pytest.raises(RefusedRowError, match="unique index that isn't"):
        write(place.rows("id", mode=mode), "id long, mail long, n long", (2, 7, 5))
    assert place.found() == [(1, 7, 0)]


def test_a_key_of_two_columns_is_found(place: Place) -> None:
    place.execute("CREATE TABLE {table} (a BIGINT, b VARCHAR(9), n BIGINT, UNIQUE (b, a))")
    rows = place.rows(("a", "b"), mode="add")
    write(rows, "a long, b string, n long", (1, "x", 1), (1, "y", 2), (1, "x", 3), (2, "x", 4))
    assert place.found() == [(1, "x", 4), (1, "y", 2), (2, "x", 4)]


def test_a_table_of_keys_alone_takes_each_once(place: Place) -> None:
    write(place.rows("id"), "id long", (1,), (2,), (1,), (2,), batch=2)
    assert place.found() == [(1,), (2,)]


def test_zero_is_a_key_and_no_request_for_a_new_one(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, what TEXT)")
    write(place.rows("id"), "id long, what string", (0, "a"), (5, "b"))
    assert place.found() == [(0, "a"), (5, "b")]


def test_keys_of_a_table_that_is_made_are_compared_by_bytes(place: Place) -> None:
    rows = [("a", 1), ("A", 2), ("a ", 3), ("\xe4", 4)]
    write(place.rows("id"), "id string, n long", *rows, batch=4)
    write(place.rows("id", name=f"{place.table}b"), "id string, n long", ("A", 5))
    assert place.found() == [("A", 5), ("a ", 3), ("a", 1), ("\xe4", 4)]


def test_keys_of_a_table_that_is_there_are_compared_as_it_does(place: Place) -> None:
    place.execute(
        "CREATE TABLE {table} (id VARCHAR(9) PRIMARY KEY, n BIGINT) "
        "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    )
    with pytest.raises(DuplicateKeyError):
        write(place.rows("id"), "id string, n long", ("a", 1), ("A", 2))
    write(
        place.rows("id", delete_where="op", name=f"{place.table}b"),
        "id string, n long, op boolean",
        ("a", 1, False),
    )
    write(
        place.rows("id", delete_where="op", name=f"{place.table}c"),
        "id string, n long, op boolean",
        ("A", 1, True),
    )
    assert place.found() == []


def test_a_table_without_transactions_is_refused(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY) ENGINE = MyISAM")
    with pytest.raises(TableMismatchError, match="MyISAM has no transactions; run ALTER TABLE"):
        write(place.rows("id"), "id long", (1,))


def test_a_table_of_another_database_of_the_server(place: Place) -> None:
    write(place.beside("x").rows(), "id long", (1,))  # the database is there
    there = Place(place.url, f"trident.{place.table}")
    write(there.rows("id", mode="add"), "id long, n long", (1, 2), (1, 3))
    assert place.found() == [(1, 5)]


def test_columns_may_have_any_name(place: Place) -> None:
    names = {"order": "order", "a": "a b", "b": "per%cent", "c": "%s", "d": "'", "e": ":x"}
    names["f"] = "\N{SNOWMAN}"
    fields = ", ".join(f"{field} long" for field in names)
    for _ in range(2):  # the second finds the table
        write(
            place.rows("per%cent", mode="add", columns=names, name=f"t{uuid4().hex[:8]}"),
            fields,
            (1, 2, 3, 4, 5, 6, 7),
        )
    assert place.found() == [(2, 4, 3, 8, 10, 12, 14)]


def test_a_bit_is_a_boolean_too(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, yes BIT, maybe BOOL)")
    write(
        place.rows("id"), "id long, yes boolean, maybe boolean", (1, True, False), (2, False, None)
    )
    assert place.found() == [(1, b"\1", 0), (2, b"\0", None)]


def test_a_moment_is_the_same_whatever_the_servers_time_zone_is(place: Place) -> None:
    place.execute("CREATE TABLE {table} (at TIMESTAMP(6) NULL, local DATETIME(6))")
    moment = datetime(2026, 7, 1, 12, 0, 0, 5, UTC)
    write(place.rows(), "at timestamp, local timestamp_ntz", (moment, moment.replace(tzinfo=None)))
    assert place.found("UNIX_TIMESTAMP(at), local") == [
        (Decimal("1782907200.000005"), moment.replace(tzinfo=None))
    ]


def test_a_late_tasks_open_transaction_makes_nobody_wait(place: Place, database: MySQL) -> None:
    late = database.engine.connect()

    def write_late(reached: str, token: Token) -> None:
        if reached == "after announce" and token.txid == 1:
            late.exec_driver_sql(
                f"INSERT INTO {place.staging} (trident_part, trident_row, id) VALUES (9, 0, 9)"
            )

    with late, watching(write_late):
        write(place.rows("id"), "id long", (1,), (2,), (3,), batch=1)
        late.rollback()
    assert place.found() == [(1,), (2,), (3,)]


def test_writers_of_keys_side_by_side_do_not_wait_for_each_other(
    place: Place, database: MySQL
) -> None:
    write(place.rows("id"), "id long, n long", (10, 1), (30, 1))
    with database.transaction() as other:  # locks a row, and no gap beside it
        other.exec_driver_sql(f"SELECT * FROM {place.table} WHERE id >= 30 FOR UPDATE")
        write(
            place.rows("id", name=f"{place.table}b"),
            "id long, n long",
            (10, 2),
            (20, 2),
            (40, 2),
            batch=1,
        )
    assert place.found() == [(10, 2), (20, 2), (30, 1), (40, 2)]


def test_a_row_that_stays_locked_is_an_attempt_that_failed(place: Place, database: MySQL) -> None:
    write(place.rows("id"), "id long", (1,))
    at_once = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR DELETE FROM {table}"
    with database.transaction() as holder:
        holder.exec_driver_sql(f"SELECT * FROM {place.table} FOR UPDATE")
        with pytest.raises(StateUnavailableError, match="Lock wait timeout.*retried"):
            place.execute(at_once)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDBServer]:
    with MariaDBServer(tmp_path_factory.mktemp("mariadb")) as server:
        yield server


def test_a_server_that_was_started_anew_is_noticed(own: MariaDBServer) -> None:
    database = database_from_url(own.url)
    with database.transaction() as connection:
        before = [database.incarnation(connection) for _ in range(2)]
    own.kill()
    with pytest.raises(StateUnavailableError, match="Start MariaDB there"):
        database.connect()
    own.start()
    with database.transaction() as connection:
        assert before[0] == before[1] != database.incarnation(connection)


def test_a_server_that_is_killed_anywhere_has_each_batch_once(own: MariaDBServer) -> None:
    place = Place.at(own.url)

    def hurt(reached: str, token: Token) -> None:
        if len(hurt_at) == token.txid - 1 and reached == POINTS[len(hurt_at)]:
            hurt_at.append(reached)
            own.kill()
            own.start()

    hurt_at: list[str] = []
    given = [(number,) for number in range(len(POINTS))]
    with watching(hurt):
        write(place.rows(), "n long", *given, batch=1)
    assert hurt_at == [*POINTS]
    assert sorted(place.found()) == given
    assert not place.left()


def test_tls_needs_a_certificate_of_the_authority_that_is_given(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    files = (
        f"--ssl-ca={made.authority}",
        f"--ssl-cert={made.certificate}",
        f"--ssl-key={made.key}",
    )
    with MariaDBServer(tmp_path / "mariadb", "--require-secure-transport=ON", *files) as server:
        with pytest.raises(StateUnavailableError, match="certificate verify failed"):
            database_from_url(f"{server.url}?tls=true").connect()
        place = Place.at(f"{server.url}?tls=true&tls_ca={made.authority}")
        write(place.rows(), "id long", (1,))
        assert place.found() == [(1,)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1213, StateUnavailableError),  # a deadlock
        (1205, StateUnavailableError),
        (2006, StateUnavailableError),
        (1045, StateUnavailableError),
        (1644, RefusedRowError),  # a trigger's
        (1146, StateError),  # a table is gone
        (1064, pymysql.err.OperationalError),
    ],
)
def test_an_error_passes_or_is_a_rows_or_is_of_the_tables(code: int, kind: type) -> None:
    database = database_from_url("mysql://one/shop")
    found = database.explain(pymysql.err.OperationalError(code, "what the server said"))
    assert type(found) is kind


@pytest.mark.parametrize(
    "url", ["mysql://one,two/shop", "mysql://one", "mariadb:shop", "mysql://one/shop?sslmode=x"]
)
def test_a_url_names_one_server_and_a_database(url: str) -> None:
    with pytest.raises(StateURLError):
        database_from_url(url)


def test_the_place_shows_no_password() -> None:
    database = database_from_url("mysql://me:secret@[::1]:33060/shop?tls=true&timeout=5")
    assert str(database) == "mysql at [::1]:33060/shop"
    assert "secret" not in repr(database)


def test_the_doctor_says_which_setting_can_lose_what_was_acknowledged(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", place.url]) == 0
    told = capsys.readouterr().out
    assert "/trident answers (version 10." in told or "/trident answers (version 11." in told
    assert "warning  mysql at 127.0.0.1:" in told
    assert "has innodb_flush_log_at_trx_commit 2: a crash of its machine loses" in told
    assert "sync_binlog" not in told  # it keeps no log of statements
    assert main(["doctor", "mysql://me:secret@127.0.0.1:1/shop"]) == 1
    told = capsys.readouterr().out
    assert "problem  mysql at 127.0.0.1:1/shop: Can't connect to" in told
    assert "secret" not in told
