"""What lies in Redis, byte for byte: it is Storm's, and Storm's is taken over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import pytest
from redis import Redis

from tests.backends.redis_batches import committed, found, new_prefix, plain, record, written
from trident.backends.redis.backing_map import RedisMap
from trident.backends.redis.connections import Command
from trident.backends.redis.layouts import StringLayout
from trident.backends.urls import state_from_url
from trident.states import MapStateFactory
from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError, LostStateError
from trident.states.keys import CONTROL_KEY
from trident.states.maps.sweeping import sweep
from trident.states.testing.checks import following
from trident.states.values import Token
from trident.testing.servers.process import wait_until
from trident.testing.servers.promised import Served
from trident.testing.servers.redis import RedisServer

LAYOUTS = pytest.mark.parametrize("layout", ["string", "hash"])


@pytest.fixture
def client(redis_server: Served) -> Iterator[Redis]:
    with plain(redis_server.url) as client:
        yield client


@pytest.fixture
def prefix() -> str:
    return new_prefix()


@pytest.fixture
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of its own, for states that leave keys as they are."""
    with RedisServer(tmp_path_factory.mktemp("bare")) as server:
        yield server


def opened(server: Served, options: str) -> MapStateFactory:
    factory = state_from_url(f"{server.url}?{options}")
    assert isinstance(factory, MapStateFactory)
    return factory


def laid_out(factory: MapStateFactory, layout: type[StringLayout]) -> RedisMap:
    """Open the map of a state on one server with another layout."""
    made: Any = factory.store.open()
    made._layouts = [layout(made._layout.name)]
    assert isinstance(made, RedisMap)
    return made


def taken_over(factory: MapStateFactory, base: int) -> MapStateFactory:
    """Do what Adopt.from_storm does."""
    factory.makeMap().control.create(ControlRecord("log", Token(base, 0), base))
    return factory


def control_key(prefix: str, layout: str) -> bytes:
    return prefix.encode() + b":" * (layout == "string") + CONTROL_KEY


