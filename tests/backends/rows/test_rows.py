"""Rows of a stream in a table of the user's own: what each mode makes of them."""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy

from tests.backends.rows.databases import Place
from trident import FixedBatchSpout, TridentTopology
from trident.backends.rows import DuplicateKeyError, Rows, TableMismatchError
from trident.errors import DuplicateNameError
from trident.states.errors import MissingDriverError, StateError, UsageError

ORDERS = "order_id long, what string, n long, op string"


def write(rows: Rows, fields: str | list[str], *given: tuple[Any, ...], batch: int = 3) -> None:
    """Write rows, so many a batch."""
    topology = TridentTopology()
    topology.newStream("rows", FixedBatchSpout(fields, batch, *given)).partitionPersist(rows)
    with topology.start(trigger="available") as run:
        run.awaitTermination()


def test_a_row_replaces_the_one_of_its_key(place: Place) -> None:
    rows = place.rows("id")
    write(rows, "id long, what string", (1, "a"), (2, "b"), (3, "c"), (2, "new"), (4, None))
    assert place.found() == [(1, "a"), (2, "new"), (3, "c"), (4, None)]
    assert not place.left()


def test_rows_without_a_key_are_added(place: Place) -> None:
    write(place.rows(), "id long, what string", (1, "a"), (1, "a"), (1, "a"), (1, "a"))
    assert place.found() == [(1, "a")] * 4


def test_numbers_are_added_to_what_is_there_and_null_is_nothing(place: Place) -> None:
    given = [("a", 1), ("b", 5), ("a", 2), ("a", 10), ("b", None), ("c", None)]
    write(place.rows("word", mode="add"), "word string, n long", *given)
    assert place.found() == [("a", 13), ("b", 5), ("c", None)]


def test_the_last_row_of_a_key_is_the_one_of_the_greatest_order(place: Place) -> None:
    rows = place.rows("id", order_by="at", columns={"at": None})
    given = [(1, "new", 7), (1, "old", 3), (2, "b", None), (1, "later", 1)]
    write(rows, "id long, what string, at long", *given, batch=3)
    assert place.found() == [(1, "later"), (2, "b")]


@pytest.mark.parametrize("order_by", [None, "at"])
def test_two_rows_of_a_key_are_an_error_where_nothing_says_which_is_last(
    place: Place, order_by: str | None
) -> None:
    rows = place.rows("id", order_by=order_by)
    with pytest.raises(DuplicateKeyError, match="id=1") as raised:
        write(rows, "id long, what string, at long", (1, "a", 5), (1, "b", 5))
    assert "order_by=" in str(raised.value)
    assert place.found() == []


@pytest.mark.parametrize(("kind", "gone", "stays"), [("string", "d", "u"), ("boolean", True, None)])
def test_a_row_is_deleted_where_its_field_says_so(
    place: Place, kind: str, gone: object, stays: object
) -> None:
    rows = place.rows("id", delete_where="op")
    given = [(1, "a", stays), (2, "b", stays), (3, "c", stays), (2, None, gone), (9, None, gone)]
    write(rows, f"id long, what string, op {kind}", *given)
    assert place.found() == [(1, "a"), (3, "c")]


def test_what_says_which_rows_are_deleted_is_a_boolean_or_a_string(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY)")
    with pytest.raises(StateError, match=r"delete_where= names gone, .* int64.*Cast the field"):
        write(place.rows("id", delete_where="gone"), ["id", "gone"], (1, 1))
    write(place.rows("id", delete_where="gone"), ["id", "gone"], (1, None))
    assert place.found() == [(1,)]


def test_a_row_to_write_and_one_to_delete_of_one_key_are_two_rows_of_a_key(place: Place) -> None:
    rows = place.rows("id", delete_where="gone")
    with pytest.raises(DuplicateKeyError, match="id=1"):
        write(rows, "id long, what string, gone boolean", (1, "a", False), (1, "a", True))
    assert place.found() == []


