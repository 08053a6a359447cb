"""Where explanations say that a state is, and what they say that a batch costs there."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.packaging.conftest import ROOT
from trident import FixedBatchSpout, Rows, TridentTopology
from trident.backends import hbase, memcached, postgres, redis, sqlite
from trident.backends.memory import MemoryMap, MemoryMapState
from trident.plan.places import Place, calls_of, place_of, without_secrets
from trident.states.maps.factory import OpaqueMap
from trident.states.state import State, StateFactory

STORES = {
    "memory": MemoryMapState.Factory(),
    "SQLite": sqlite.opaque("/data/a@b/counts.db", "words"),
    "Redis": redis.opaque("cache", 6380, "words", db=3, password="s3cret"),
    "Redis Cluster": redis.opaque(cluster=[("one", 1), ("two", 2)], prefix="words"),
    "Memcached": memcached.opaque(["one:1", "two:2"], "words"),
    "HBase": hbase.opaque("gate", table="counts", prefix="words"),
    "PostgreSQL": postgres.opaque(host="db", database="shop", password="s3cret", prefix="words"),
}


@pytest.mark.parametrize(
    ("store", "place"),
    [
        ("memory", Place("the memory of this process")),
        ("SQLite", Place("sqlite", "", "/data/a@b/counts.db", "words")),
        ("Redis", Place("redis", "cache:6380", "3", "words")),
        ("Redis Cluster", Place("redis", "cluster one:1,two:2", "", "words")),
        ("Memcached", Place("memcached", "one:1,two:2", "", "words")),
        ("HBase", Place("hbase", "gate:9090", "counts", "state:words")),
        ("PostgreSQL", Place("postgresql", "db:5432", "shop", "words")),
    ],
)
def test_a_place_is_taken_apart(store: str, place: Place) -> None:
    assert place_of(STORES[store]) == place


def test_rows_are_told_by_table_mode_and_key() -> None:
    topology = TridentTopology()
    rows = Rows("sqlite:/data/shop.db", "orders", "id")
    topology.newStream("s", FixedBatchSpout("id long, n long", 1)).partitionPersist(rows)
    told = topology.explain()
    assert "partitionPersist(Rows(orders, upsert by id), [id, n])" in told
    assert "kept in a table in sqlite, database /data/shop.db\n" in told
    assert "visible together" in told


def test_calls_are_those_of_the_page_of_states() -> None:
    page = (ROOT / "docs" / "states.md").read_text()
    told = dict(re.findall(r"^\| ([^|]+) \|(?:[^|]+\|){4} ([^|]+) \|$", page, re.MULTILINE))
    for name, factory in STORES.items():
        assert told[name] == str(calls_of(factory)), name


class Elsewhere(StateFactory):
    """A state of somebody's own, which tells where it is."""

    def __init__(self, *identity: Any) -> None:
        self.identity = identity

    def makeState(self, *given: Any, **named: Any) -> State:
        raise NotImplementedError


@pytest.mark.parametrize(
    "where",
    [
        "mongo://me:s3cret@host:1/words",
        "me:s3cret@host:1/words",
        "host:1/words?password=s3cret",
        "host:1/words?password=x@s3cret",
        "me:s3c?ret@host/words",
        "me:s3c/ret@host/words",
        "host=host password = s3cret user=me",
        "host;api_key=s3cret",
    ],
)
def test_no_secret_of_a_place_is_told(where: str) -> None:
    found = place_of(Elsewhere("mongo", where, "prefix"))
    shown = f"{found} {without_secrets(where)}"
    assert not re.search("s3c|ret", shown), shown


def test_what_is_not_known_of_a_place_is_left_out() -> None:
    assert place_of(Elsewhere("mine")) == Place("mine")
    nowhere = Elsewhere()
    nowhere.identity = None
    assert place_of(nowhere) is None
    assert calls_of(nowhere) is None
    made = OpaqueMap.factory(lambda: MemoryMap("one"), name="one")
    assert place_of(made) == Place("the map that <lambda> makes", database="one")


def test_a_place_is_told_in_one_line() -> None:
    told = str(Place("redis", "cache:6379", "0", "words"))
    assert told == "redis at cache:6379, database 0, prefix words"