class TestStrings:
    def test_storm_reads_what_we_write(self, bare: RedisServer) -> None:
        committed(opened(bare, "prefix="), record(1), dog=2, katze=1)
        committed(opened(bare, "prefix="), record(2), dog=3)
        with plain(bare.url) as client:
            assert client.mget("dog", "katze") == [b"[2,5,2]", b"[1,1,null]"]

    def test_what_storm_wrote_is_continued(self, bare: RedisServer) -> None:
        with plain(bare.url) as client:
            client.mset({"dog": "[7,5,4]", "katze": "[3,1,null]"})
            counts = taken_over(opened(bare, "prefix="), 7)
            committed(counts, record(8), dog=1)
            assert client.get("dog") == b"[8,6,5]"
        assert found(counts, "dog", "katze") == [6, 1]

    def test_transactional_values_are_storms(self, bare: RedisServer) -> None:
        with plain(bare.url) as client:
            client.set("dog", "[7,5]")
            counts = taken_over(opened(bare, "prefix=&kind=transactional"), 7)
            committed(counts, record(8), dog=1)
            assert client.get("dog") == b"[8,6]"

    def test_plain_values_are_storms(self, bare: RedisServer) -> None:
        with plain(bare.url) as client:
            client.set("dog", "5")
            counts = taken_over(opened(bare, "prefix=&kind=nontransactional"), 7)
            committed(counts, record(8), dog=1)
            assert client.get("dog") == b"6"

    def test_the_prefix_comes_before_the_key(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        committed(opened(redis_server, f"prefix={prefix}"), record(1), dog=2)
        assert client.get(f"{prefix}:dog") == b"[1,2,null]"

    def test_states_of_other_prefixes_keep_apart(self, redis_server: Served, prefix: str) -> None:
        one = opened(redis_server, f"prefix={prefix}")
        other = opened(redis_server, f"prefix={prefix}-other")
        committed(one, record(1), dog=2)
        committed(other, record(1), dog=7)
        assert (found(one, "dog"), found(other, "dog")) == ([2], [7])

    def test_listing_stops_at_the_prefix(self, redis_server: Served, prefix: str) -> None:
        odd = opened(redis_server, f"prefix={quote(prefix + '[*?]')}").store
        near = opened(redis_server, f"prefix={quote(prefix + '*')}").store
        odd.open().multiPut([b"a", b"b:c", b"\0[1]"], [b"1", b"2", b"3"])
        near.open().multiPut([b"x"], [b"4"])
        odd.open().putControl(b"record", None)
        assert sorted(odd.open().entries()) == [(b"\0[1]", b"3"), (b"a", b"1"), (b"b:c", b"2")]


class TestHashes:
    def test_storm_reads_what_we_write(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        committed(opened(redis_server, f"prefix={prefix}&layout=hash"), record(1), dog=2)
        assert client.hgetall(prefix) == {b"dog": b"[1,2,null]"}

    def test_what_storm_wrote_is_continued(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        client.hset(prefix, mapping={"dog": "[7,5,4]", "katze": "[3,1,null]"})
        counts = taken_over(opened(redis_server, f"prefix={prefix}&layout=hash"), 7)
        committed(counts, record(8), dog=1)
        assert client.hgetall(prefix) == {b"dog": b"[8,6,5]", b"katze": b"[3,1,null]"}
        assert found(counts, "dog", "katze") == [6, 1]

    def test_all_entries_are_listed(self, redis_server: Served, prefix: str) -> None:
        backing = opened(redis_server, f"prefix={prefix}&layout=hash").store.open()
        keys = [b"key %d" % number for number in range(3000)]
        backing.multiPut(keys, keys)
        assert sorted(backing.entries()) == sorted(zip(keys, keys, strict=True))


class TestOtherTypes:
    """Something else has written a key of the state: it is named, and left as it is."""

    @pytest.mark.parametrize(
        "options", ["", "&ttl=1000", "&cache_size=9", "&kind=nontransactional"]
    )
    def test_a_list_in_place_of_an_entry(
        self, redis_server: Served, client: Redis, prefix: str, options: str
    ) -> None:
        counts = opened(redis_server, f"prefix={prefix}{options}")
        committed(counts, record(1))
        client.rpush(f"{prefix}:dog", "theirs")
        named = rf"{prefix}:dog' .* it is a list, and has to be a string\. .*delete or rename it"
        with pytest.raises(CorruptStateError, match=named):
            committed(counts, record(2), katze=1, dog=1)
        with pytest.raises(CorruptStateError, match=named):
            found(counts, "dog")
        assert client.lrange(f"{prefix}:dog", 0, -1) == [b"theirs"]
        assert not client.exists(f"{prefix}:katze")

    @pytest.mark.parametrize("options", ["", "&ttl=1000"])
    def test_a_string_in_place_of_the_hash(
        self, redis_server: Served, client: Redis, prefix: str, options: str
    ) -> None:
        client.set(prefix, "5")
        backing = opened(redis_server, f"prefix={prefix}&layout=hash{options}").store.open()
        backing.putControl(b"record", None)
        for use in (
            lambda: backing.multiGet([b"dog"]),
            lambda: backing.multiPut([b"dog"], [b"1"]),
            lambda: backing.multiPutFenced([b"dog"], [b"1"], b"record"),
            lambda: backing.multiRemoveFenced([b"dog"], b"record"),
            lambda: backing.entries(),
        ):
            with pytest.raises(CorruptStateError, match=f"{prefix}' .* string, .* hash.*layout="):
                use()
        assert client.get(prefix) == b"5"

    @LAYOUTS
    def test_a_hash_in_place_of_the_control_record(
        self, redis_server: Served, client: Redis, prefix: str, layout: str
    ) -> None:
        key = control_key(prefix, layout)
        client.hset(key, "theirs", "1")
        options = f"prefix={prefix}&layout={layout}"
        backing = opened(redis_server, f"{options}&wait_replicas=1").store.open()
        for use in (
            lambda: backing.getControl(),
            lambda: backing.putControl(b"record", None),
            lambda: backing.multiPutFenced([b"dog"], [b"1"], b"record"),
            lambda: backing.flush(),
        ):
            with pytest.raises(CorruptStateError, match=r"trident\.control' .* hash, .* string"):
                use()
        assert client.hgetall(key) == {b"theirs": b"1"}
        assert backing.multiGet([b"dog"]) == [None]

    def test_what_expires_during_a_read_is_no_false_alarm(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        class ExpiringLayout(StringLayout):
            def count(self, keys: Sequence[bytes]) -> Command:
                return super().count([*keys, b"dog"])

        client.set(f"{prefix}:dog", "1")
        backing = laid_out(opened(redis_server, f"prefix={prefix}"), ExpiringLayout)
        assert backing.multiGet([b"dog", b"katze"]) == [b"1", None]

    @pytest.mark.parametrize("keys", [1, 100, 101, 5_000])
    def test_a_list_is_found_among_entries_that_are_there_and_others_that_are_not(
        self, redis_server: Served, client: Redis, prefix: str, keys: int
    ) -> None:
        backing = opened(redis_server, f"prefix={prefix}").store.open()
        asked = [b"%d" % number for number in range(keys)]
        written = asked[: keys // 2]
        backing.multiPut(written, written)
        assert backing.multiGet(asked) == written + [None] * (keys - len(written))
        client.rpush(f"{prefix}:{keys - 1}", "theirs")
        with pytest.raises(CorruptStateError, match=f"{prefix}:{keys - 1}' .* it is a list"):
            backing.multiGet(asked)

    def test_of_many_entries_those_that_are_there_are_not_looked_at_again(
        self, redis_server: Served, prefix: str
    ) -> None:
        counted: list[bytes] = []

        class NotingLayout(StringLayout):
            def count(self, keys: Sequence[bytes]) -> Command:
                counted.extend(keys)
                return super().count(keys)

        backing = laid_out(opened(redis_server, f"prefix={prefix}"), NotingLayout)
        asked = [b"%d" % number for number in range(5_000)]
        backing.multiPut(asked[1:], asked[1:])
        assert backing.multiGet(asked) == [None, *asked[1:]]
        assert counted == [b"0"]


class TestControlRecord:
    @LAYOUTS
    def test_it_is_a_string_of_its_own(
        self, redis_server: Served, client: Redis, prefix: str, layout: str
    ) -> None:
        own = record(1)
        written(opened(redis_server, f"prefix={prefix}&layout={layout}"), own, dog=1)
        assert client.get(control_key(prefix, layout)) == own.encode()

    @LAYOUTS
    def test_a_state_is_not_found_in_the_other_layout(
        self, redis_server: Served, prefix: str, layout: str
    ) -> None:
        committed(opened(redis_server, f"prefix={prefix}&layout={layout}"), record(1), dog=1)
        other = "hash" if layout == "string" else "string"
        state = opened(redis_server, f"prefix={prefix}&layout={other}").makeMap()
        with pytest.raises(LostStateError):
            state.control.begin(record(2), following(state.control, record(2), record(1).token))

    def test_among_bare_keys_it_is_bare(self, bare: RedisServer) -> None:
        written(opened(bare, "prefix="), record(1), dog=1)
        with plain(bare.url) as client:
            assert sorted(client.keys()) == [CONTROL_KEY, b"dog"]


class TestExpiry:
    def test_strings_expire_each_by_itself(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        counts = opened(redis_server, f"prefix={prefix}&ttl=1000")
        committed(counts, record(1), dog=1)
        client.expire(f"{prefix}:dog", 10)
        committed(counts, record(2), cat=1)
        assert client.ttl(f"{prefix}:dog") <= 10
        assert 990 <= client.ttl(f"{prefix}:cat") <= 1000

    def test_a_sweep_counts_as_a_write(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        counts = opened(redis_server, f"prefix={prefix}&ttl=1000")
        committed(counts, record(1), cat=1, dog=1)
        written(counts, record(2), dog=4)
        committed(counts, record(2, 1), cow=1)
        for key in "cat", "dog":
            client.expire(f"{prefix}:{key}", 10)
        own = record(3, t2=1)
        driver = written(counts, own)
        sweep(driver, own)
        driver.control.announce(driver.control.ready(own))
        assert client.ttl(f"{prefix}:cat") <= 10
        assert 990 <= client.ttl(f"{prefix}:dog") <= 1000
        assert found(counts, "cat", "cow", "dog") == [1, 1, 1]

    def test_a_hash_expires_as_a_whole(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        counts = opened(redis_server, f"prefix={prefix}&ttl=1000&layout=hash")
        committed(counts, record(1), dog=1)
        client.expire(prefix, 10)
        committed(counts, record(2), cat=1)
        assert 990 <= client.ttl(prefix) <= 1000

    @LAYOUTS
    def test_the_control_record_never_expires(
        self, redis_server: Served, client: Redis, prefix: str, layout: str
    ) -> None:
        committed(
            opened(redis_server, f"prefix={prefix}&ttl=1000&layout={layout}"), record(1), dog=1
        )
        assert client.ttl(control_key(prefix, layout)) == -1

    def test_without_a_ttl_nothing_expires(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        committed(opened(redis_server, f"prefix={prefix}"), record(1), dog=1)
        assert client.ttl(f"{prefix}:dog") == -1

    def test_what_has_expired_counts_from_nothing(
        self, redis_server: Served, client: Redis, prefix: str
    ) -> None:
        counts = opened(redis_server, f"prefix={prefix}&ttl=1000")
        committed(counts, record(1), dog=5)
        client.pexpire(f"{prefix}:dog", 1)
        wait_until(lambda: not client.exists(f"{prefix}:dog"))
        committed(counts, record(2), dog=1)
        assert found(counts, "dog") == [1]


class TestLimits:
    @LAYOUTS
    def test_large_values_go_in_commands_of_their_own(
        self, redis_server: Served, prefix: str, layout: str
    ) -> None:
        backing = opened(redis_server, f"prefix={prefix}&layout={layout}").store.open()
        keys = [b"key %d" % number for number in range(30)]
        values = [bytes([number]) * 1_000_000 for number in range(30)]
        backing.putControl(b"record", None)
        assert backing.multiPutFenced(keys, values, b"record")
        assert backing.multiGet(keys) == values
        assert backing.multiRemoveFenced(keys, b"record")

    @pytest.mark.parametrize("options", ["", "&layout=hash", "&ttl=1000", "&layout=hash&ttl=1000"])
    def test_20_000_keys_at_once(self, redis_server: Served, prefix: str, options: str) -> None:
        backing = opened(redis_server, f"prefix={prefix}{options}").store.open()
        keys = [b"key %d" % number for number in range(20_000)]
        backing.putControl(b"record", None)
        assert backing.multiPutFenced(keys, keys, b"record")
        assert backing.multiGet(keys) == keys
        assert backing.multiPutFenced(keys, keys[::-1], b"record")
        assert backing.multiGet(keys) == keys[::-1]
        assert backing.multiRemoveFenced(keys, b"record")
        assert not any(backing.multiGet(keys))


class TestDatabases:
    def test_each_has_keys_of_its_own(self, redis_server: Served, prefix: str) -> None:
        third = opened(redis_server, f"prefix={prefix}")
        other = state_from_url(f"{redis_server.url}/3?prefix={prefix}")
        assert isinstance(other, MapStateFactory)
        committed(third, record(1), dog=1)
        committed(other, record(1), dog=5)
        assert (found(third, "dog"), found(other, "dog")) == ([1], [5])
        with plain(f"{redis_server.url}/3") as client:
            assert client.get(f"{prefix}:dog") == b"[1,5,null]"
