"""State in Memcached: what it stores and how, what it refuses, and how it connects."""

from __future__ import annotations

import pickle
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pymemcache.client.base import Client

from trident import Count
from trident.backends.memcached import (
    MemcachedStore,
    from_url,
    nonTransactional,
    opaque,
    transactional,
)
from trident.backends.memcached.backing_map import MemcachedMap
from trident.backends.memcached.connections import lend_each, pool
from trident.backends.memcached.keys import StoredKeys
from trident.backends.state_url import StateURL
from trident.states.control import Control, ControlRecord
from trident.states.errors import SerializationError, StateURLError
from trident.states.keys import CONTROL_KEY
from trident.states.sharding import Sharding
from trident.states.values import StateType, Token
from trident.testing.servers.memcached import MemcachedServer
from trident.testing.servers.promised import Served

MONTH = 30 * 24 * 3600


def record(txid: int, attempt: int = 0) -> ControlRecord:
    return ControlRecord("log", Token(txid, attempt), txid - 1)


@pytest.fixture
def nodes(memcached_servers: Served) -> list[str]:
    return [f"{host}:{port}" for host, port in StateURL.parse(memcached_servers.url).hosts]


@pytest.fixture
def words(nodes: list[str]) -> MemcachedMap:
    """A map over all nodes that no other test uses."""
    return MemcachedStore(nodes, prefix=uuid4().hex).open()


@pytest.fixture
def client(nodes: list[str]) -> Iterator[Client]:
    """Somebody else's client of the first node."""
    with closing(Client(nodes[0])) as made:
        yield made


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[MemcachedServer]:
    """A server that no other test uses, with room for what would be evicted elsewhere."""
    with MemcachedServer(tmp_path, "-m", "512") as server:
        yield server


def of(server: MemcachedServer, **options: Any) -> MemcachedStore:
    return MemcachedStore([f"{server.host}:{server.port}"], **options)


# Configuration


def test_nodes_are_written_out() -> None:
    store = MemcachedStore(["a", "b:1", "[::1]", "[::1]:2"], "words")
    assert store.nodes == ("a:11211", "b:1", "[::1]:11211", "[::1]:2")
    assert store.identity == ("memcached", "a:11211,b:1,[::1]:11211,[::1]:2", "words")


def test_a_node_may_be_given_as_pymemcache_takes_it() -> None:
    store = MemcachedStore([("h", 1), ("::1", 2)], "words")
    assert store == MemcachedStore(["h:1", "[::1]:2"], "words")


def test_one_node_may_be_given_by_itself() -> None:
    assert MemcachedStore("cache1:11212").nodes == ("cache1:11212",)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"nodes": []}, "at least one"),
        ({"nodes": ["a", "a:11211"]}, "each node once"),
        ({"nodes": ["a:b"]}, "'a:b' is not a node"),
        ({"nodes": ["a:0"]}, "'a:0' is not a node"),
        ({"nodes": ["::1"]}, "an IPv6 address in brackets"),
        ({"nodes": [""]}, "'' is not a node"),
        ({"nodes": ("a", 11211)}, "11211 is not a node; give a list of them"),
        ({"nodes": [("a", "11211")]}, r"\('a', '11211'\) is not a node.* pair \(host, port\)"),
        ({"nodes": [("a", 0)]}, r"\('a', 0\) is not a node"),
        ({"prefix": "p" * 181}, "181 bytes of every key"),
        ({"ttl": -1}, "ttl -1"),
        ({"timeout": 0}, "timeout 0"),
    ],
)
def test_a_store_that_cannot_be_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        MemcachedStore(**options)


def test_a_prefix_is_filled_in_only_where_it_was_left_open() -> None:
    assert MemcachedStore().named("words").prefix == "words"
    assert MemcachedStore(prefix="").named("words").prefix == ""
    assert MemcachedStore().identity == ("memcached", "localhost:11211", "state")


def test_factories_know_their_kind() -> None:
    kinds = [make("cache1").kind for make in (opaque, transactional, nonTransactional)]
    assert kinds == [StateType.OPAQUE, StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL]


def test_a_factory_pickles_and_connects_to_nothing() -> None:
    factory = opaque("nowhere.invalid", "words", ttl=60, max_get=10)
    copy = pickle.loads(pickle.dumps(factory))
    assert copy == factory
    copy.makeState().close()


def test_a_url_says_all_there_is_to_say() -> None:
    text = "memcached://h1,h2:2?prefix=words&ttl=60&timeout=1.5&kind=transactional&max_get=10"
    assert from_url(StateURL.parse(text)) == transactional(
        ["h1", "h2:2"], "words", ttl=60, timeout=1.5, max_get=10
    )


def test_a_url_without_hosts_means_this_machine() -> None:
    assert from_url(StateURL.parse("memcached:")) == opaque()


