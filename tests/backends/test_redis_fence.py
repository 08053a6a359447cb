"""A fenced write to Redis takes place under the record it was begun with, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest
from redis import Redis

from tests.backends.redis_batches import add, committed, found, new_prefix, plain, record, written
from trident.backends.redis import sharded_map
from trident.backends.redis.backing_map import RedisMap
from trident.backends.urls import state_from_url
from trident.states import MapStateFactory
from trident.states.errors import StaleBatchError, StateUnavailableError
from trident.states.keys import CONTROL_KEY
from trident.testing.servers.promised import Served

KEYS = [b"key %d" % number for number in range(20_000)]


@pytest.fixture
def factory(redis_server: Served) -> MapStateFactory:
    made = state_from_url(f"{redis_server.url}?prefix={new_prefix()}")
    assert isinstance(made, MapStateFactory)
    return made


@pytest.fixture
def client(redis_server: Served) -> Iterator[Redis]:
    with plain(redis_server.url) as client:
        yield client


def control_of(factory: MapStateFactory) -> bytes:
    return factory.identity[2].encode() + b":" + CONTROL_KEY


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Has something happen between the comparison of the record and the first write."""

    def hook(act: Callable[[], Any], times: int = 1) -> None:
        write_fenced, acts = sharded_map.write_fenced, [act] * times

        def hooked(wires: Any, writes: Any, fence: bytes) -> bool:
            class Disturbed:
                """A server's connection, before whose first transaction `act` takes place."""

                def __init__(self, wire: Any) -> None:
                    self._wire = wire

                def send(self, packed: bytes) -> None:
                    if packed.startswith(b"*1\r\n$5\r\nMULTI") and acts:
                        acts.pop()()
                    self._wire.send(packed)

                def __getattr__(self, name: str) -> Any:
                    return getattr(self._wire, name)

            return write_fenced([Disturbed(wire) for wire in wires], writes, fence)

        monkeypatch.setattr(sharded_map, "write_fenced", hooked)

    return hook


class TestFence:
    def test_a_record_replaced_right_before_the_write_refuses_it(
        self, factory: MapStateFactory, client: Redis, between: Callable[..., None]
    ) -> None:
        backing = factory.store.open()
        backing.putControl(b"one", None)
        between(lambda: client.set(control_of(factory), "two"))
        assert backing.multiPutFenced(KEYS, KEYS, b"one") is False
        assert backing.multiGet(KEYS) == [None] * len(KEYS)

    def test_a_record_deleted_right_before_the_write_refuses_it(
        self, factory: MapStateFactory, client: Redis, between: Callable[..., None]
    ) -> None:
        backing = factory.store.open()
        backing.putControl(b"one", None)
        between(lambda: client.delete(control_of(factory)))
        assert backing.multiRemoveFenced(KEYS, b"one") is False

    def test_a_record_written_again_as_it_was_refuses_nothing(
        self, factory: MapStateFactory, client: Redis, between: Callable[..., None]
    ) -> None:
        backing = factory.store.open()
        backing.putControl(b"one", None)
        between(lambda: client.set(control_of(factory), "one"))
        assert backing.multiPutFenced(KEYS, KEYS, b"one") is True
        assert backing.multiGet(KEYS) == KEYS

    def test_a_record_that_is_written_again_and_again_fails_the_attempt(
        self, factory: MapStateFactory, client: Redis, between: Callable[..., None]
    ) -> None:
        backing = factory.store.open()
        backing.putControl(b"one", None)
        between(lambda: client.set(control_of(factory), "one"), times=100)
        with pytest.raises(StateUnavailableError, match="redis at .*written again, unchanged"):
            backing.multiPutFenced(KEYS[:1], KEYS[:1], b"one")
        assert backing.multiGet(KEYS[:1]) == [None]

    def test_a_record_replaced_and_put_back_refuses_nothing(
        self, factory: MapStateFactory, client: Redis, between: Callable[..., None]
    ) -> None:
        backing = factory.store.open()
        backing.putControl(b"one", None)

        def act() -> None:
            client.set(control_of(factory), "two")
            client.set(control_of(factory), "one")

        between(act)
        assert backing.multiPutFenced(KEYS, KEYS, b"one") is True

    def test_a_refused_write_leaves_no_watch_behind(
        self, factory: MapStateFactory, client: Redis
    ) -> None:
        backing = factory.store.open()
        backing.putControl(b"one", None)
        assert backing.multiPutFenced([b"dog"], [b"1"], b"two") is False
        client.set(control_of(factory), "two")
        assert backing.multiPutFenced([b"dog"], [b"1"], b"two") is True

    def test_whoever_is_overtaken_meanwhile_writes_no_more(
        self, factory: MapStateFactory, redis_server: Served
    ) -> None:
        """Two who write the same keys, one of them under a record that is replaced under way."""
        mine, begun = factory.store.open(), Event()
        mine.putControl(b"one", None)
        refused: list[bool] = []

        def write() -> None:
            late = factory.store.open()
            while True:
                accepted = late.multiPutFenced(KEYS, [b"late"] * len(KEYS), b"one")
                begun.set()
                if not accepted:
                    refused.append(True)
                    return

        writer = Thread(target=write)
        writer.start()
        assert begun.wait(30)
        assert mine.putControl(b"two", b"one")
        assert mine.multiPutFenced(KEYS, [b"mine"] * len(KEYS), b"two")
        writer.join(30)
        assert refused == [True]
        assert mine.multiGet(KEYS) == [b"mine"] * len(KEYS)


class TestBatches:
    def test_a_task_of_an_earlier_attempt_is_stopped(self, factory: MapStateFactory) -> None:
        late = factory.makeMap()
        committed(factory, record(1), dog=1)
        driver = written(factory, record(2), dog=10)
        driver.control.begin(record(2, 1))
        with pytest.raises(StaleBatchError):
            add(late, record(2), dog=10)
        add(factory.makeMap(), record(2, 1), dog=100)
        driver.control.announce(driver.control.ready(record(2, 1)))
        assert found(factory, "dog") == [101]

    def test_two_copies_of_a_task_write_the_same(self, factory: MapStateFactory) -> None:
        committed(factory, record(1), dog=1)
        driver = written(factory, record(2), dog=10)
        add(factory.makeMap(), record(2), dog=10)
        driver.control.announce(driver.control.ready(record(2)))
        assert found(factory, "dog") == [11]

    def test_a_map_may_be_used_after_it_was_closed(self, factory: MapStateFactory) -> None:
        backing = factory.store.open()
        assert isinstance(backing, RedisMap)
        backing.putControl(b"one", None)
        backing.close()
        backing.close()
        assert backing.multiPutFenced([b"dog"], [b"1"], b"one")
