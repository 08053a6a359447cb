"""What rows in a SQLite file do in their own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.rows.databases import Place
from trident import FixedBatchSpout, TridentTopology
from trident.backends.rows import Rows, TableMismatchError
from trident.errors import TridentError


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
