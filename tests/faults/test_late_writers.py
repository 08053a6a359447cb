"""Writes that arrive late, with an old token."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.faults.conftest import Store
from tests.faults.word_count import WordCount, assert_told, at
from trident.backends.urls import state_from_url
from trident.states import OpaqueMap
from trident.states.maps.factory import MapStateFactory
from trident.states.testing.unlucky import UnluckyStore


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


SPREAD = {
    "redis cluster": "redis_cluster",
    "memcached nodes": "memcached_servers",
}


@pytest.fixture(params=SPREAD)
def spread(request: pytest.FixtureRequest) -> MapStateFactory:
    """A state on several servers."""
    url = request.getfixturevalue(SPREAD[request.param]).url
    factory: Any = state_from_url(f"{url}?prefix={uuid4().hex}")
    assert isinstance(factory, MapStateFactory)
    return factory


@pytest.mark.parametrize("late", [("before write", 2, 1), ("before write", 3, 0)])
def test_a_writer_on_several_servers_that_was_held_back_counts_nothing(
    spread: MapStateFactory, late: tuple[str, int, int], tmp_path: Path
) -> None:
    with closing(UnluckyStore(spread.store.open)) as store:
        name = spread.identity[-1]
        factory = OpaqueMap.factory(store.open, name=name)
        words = WordCount(factory, tmp_path)
        with at("before write", 2, 0, store.hold), at(*late, store.release):
            assert words.run() == {2: 2}
        assert not store.held
        assert words.counted_all()
