"""Servers that are not there when a topology starts."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.faults.word_count import WordCount
from trident.backends import hbase, memcached, postgres, redis
from trident.errors import StateUnavailableError
from trident.states.maps.factory import MapStateFactory
from trident.testing.servers.process import free_port

STORES: dict[str, tuple[Callable[[str, int], MapStateFactory], str, str]] = {
    # Redis waits `timeout` for its login, 5 s by default, at each node that it asks.
    "redis": (
        lambda host, port: redis.opaque(host, port, timeout=2),
        "redis at",
        "apt-get install redis-server",
    ),
    "redis cluster": (
        lambda host, port: redis.opaque(cluster=[(host, port), (host, port)], timeout=1),
        "redis cluster at",
        "apt-get install redis-server",
    ),
    "redis sentinel": (
        lambda host, port: redis.opaque(sentinels=[(host, port), (host, port)], service="counts"),
        "redis service 'counts' of the sentinels",
        "apt-get install redis-sentinel",
    ),
    "memcached": (
        lambda host, port: memcached.opaque([f"{host}:{port}"]),
        "memcached at",
        "apt-get install memcached",
    ),
    "hbase": (hbase.opaque, "hbase at", "hbase thrift start"),
    "postgresql": (
        lambda host, port: postgres.opaque(host, port=port),
        "postgresql at",
        "apt-get install postgresql",
    ),
}


@pytest.fixture(params=STORES)
def unreachable(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


def start(folder: Path, kind: str, port: int) -> str:
    """Return what a start says that finds no server, within 3 seconds."""
    make, place, _ = STORES[kind]
    words = WordCount(make("127.0.0.1", port), folder)
    began = monotonic()
    with pytest.raises(StateUnavailableError) as failed:
        words.start()
    assert monotonic() - began < 3
    assert str(failed.value).startswith(place)
    assert f"127.0.0.1:{port}" in str(failed.value)
    return str(failed.value)


def test_a_refused_port_is_told_at_once_with_the_way_to_start_a_server(
    unreachable: str, tmp_path: Path
) -> None:
    assert STORES[unreachable][2] in start(tmp_path, unreachable, free_port())


@pytest.fixture
def silent() -> Iterator[int]:
    """A port where connections are taken and nobody ever answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_port_where_nobody_answers_is_told_within_three_seconds(
    unreachable: str, silent: int, tmp_path: Path
) -> None:
    start(tmp_path, unreachable, silent)


@pytest.fixture
def full() -> Iterator[int]:
    """A port where no more connections are taken."""
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as listening,
        socket.create_connection(listening.getsockname()),
    ):
        yield listening.getsockname()[1]


def test_a_port_that_takes_no_connection_is_told_within_three_seconds(
    unreachable: str, full: int, tmp_path: Path
) -> None:
    start(tmp_path, unreachable, full)
