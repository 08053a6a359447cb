"""Loops that write tables by hand, beside which a topology is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident.backends.rows.urls import database_from_url
from trident.chaos.contender import EpisodePlace
from trident.chaos.process import UNHARMED, Life
from trident.chaos.tables import ChangedTables, Changes, ChangesTruth, TablesByHand, TablesByNumber
from trident.chaos.truth import Differences


@pytest.mark.parametrize("loop", [TablesByHand, TablesByNumber])
def test_a_loop_is_right_where_nothing_befalls_it(loop: type[TablesByHand], tmp_path: Path) -> None:
    record = Changes("7", 300)
    tables = ChangedTables(database_from_url(f"sqlite:{tmp_path}/rows.db"))
    place = EpisodePlace(tmp_path, "chaos-1", "1")
    loop(record, 9, tables).drive(place, Life(1, UNHARMED, tmp_path / "mark"))
    truth = ChangesTruth(record)
    with tables.reading(place, truth.keys) as read:
        assert truth.differences(read()) == Differences()