@pytest.mark.parametrize(
    "text",
    ["memcached://me:secret@h", "memcached://me@h", "memcached://h/0", "memcached://h?tls=true"],
)
def test_a_url_with_more_is_refused(text: str) -> None:
    with pytest.raises(StateURLError) as raised:
        from_url(StateURL.parse(text))
    assert "secret" not in str(raised.value)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch, words: MemcachedMap) -> None:
    # A port nobody has connected to yet, or an idle connection would do.
    monkeypatch.setitem(sys.modules, "pymemcache", None)
    with pytest.raises(ImportError, match=r'pip install "trident-spark\[memcached\]"'):
        MemcachedStore("localhost:1").open().multiGet([b"dog"])


# What is stored


def test_an_entry_is_stored_under_its_prefix_and_key(client: Client, nodes: list[str]) -> None:
    prefix = uuid4().hex
    MemcachedStore(nodes[0], prefix=prefix).open().multiPut([b"dog"], [b"2"])
    assert client.get(f"{prefix}:dog") == b"2"


def test_state_that_storm_wrote_is_counted_on(alone: MemcachedServer) -> None:
    with closing(Client((alone.host, alone.port))) as storm:
        storm.set("dog", b"[5,7,4]", noreply=False)
        storm.set("café".encode(), b"[4,1,null]", noreply=False)
        counts = opaque(f"{alone.host}:{alone.port}", prefix="").makeState()
        own = ControlRecord("log", Token(6, 0), committed=5)
        counts.control.begin(own)
        counts.beginCommit(own)
        assert counts.multiGet([("dog",), ("café",)]) == [7, 1]
        counts.multiFold([b"dog"], [2], Count())
        counts.commit(own)
        assert storm.get("dog") == b"[6,9,7]"


def test_states_of_one_cluster_are_apart(nodes: list[str]) -> None:
    one, other = uuid4().hex, uuid4().hex
    MemcachedStore(nodes, prefix=one).open().multiPut([b"dog"], [b"1"])
    assert MemcachedStore(nodes, prefix=other).open().multiGet([b"dog"]) == [None]


def test_keys_are_spread_over_all_nodes_and_stay_where_they_are(nodes: list[str]) -> None:
    keys = [b"word%d" % number for number in range(1000)]
    positions = Sharding.of(StoredKeys("words").of(keys), 3).positions
    assert all(250 < len(own) < 420 for own in positions)
    assert positions == Sharding.of(StoredKeys("words").of(keys), 3).positions
    assert Sharding.of([b"words:dog", b"words:cat"], 2).positions == [[0], [1]], (
        "the place of a key must never change: state that is there would be lost"
    )


def test_entries_expire_and_the_control_record_does_not(client: Client, nodes: list[str]) -> None:
    prefix = uuid4().hex
    store = MemcachedStore(nodes[0], prefix=prefix, ttl=1000).open()
    store.multiPut([b"set"], [b"1"])
    store.multiPutVersioned([b"added"], [b"1"], [None])
    store.putControl(b"record", None)
    names = StoredKeys(prefix).of([b"set", b"added", CONTROL_KEY])
    left = [seconds_left(client, name) for name in names]
    assert [990 < seconds <= 1000 for seconds in left] == [True, True, False]
    assert left[2] == -1, "for ever"


def test_entries_may_last_longer_than_a_month(client: Client, nodes: list[str]) -> None:
    prefix = uuid4().hex
    store = MemcachedStore(nodes[0], prefix=prefix, ttl=2 * MONTH).open()
    store.multiPut([b"dog"], [b"1"])
    assert 2 * MONTH - 10 < seconds_left(client, f"{prefix}:dog".encode()) <= 2 * MONTH + 1


def seconds_left(client: Client, name: bytes) -> int:
    answer = client.raw_command(b"mg %b t" % name)
    return int(answer.removeprefix(b"HD t"))


def test_a_value_as_large_as_an_item_may_be_is_stored(words: MemcachedMap) -> None:
    with lend_each(words._nodes) as connections:
        limits = {connection.item_limit for connection in connections}
    [name] = words._keys.of([b"dog"])
    largest = b"v" * (min(limits) - len(name))
    words.multiPut([b"dog"], [largest])
    assert words.multiGet([b"dog"]) == [largest]