@pytest.mark.parametrize("place", ["postgres", "mariadb"], indirect=True)
@pytest.mark.parametrize(("field", "value"), [("int", 2**24 + 1), ("decimal(8,1)", Decimal("1.5"))])
def test_a_column_of_short_floats_takes_no_longer_numbers(
    place: Place, field: str, value: object
) -> None:
    kind = "FLOAT" if place.url.startswith("m") else "REAL"
    place.execute(f"CREATE TABLE {{table}} (id BIGINT PRIMARY KEY, n {kind})")
    with pytest.raises(TableMismatchError, match="the column n is"):
        write(place.rows("id"), f"id long, n {field}", (1, value))
    write(place.rows("id"), "id long, n short", (1, -(2**15)))
    assert place.found() == [(1, -(2**15))]


def test_what_can_not_be_ordered_is_no_order(place: Place) -> None:
    rows = place.rows("id", order_by="at", columns={"at": None})
    with pytest.raises(TableMismatchError, match="a array<int>, by which no rows"):
        write(rows, "id long, at array<int>", (1, [1]))


def test_what_orders_rows_has_a_declared_type(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, what VARCHAR(9))")
    rows = place.rows("id", order_by="at", columns={"at": None})
    with pytest.raises(TableMismatchError, match='"at long"'):
        write(rows, ["id", "what", "at"], (1, "new", 10), (1, "old", 9))


def test_a_column_may_be_called_as_what_the_merge_computes(place: Place) -> None:
    rows = place.rows("id", order_by="at")
    write(rows, "id long, at long, trident_rank long", (1, 9, 7), (1, 2, 8))
    assert place.found() == [(1, 9, 7)]


@pytest.mark.parametrize(
    ("column", "field", "value"),
    [
        ("DOUBLE PRECISION", "long", 2**53 + 1),
        ("DOUBLE PRECISION", "decimal(16,0)", Decimal(2**53 + 1)),
        ("NUMERIC(9,1)", "decimal(9,2)", Decimal("1.01")),
    ],
)
def test_a_column_that_would_round_a_field_is_refused(
    place: Place, column: str, field: str, value: object
) -> None:
    place.execute(f"CREATE TABLE {{table}} (id BIGINT PRIMARY KEY, n {column})")
    with pytest.raises(TableMismatchError, match="the column n is"):
        write(place.rows("id"), f"id long, n {field}", (1, value))


@pytest.mark.parametrize("name", ["given", 'a%s %% "it\'s"; --'])
def test_a_table_may_have_any_name(place: Place, name: str) -> None:
    rows = Rows(place.url, (name,), "k (n)s:1", columns={"id": "k (n)s:1"}, name=place.table)
    write(rows, "id long, what string", (1, "a"), (1, "b"), batch=1)


@pytest.mark.parametrize(
    ("key", "mode", "told"), [(None, "append", [(1, 3), (1, 5)]), ("id", "add", [(1, 8)])]
)
def test_several_rows_of_a_key_stay_beside_one_that_is_put_aside(
    place: Place, key: str | None, mode: str, told: list[tuple[int, int]]
) -> None:
    unique = "PRIMARY KEY" if key else ""
    place.execute(f"CREATE TABLE {{table}} (id BIGINT {unique}, n BIGINT, CHECK (n < 10))")
    rows = place.rows(key, mode=mode, on_bad_row="dead-letter")
    write(rows, "id long, n long", (1, 5), (1, 3), (2, 50))
    assert place.found() == told


@pytest.mark.parametrize("place", ["sqlite", "mariadb"], indirect=True)
def test_no_table_is_made_with_columns_that_differ_in_capitals_only(place: Place) -> None:
    with pytest.raises(TableMismatchError, match="columns id and ID are one in"):
        write(place.rows("id"), "id long, ID long", (1, 2))


def test_a_column_for_a_field_that_the_rows_lack_is_an_error(place: Place) -> None:
    with pytest.raises(UsageError, match="no field of the rows with 'whta'.*Did you mean 'what'"):
        write(place.rows("id", columns={"whta": None}), "id long, what string", (1, "a"))


