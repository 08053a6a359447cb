"""Writes that arrive late, with an old token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Store
from tests.faults.servers import own
from tests.faults.word_count import WordCount, assert_told, at
from tests.servers.memcached import MemcachedServers
from tests.servers.redis import RedisCluster
from trident.backends import memcached, redis
from trident.states import OpaqueMap
from trident.states.stack import MapStateFactory
from trident.states.testing.misfortunes import UnluckyStore


def begun(store: Store, late: Callable[[], object]) -> AbstractContextManager[None]:
    """When the next attempt has begun, and has not read yet."""
    return at("before write", 2, 1, late)


def reading(store: Store, late: Callable[[], object]) -> AbstractContextManager[None]:
    """When the next attempt has read, and is about to write."""
    return at("before write", 2, 1, lambda: store.proxy.when_asked(store.kind.write, late))


def announced(store: Store, late: Callable[[], object]) -> AbstractContextManager[None]:
    """When the next attempt is committed and the next batch has begun."""
    return at("before write", 3, 0, late)


@pytest.mark.parametrize("moment", [begun, reading, announced])
def test_a_write_that_was_held_up_on_its_way_counts_nothing(
    store: Store,
    moment: Callable[[Store, Callable[[], object]], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    hold = partial(store.proxy.hold_when_asked, store.kind.write)
    with at("before write", 2, 0, hold), moment(store, store.proxy.release):
        assert store.words.run() == {2: 2}
    assert_told(caplog, store.place, store.kind.silent)
    assert store.words.counted_all()


@pytest.fixture(params=["redis cluster", "redis cluster cached", "memcached nodes"])
def spread(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MapStateFactory]:
    """A state on several servers, which may have its writes held back."""
    made: Any
    if request.param == "memcached nodes":
        made = own(lambda: MemcachedServers(tmp_path / "memcached"))
    else:
        made = own(lambda: RedisCluster(tmp_path / "redis"))
    with made as servers:
        nodes = [(node.host, node.port) for node in servers.nodes]
        if request.param == "memcached nodes":
            yield memcached.opaque([f"{host}:{port}" for host, port in nodes])
        else:
            cache_size = 1000 if "cached" in request.param else 0
            yield redis.opaque(cluster=nodes, cache_size=cache_size)


@pytest.mark.parametrize("late", [("before write", 2, 1), ("before write", 3, 0)])
def test_a_writer_on_several_servers_that_was_held_back_counts_nothing(
    spread: MapStateFactory, late: tuple[str, int, int], tmp_path: Path
) -> None:
    with closing(UnluckyStore(spread.named("count").store.open)) as store:
        factory = OpaqueMap.factory(store.open, name=tmp_path.name, cache_size=spread.cache_size)
        words = WordCount(factory, tmp_path)
        with at("before write", 2, 0, store.hold), at(*late, store.release):
            assert words.run() == {2: 2}
        assert not store.held
        assert words.counted_all()
