"""A table of the user's is put into a state, which topologies look up."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

import trident
from tests.api.topologies import LogFactory
from trident import Count, FixedBatchSpout, MapGet, MemoryMapState, TridentTopology
from trident.errors import UsageError
from trident.states.control import Control
from trident.states.maps.factory import MapStateFactory


def held(url: str, *keys: tuple[Any, ...]) -> list[Any]:
    factory = trident.backends.state_from_url(url)
    assert isinstance(factory, MapStateFactory)
    with closing(factory.makeState()) as table:
        return table.multiGet(keys)


def interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/tables.db?prefix=table"


def test_a_query_finds_what_a_table_was_filled_with() -> None:
    table = MemoryMapState.Factory("table")
    trident.fill(table, {"ad1": "summer"})
    topology = TridentTopology()
    known = topology.newStaticState(table, name="table")
    topology.newDRPCStream("campaign").stateQuery(known, "args", MapGet(), "c").project("c")
    with topology.start() as run:
        assert run.drpc.execute("campaign", "ad1") == '[["summer"]]'


def test_a_table_that_is_filled_again_keeps_what_is_not_named(url: str) -> None:
    trident.fill(url, {"ä": 1, ("b", 2): 2, None: 3, "gone": 4})
    trident.fill(url, {"ä": 10, "gone": None})
    assert held(url, ("ä",), ("b", 2), (None,), ("gone",)) == [10, 2, 3, None]


def test_no_entries_make_an_empty_table(url: str) -> None:
    trident.fill(url, {})
    assert held(url, ("a",)) == [None]


@pytest.mark.parametrize("kind", ["opaque", "transactional", "nontransactional"])
def test_a_fill_that_was_killed_is_given_again(
    url: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{url}&kind={kind}"
    trident.fill(url, {"a": 1})
    with monkeypatch.context() as killed:
        killed.setattr(Control, "announce", interrupt)
        with pytest.raises(KeyboardInterrupt):
            trident.fill(url, {"a": 2, "b": 2})
    if kind == "opaque":
        assert held(url, ("a",), ("b",)) == [1, None]
    trident.fill(url, {"a": 3})
    assert held(url, ("a",)) == [3]
    if kind == "opaque":
        assert held(url, ("b",)) == [None]


@pytest.mark.parametrize("batches", [0, 1])
def test_a_state_that_a_topology_updates_is_refused(url: str, batches: int, tmp_path: Path) -> None:
    topology = TridentTopology()
    words = FixedBatchSpout("word string", 1, *[["a"]] * batches)
    topology.newStream("words", words).groupBy("word").persistentAggregate(url, Count(), "n")
    with topology.start(checkpoint=tmp_path / "log") as run:
        run.processAllAvailable()
    with pytest.raises(UsageError, match=r"fill: a topology updates '.*' *\. Give the table a pre"):
        trident.fill(url, {"a": 7})
    assert held(url, ("a",)) == [batches or None]


def test_only_a_map_over_a_store_can_be_filled() -> None:
    with pytest.raises(UsageError, match="fill: only a map over a store can be filled"):
        trident.fill(LogFactory(), {})
