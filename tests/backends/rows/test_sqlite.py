"""What rows in a SQLite file do in their own way."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path

import pytest

from tests.backends.rows.databases import Place
from trident import FixedBatchSpout, TridentTopology
from trident.backends.rows import DuplicateKeyError, RefusedRowError, Rows, TableMismatchError
from trident.errors import StateURLError, TridentError


def test_a_file_that_was_deleted_between_two_runs_of_a_process_is_written_anew(
    tmp_path: Path,
) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    for number in (1, 2):
        written(place.rows("id"), "id long", (number,))
        assert sqlite3.connect(tmp_path / "shop.db").execute(
            f"SELECT id FROM {place.table}"
        ).fetchall() == [(number,)]
        for file in tmp_path.iterdir():
            file.unlink()


def test_a_table_of_other_capitals_is_named(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY)")
    with pytest.raises(TableMismatchError, match=f"it is called {place.table}: name that"):
        written(Rows(place.url, place.table.upper(), "id"), "id long", (1,))


@pytest.mark.parametrize("url", ["sqlite://shop.db", "sqlite::memory:", "sqlite:"])
def test_a_url_of_no_file_is_refused(url: str) -> None:
    with pytest.raises(StateURLError, match="it has no hosts|is no file; give the path of one"):
        Rows(url, "orders")


def test_a_schema_is_refused_as_a_file_has_none(tmp_path: Path) -> None:
    topology = TridentTopology()
    rows = Rows(f"sqlite:{tmp_path}/shop.db", "shop.orders")
    topology.newStream("rows", FixedBatchSpout("id long", 1, [1])).partitionPersist(rows)
    with pytest.raises(TridentError, match="name the table without one"):
        topology.start()


def test_explain_says_in_which_file_the_table_is() -> None:
    topology = TridentTopology()
    rows = Rows("sqlite:/var/lib/shop.db", "orders")
    topology.newStream("rows", FixedBatchSpout("id long", 1, [1])).partitionPersist(rows)
    assert "kept in a table in sqlite, database /var/lib/shop.db" in topology.explain()


def test_an_index_of_some_rows_only_is_no_key(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    place.execute("CREATE TABLE {table} (id BIGINT, gone BOOLEAN DEFAULT 0)")
    place.execute("CREATE UNIQUE INDEX living ON {table} (id) WHERE gone = 0")
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout("id long", 1, (1,)))
    stream.partitionPersist(place.rows("id"))
    with pytest.raises(TableMismatchError, match="no primary key or unique index"):
        topology.start()


def test_two_tables_of_one_file_are_merged_together_by_whatever_name_it_is_called(
    tmp_path: Path,
) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "shop.db")
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout("id long", 1, (1,)))
    names = "shop.db?timeout=1", "link.db?timeout=2", "shop.db"
    for number, name in enumerate(names):
        stream.partitionPersist(Rows(f"sqlite:{tmp_path}/{name}", f"t{number}", "id"))
    with topology.start(trigger="available", patience=0) as run:
        run.awaitTermination()
    for number in range(len(names)):
        assert Place(f"sqlite:{tmp_path}/shop.db", f"t{number}").found() == [(1,)]


def test_a_column_without_a_type_is_refused(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    place.execute("CREATE TABLE {table} (id BIGINT PRIMARY KEY, what)")
    topology = TridentTopology()
    stream = topology.newStream("rows", FixedBatchSpout("id long, what string", 1, (1, "a")))
    stream.partitionPersist(place.rows("id"))
    with pytest.raises(TableMismatchError, match="the column what has no type"):
        topology.start()


def written(rows: Rows, fields: str, *given: tuple[object, ...]) -> None:
    """Write rows, all in one batch."""
    topology = TridentTopology()
    spout = FixedBatchSpout(fields, len(given), *given)
    topology.newStream("rows", spout).partitionPersist(rows)
    with topology.start(trigger="available", patience=0) as run:
        run.awaitTermination()


def test_the_last_row_of_a_key_is_found_as_the_table_compares_keys(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    place.execute("CREATE TABLE {table} (id TEXT COLLATE NOCASE PRIMARY KEY, what TEXT)")
    with pytest.raises(DuplicateKeyError, match="id='[aA]'"):
        written(place.rows("id", name="a"), "id string, what string", ("A", "new"), ("a", "old"))
    rows = place.rows("id", name="b", order_by="at", columns={"at": None}, delete_where="gone")
    fields = "id string, what string, at long, gone boolean"
    kept = ("A", "new", 9, False), ("a", "old", 1, False)
    written(rows, fields, *kept, ("b", "", 1, False), ("B", "", 2, True))
    assert place.found() == [("A", "new")]


def test_a_sum_that_is_too_large_is_a_bad_row_and_not_waited_for(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    with pytest.raises(RefusedRowError, match="integer overflow"):
        written(place.rows("id", mode="add"), "id long, n long", (1, 2**63 - 1), (1, 1))


def test_a_sum_of_more_than_64_bits_is_refused_and_not_rounded(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    topology = TridentTopology()
    given = FixedBatchSpout("id long, n long", 1, (1, 2**63 - 2), (1, 1), (1, 1))
    topology.newStream("rows", given).partitionPersist(place.rows("id", mode="add"))
    with pytest.raises(RefusedRowError, match="overflow"), topology.start() as run:
        run.awaitTermination()
    assert place.found() == [(1, 2**63 - 1)]


def test_a_number_that_would_become_null_is_a_bad_row(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    with pytest.raises(RefusedRowError, match=r"id=2, n=nan.*column n: SQLite can't hold nan"):
        written(place.rows("id"), "id long, n double", (1, float("inf")), (2, float("nan")))
    assert place.found() == []


@pytest.mark.parametrize(
    "number", ["123456789012345.00", "-0.00000001", "9223372036854775807.00", "1" + 29 * "0"]
)
def test_a_decimal_of_up_to_15_digits_or_64_bits_is_kept_as_it_is(
    tmp_path: Path, number: str
) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    written(place.rows("id"), "id long, n decimal(38,8)", (1, Decimal(number)), (2, None))
    assert [None if n is None else Decimal(repr(n)) for _, n in place.found()] == [
        Decimal(number),
        None,
    ]


@pytest.mark.parametrize("number", ["1234567890123456.7", "9223372036854775808", "0." + 8 * "12"])
def test_a_decimal_that_would_be_rounded_is_a_bad_row(tmp_path: Path, number: str) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    with pytest.raises(RefusedRowError, match=f"column n: SQLite keeps 15 digits.*{number}"):
        written(
            place.rows("id"), "id long, n decimal(38,16)", (1, Decimal("0.1")), (2, Decimal(number))
        )
    assert place.found() == []


def test_decimals_are_not_added_as_they_would_be_rounded(tmp_path: Path) -> None:
    place = Place.at(f"sqlite:{tmp_path}/shop.db")
    with pytest.raises(TableMismatchError, match="would round the field n.* make it a long"):
        written(place.rows("id", mode="add"), "id long, n decimal(9,2)", (1, Decimal("0.1")))
