"""What rows in a SQLite file do in their own way."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident import FixedBatchSpout, TridentTopology
from trident.backends.rows import Rows
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