def test_of_a_row_to_delete_only_the_key_counts(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, n SMALLINT)")
    rows = place.rows("id", delete_where="gone")
    fields = "id long, n long, gone boolean"
    write(rows, fields, (1, 1, False), (2, 2, False), (1, 2**40, True), batch=2)
    assert place.found() == [(2, 2)]


def test_a_field_that_is_not_stored_may_be_null(place: Place) -> None:
    write(place.rows("id", columns={"at": None}), "id long, at long", (1, 7), (2, None))
    assert place.found() == [(1,), (2,)]


def test_two_writers_of_a_table_need_two_names() -> None:
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout("id long", 1, [1]))
    stream.partitionPersist(Rows("sqlite:shop.db", "orders", "id"), name="one")
    with pytest.raises(DuplicateNameError, match="of Rows another name="):
        stream.partitionPersist(Rows("sqlite:shop.db", "orders", "id"), name="other")
    stream.partitionPersist(Rows("sqlite:shop.db", "orders", "id", name="other"))


def test_columns_that_no_field_fills_keep_what_they_hold(place: Place) -> None:
    place.execute(
        "CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT, note VARCHAR(9) DEFAULT 'x')"
    )
    place.execute("INSERT INTO {table} VALUES (1, 1, 'mine')")
    write(place.rows("id", columns={"count": "n"}), "id long, count long", (1, 7), (2, 8))
    assert place.found() == [(1, 7, "mine"), (2, 8, "x")]


def test_all_that_does_not_fit_a_table_is_one_error(place: Place) -> None:
    place.execute("CREATE TABLE {table} (id BIGINT, what BIGINT, must BIGINT NOT NULL)")
    with pytest.raises(TableMismatchError) as raised:
        write(place.rows("id"), "id long, what string, more double", (1, "a", 2.0))
    told = str(raised.value)
    assert re.search(r"column what is bigint(\(20\))?, the field what string", told)
    assert "no column more for the field more; it has: id, what, must" in told
    assert "column must must not be null, has no default, and no field" in told
    assert "no primary key or unique index is on (id)" in told


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"table": ""}, "is no name"),
        ({"mode": "merge", "key": "id"}, "'merge'; there are: upsert, append, add"),
        ({"mode": "add"}, "needs key="),
        ({"mode": "append", "key": "id"}, "takes no key="),
        ({"order_by": "at"}, "belong to mode='upsert'"),
        ({"name": "n" * 181}, "at most 180 characters"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Rows("sqlite:shop.db", **{"table": "orders", **given})


@pytest.mark.parametrize(
    ("module", "url", "extra"),
    [
        ("sqlalchemy", "sqlite:shop.db", "rows"),
        ("pyarrow", "sqlite:shop.db", "rows"),
        ("psycopg", "postgresql://nowhere/shop", "rows,postgres"),
        ("pymysql", "mysql://nowhere/shop", "mysql"),
    ],
)
def test_who_lacks_a_package_is_told_what_to_install(
    module: str, url: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("id long", 1, [1])
    topology.newStream("rows", spout).partitionPersist(Rows(url, "orders"))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDriverError, match=re.escape(f'"trident-spark[{extra}]"')):
        topology.start()


def test_a_run_that_has_stopped_keeps_no_connection(place: Place) -> None:
    rows = place.rows("id")
    write(rows, "id long", (1,), (2,))
    assert rows.database.engine.pool.checkedin() == 0  # type: ignore[attr-defined]


def test_a_table_that_can_not_be_made_is_tried_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def refuse(table: sqlalchemy.Table, *_: object, **__: object) -> None:
        tried.append(table.name)
        raise PermissionError

    monkeypatch.setattr(
        "trident.backends.rows.store.catalog",
        lambda: sqlalchemy.Table(
            f"{place.table}_catalog",
            sqlalchemy.MetaData(),
            sqlalchemy.Column("n", sqlalchemy.Integer),
        ),
    )
    monkeypatch.setattr(sqlalchemy.Table, "create", refuse)
    with pytest.raises(PermissionError):
        write(place.rows("id"), "id long", (1,))
    assert tried == [f"{place.table}_catalog"]
