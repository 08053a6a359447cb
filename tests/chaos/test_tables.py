"""Loops that write tables by hand, beside which a topology is compared."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from uuid import uuid4

import pytest

from trident.backends.rows.urls import database_from_url
from trident.chaos.contender import EpisodePlace, OwnSpout, run_here
from trident.chaos.process import UNHARMED, Life
from trident.chaos.tables import (
    Changes,
    TablesByHand,
    TablesByNumber,
    TablesContender,
    effects_of,
    tables_reader,
    truth_of_changes,
)
from trident.chaos.truth import Findings, Truth
from trident.testing.servers.promised import Served


@pytest.mark.parametrize("loop", [TablesByHand, TablesByNumber])
def test_a_loop_is_right_where_nothing_befalls_it(loop: type[TablesByHand], tmp_path: Path) -> None:
    record = Changes("7", 300)
    database = database_from_url(f"sqlite:{tmp_path}/rows.db")
    place = EpisodePlace(tmp_path, "chaos-1", "1")
    loop(record, 9, database).drive(place, Life(1, UNHARMED, tmp_path / "mark"))
    truth = truth_of_changes(record)
    assert truth.differences(tables_reader(database, place)()) == Findings()


def test_tasks_that_die_or_go_on_too_late_neither_lose_nor_double_rows(
    postgres_server: Served, tmp_path: Path
) -> None:
    record = Changes("8", 70)
    database = database_from_url(postgres_server.url)
    place = EpisodePlace(tmp_path, f"chaos-{uuid4().hex[:8]}", "2")
    source = OwnSpout(record, 9, "opaque")
    counted = TablesContender("rows", source, run_here, database, tasks=True)
    counted.drive(place, Life(1, UNHARMED, tmp_path / "mark"))
    truth = truth_of_changes(record)
    assert truth.differences(tables_reader(database, place)()) == Findings()
    assert place.notes.read_text().startswith("task ")  # which of them depends on the moment


def test_a_reading_is_what_some_first_words_make_or_nothing() -> None:
    a, b = ("n", ("a",)), ("n", ("b",))
    truth = Truth([{a: 1}, {a: 1, b: 1}])
    assert (truth.words_in({a: 1, b: 1}), truth.words_in({b: 1})) == (2, None)
    shown = "n: ('a',) is 3, and should be 1"
    assert truth.differences({a: 3}) == Findings(lost=1, duplicated=2, example=shown)


def test_tables_are_what_some_first_changes_make_or_nothing() -> None:
    record = Changes("7", 3)
    truth = truth_of_changes(record)
    two = Truth(islice(effects_of(record), 2)).whole
    assert truth.words_in(two) == 2
    assert truth.words_in({**two, ("mirror", (0,)): "?"}) is None
    assert truth.words_in({**two, ("rows of another driver", ()): 1}) is None