@pytest.mark.parametrize("put", ["multiPut", "multiPutVersioned"])
def test_a_larger_value_is_refused_before_anything_is_sent(words: MemcachedMap, put: str) -> None:
    with lend_each(words._nodes) as connections:
        limit = max(connection.item_limit for connection in connections)
    [name] = words._keys.of([b"dog"])
    values = [b"2", b"v" * (limit - len(name) + 1)]
    words.multiPut([b"cat", b"dog"], [b"1", b"1"])
    versions = [version for _, version in words.multiGetVersioned([b"cat", b"dog"])]
    more = [versions] if put == "multiPutVersioned" else []
    with pytest.raises(SerializationError) as raised:
        getattr(words, put)([b"cat", b"dog"], values, *more)
    assert words.multiGet([b"cat", b"dog"]) == [b"1", b"1"]
    text = str(raised.value)
    assert f"{len(values[1])} bytes under the key {name!r}" in text
    assert f"at most {limit - len(name)} bytes" in text
    assert "memcached -I" in text
    assert str(words._nodes[0])[:9] in text


def test_a_node_may_take_larger_values(tmp_path: Path) -> None:
    made = MemcachedServer(tmp_path, "-I", "4m")
    with made:
        large = b"v" * 3_000_000
        store = of(made).open()
        store.multiPut([b"dog"], [large])
        assert store.multiGet([b"dog"]) == [large]


# Connections


def test_large_values_both_ways_at_once_do_not_block(alone: MemcachedServer) -> None:
    store = of(alone).open()
    keys = [b"key%d" % number for number in range(100)]
    values = [b"%d " % number + b"v" * 900_000 for number in range(100)]
    store.multiPut(keys, values)
    assert store.multiGet(keys) == values
    # A hundred requests a line, 45 MB of them, while 90 MB of answers are on their way
    many = keys * 2
    assert store.multiGet(many) == values * 2


def test_many_keys_at_once_do_not_block(words: MemcachedMap) -> None:
    keys = [b"word %d" % number for number in range(100_000)]
    values = [b"[1,%d,null]" % number for number in range(100_000)]
    found = words.multiGetVersioned(keys)
    assert all(words.multiPutVersioned(keys, values, [version for _, version in found]))
    assert not any(words.multiPutVersioned(keys, values, [version for _, version in found]))
    found = words.multiGetVersioned(keys)
    assert [value for value, _ in found] == values
    assert all(words.multiPutVersioned(keys, values, [version for _, version in found]))


def test_maps_of_one_process_share_connections(alone: MemcachedServer) -> None:
    for number in range(20):
        store = of(alone, prefix=f"map {number}").open()
        store.multiPut([b"dog"], [b"1"])
        store.close()
    with closing(Client((alone.host, alone.port))) as client:
        assert client.stats()[b"total_connections"] <= 5  # ours, this one, and the test's own


def test_a_forked_process_has_connections_of_its_own(words: MemcachedMap) -> None:
    words.multiPut([b"dog"], [b"1"])
    with ProcessPoolExecutor(1, get_context("fork")) as forked:
        pending = [forked.submit(words.multiGet, [b"dog"]) for _ in range(50)]
        for _ in range(50):
            assert words.multiGet([b"cat", b"dog"]) == [None, b"1"]
        assert [each.result() for each in pending] == [[b"1"]] * 50


def test_a_process_closes_what_it_kept_at_its_end(words: MemcachedMap) -> None:
    words.multiPut([b"dog"], [b"2"])
    pool.close_idle()  # a connection that is dropped open would warn
    assert words.multiGet([b"dog"]) == [b"2"]


def test_a_closed_map_may_be_used_again(words: MemcachedMap) -> None:
    words.multiPut([b"dog"], [b"1"])
    words.close()
    assert words.multiGet([b"dog"]) == [b"1"]


def test_threads_may_use_one_map(words: MemcachedMap) -> None:
    wrong: list[int] = []

    def use(number: int) -> None:
        key, value = b"key%d" % number, b"%d" % number * 1000
        for _ in range(50):
            words.multiPut([key], [value])
            if words.multiGet([key]) != [value]:
                wrong.append(number)

    threads = [threading.Thread(target=use, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_name_with_several_addresses_is_tried_at_each(
    alone: MemcachedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = socket.getaddrinfo

    def answer(host: str, port: int, *how: Any, **more: Any) -> list[Any]:
        hosts = ["127.0.0.2", alone.host] if host == "cache.invalid" else [host]
        return [found for each in hosts for found in ask(each, port, *how, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    store = MemcachedStore(f"cache.invalid:{alone.port}").open()
    store.multiPut([b"dog"], [b"1"])
    assert store.multiGet([b"dog"]) == [b"1"]


# The control record


def test_begin_ready_and_announce_reach_all_nodes(nodes: list[str]) -> None:
    prefix = uuid4().hex
    both = MemcachedStore(nodes, prefix=prefix).open()
    control = Control(both)
    control.begin(record(1))
    assert control.announce(control.ready(record(1)))
    [name] = StoredKeys(prefix).of([CONTROL_KEY])
    for shard, node in enumerate(nodes):
        with closing(Client(node)) as client:
            own = b"%d/%d %b" % (shard, len(nodes), record(1).confirmed().announced().encode())
            assert client.get(name) == own
