"""What the tests of Redis share: a plain client beside the state, and whole batches of counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from redis import Redis

from trident.operations.builtin import Count
from trident.states import MapStateFactory
from trident.states.control import ControlRecord
from trident.states.keys import encode_keys
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token

_NUMBERS = count()


def new_prefix() -> str:
    """Return a prefix that no other test of the shared server has."""
    return f"state-{next(_NUMBERS)}"


@contextmanager
def plain(url: str) -> Iterator[Redis]:
    """Connect as any other program does."""
    client = Redis.from_url(url)
    yield client
    client.close()


def record(txid: int, attempt: int = 0, **retried: int) -> ControlRecord:
    """Return the record of an attempt; retried batches are written ``t3=1``."""
    known = {int(name[1:]): attempt for name, attempt in retried.items()}
    return ControlRecord("log", Token(txid, attempt), txid - 1, known)


def written(factory: MapStateFactory, own: ControlRecord, **counts: int) -> StoredMap:
    """Begin an attempt, add counts to what is there, and leave it before it is confirmed."""
    driver = factory.makeMap()
    driver.control.begin(own)
    task = factory.makeMap()
    add(task, own, **counts)
    return driver


def add(task: StoredMap, own: ControlRecord, **counts: int) -> None:
    """Do what a task does of an attempt that has begun."""
    task.beginCommit(own)
    task.multiFold(encode_keys((key,) for key in counts), list(counts.values()), Count())
    task.commit(own)


def committed(factory: MapStateFactory, own: ControlRecord, **counts: int) -> None:
    """Run a whole batch."""
    driver = written(factory, own, **counts)
    assert driver.control.announce(driver.control.ready(own))


def found(factory: MapStateFactory, *keys: Any) -> list[Any]:
    """Return what a reader elsewhere finds."""
    return factory.makeState().multiGet([(key,) for key in keys])
