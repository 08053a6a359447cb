"""The configuration of a state in Redis: what it takes, refuses and never shows."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

from trident.backends import redis
from trident.backends.redis import RedisStore
from trident.backends.urls import state_from_url
from trident.states import Ability, MapStateFactory, StateType
from trident.states.backing_map import abilities
from trident.states.errors import StateURLError

NODES = (("one", 7000), ("two", 7001))


def store_of(url: str) -> RedisStore:
    factory = state_from_url(url)
    assert isinstance(factory, MapStateFactory)
    assert isinstance(factory.store, RedisStore)
    return factory.store


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "layout": ({"layout": "list"}, "'list' is unknown; there are: string, hash"),
    "opening brace": ({"prefix": "{a"}, "holds one of"),
    "closing brace": ({"prefix": "a}"}, "holds one of"),
    "NUL": ({"prefix": "a\0"}, "holds one of"),
    "hash without a name": ({"prefix": "", "layout": "hash"}, "give a prefix"),
    "bare keys in a cluster": ({"prefix": "", "cluster": NODES}, "give a prefix"),
    "ttl": ({"ttl": 0}, "ttl 0 is not at least 1 second"),
    "nodes as text": ({"cluster": ["one:7000"]}, "pairs of host and port"),
    "two places": ({"cluster": NODES, "sentinels": NODES, "service": "x"}, "give one of them"),
    "no service": ({"sentinels": NODES}, "give both"),
    "no sentinels": ({"service": "x"}, "give both"),
    "cluster's database": ({"cluster": NODES, "db": 3}, "only db 0, not 3"),
    "database": ({"db": -1}, "start at 0"),
    "user alone": ({"user": "me"}, "without a password"),
    "partitions": ({"partitions": 0}, "from 1 to 16384"),
    "time-out": ({"timeout": 0}, "above 0 seconds"),
    "replicas": ({"wait_replicas": -1}, "below 0"),
    "waiting too long": ({"wait_replicas": 1, "wait_timeout": 9}, "below timeout, 5.0"),
}


class TestParameters:
    @pytest.mark.parametrize("name", REFUSED)
    def test_refused(self, name: str) -> None:
        given, text = REFUSED[name]
        with pytest.raises(ValueError, match=text):
            RedisStore(**given)

    def test_a_states_name_that_is_no_prefix_is_refused(self) -> None:
        with pytest.raises(ValueError, match="give prefix="):
            RedisStore().named("word{counts")

    def test_the_name_is_the_default_prefix(self) -> None:
        assert RedisStore().named("words").prefix == "words"
        assert RedisStore(prefix="own").named("words").prefix == "own"
        assert RedisStore(prefix="").named("words").prefix == ""

    def test_each_kind_has_its_factory(self) -> None:
        kinds = [make("cache", 1).kind for make in (redis.opaque, redis.transactional)]
        assert kinds == [StateType.OPAQUE, StateType.TRANSACTIONAL]
        assert redis.nonTransactional("cache", 1, "words").store.identity == (
            "redis",
            "cache:1/0",
            "words",
        )

    def test_an_unknown_parameter_is_refused(self) -> None:
        with pytest.raises(TypeError, match="hots"):
            redis.opaque(hots="cache")

    @pytest.mark.parametrize(
        "given",
        [
            pytest.param({"host": "other"}, id="host"),
            pytest.param({"port": 1}, id="port"),
            pytest.param({"db": 1}, id="database"),
            pytest.param({"prefix": "other"}, id="prefix"),
            pytest.param({"cluster": NODES}, id="cluster"),
            pytest.param({"sentinels": NODES, "service": "x"}, id="sentinels"),
        ],
    )
    def test_another_place_is_another_state(self, given: dict[str, Any]) -> None:
        assert RedisStore(**given).identity != RedisStore().identity

    def test_the_order_of_nodes_makes_no_other_state(self) -> None:
        assert RedisStore(cluster=NODES).identity == RedisStore(cluster=NODES[::-1]).identity

    def test_a_clusters_partitions_are_shards(self) -> None:
        assert RedisStore(cluster=NODES, partitions=9).shards == 9
        assert RedisStore().shards is None
        assert redis.opaque(cluster=NODES).shards == 64

    def test_entries_are_listed_with_a_prefix_and_without(self) -> None:
        assert Ability.LIST in abilities(RedisStore(prefix="words").open())
        assert Ability.LIST in abilities(RedisStore(prefix="").open())


class TestURLs:
    def test_one_server(self) -> None:
        found = store_of("redis://me:p%40ss@cache:6380/3?prefix=words&layout=hash&ttl=60")
        expected = {
            "host": "cache",
            "port": 6380,
            "db": 3,
            "user": "me",
            "password": "p@ss",
            "prefix": "words",
            "layout": "hash",
            "ttl": 60,
        }
        assert found == RedisStore(**expected)

    @pytest.mark.parametrize("path", ["", "/", "/0"])
    def test_the_database_is_0_by_default(self, path: str) -> None:
        assert store_of(f"redis://localhost{path}") == RedisStore()

    def test_tls(self) -> None:
        found = store_of("rediss://cache?tls_ca=/ca.crt&tls_cert=/c.crt&tls_key=/c.key")
        assert (found.tls, found.tls_ca, found.tls_cert) == (True, "/ca.crt", "/c.crt")
        assert store_of("redis://cache?tls=true").tls
        assert store_of("rediss+cluster://cache").tls
        assert store_of("rediss://cache?tls=true").tls

    @pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster"])
    def test_what_speaks_tls_is_not_made_to_speak_openly(self, scheme: str) -> None:
        with pytest.raises(StateURLError, match=r"says tls=false\. Leave tls= out"):
            store_of(f"{scheme}://:secret@cache?tls=false")

    def test_a_cluster(self) -> None:
        found = store_of("redis+cluster://:secret@one:7000,two?partitions=16&wait_replicas=1")
        assert found.cluster == (("one", 7000), ("two", 6379))
        assert (found.password, found.partitions, found.wait_replicas) == ("secret", 16, 1)

    def test_sentinels(self) -> None:
        found = store_of("redis+sentinel://one,two:1/main/2?sentinel_password=other")
        assert found.sentinels == (("one", 26379), ("two", 1))
        assert (found.service, found.db, found.sentinel_password) == ("main", 2, "other")

    def test_what_every_state_takes(self) -> None:
        factory = state_from_url(
            "redis://cache?kind=transactional&cache_size=10&max_get=5&max_put=6"
        )
        assert isinstance(factory, MapStateFactory)
        assert (factory.kind, factory.cache_size) == (StateType.TRANSACTIONAL, 10)
        assert (factory.max_get, factory.max_put) == (5, 6)

    @pytest.mark.parametrize(
        ("url", "text"),
        [
            ("redis://one,two", "redis+cluster and redis+sentinel"),
            ("redis:/0", "names no host"),
            ("redis://cache/words", "number of a database"),
            ("redis://cache/0/1", "number of a database"),
            ("redis+cluster://cache/1", "without a path"),
            ("redis+sentinel://cache", "/service"),
            ("redis://cache?partitions=3", "unknown option 'partitions'"),
            ("redis://cache?laoyut=hash", "Did you mean 'layout'"),
            ("redis://cache?ttl=soon", "whole number"),
            ("redis://cache?layout=list", "there are: string, hash"),
            ("redis://cache?prefix=a{b", "prefix 'a{b'"),
        ],
    )
    def test_a_wrong_url_says_what_is_right(self, url: str, text: str) -> None:
        with pytest.raises(StateURLError) as caught:
            state_from_url(url)
        assert text in str(caught.value)


class TestSecrets:
    URLS = (
        "redis://me:hunter2@cache",
        "rediss+cluster://:hunter2@cache",
        "redis+sentinel://:hunter2@cache/main?sentinel_password=hunter2",
    )

    @pytest.mark.parametrize("url", URLS)
    def test_none_is_shown(self, url: str) -> None:
        store = store_of(url)
        backing = store.open()
        shown = f"{store!r} {store} {store.identity} {backing!r} {vars(backing)!r}"
        assert "hunter2" not in shown

    @pytest.mark.parametrize("url", URLS)
    def test_it_pickles_with_them(self, url: str) -> None:
        store = store_of(url)
        assert pickle.loads(pickle.dumps(store)) == store
        assert pickle.loads(pickle.dumps(store)).password == "hunter2"


class TestDriver:
    def test_it_is_not_needed_before_the_map_is_used(self) -> None:
        program = (
            "import sys\n"
            "sys.modules['redis'] = None\n"
            "from trident.backends import redis\n"
            "counts = redis.opaque('cache').makeMap()\n"
            "try:\n"
            "    counts.backing.getControl()\n"
            "except ImportError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert 'pip install "trident-spark[redis]"' in done.stdout, done.stderr
