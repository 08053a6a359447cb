"""A Redis that answers, but takes no writes: it is full, lets nobody in, or follows another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.faults.replication import offset
from tests.faults.word_count import WordCount, assert_told, at, when_waiting
from tests.servers.redis import RedisReplica
from trident.backends import redis
from trident.batch.errors import OutageError
from trident.errors import StateUnavailableError
from trident.testing.servers.process import wait_until
from trident.testing.servers.redis import RedisServer


def place(server: RedisServer) -> str:
    """Return how errors name a server."""
    return f"redis at {server.host}:{server.port}"


def test_a_full_redis_fails_the_batch_until_it_has_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer(tmp_path / "redis") as server:
        words = WordCount(redis.opaque(server.host, server.port), tmp_path, batches=3, size=16_000)

        def fill() -> None:
            used = re.search(r"used_memory:(\d+)", server.cli("info", "memory"))
            assert used is not None
            server.cli("config", "set", "maxmemory", str(int(used[1]) + 100_000))

        def make_room() -> None:
            server.cli("config", "set", "maxmemory", "100mb")

        with at("before write", 2, 0, fill), at("before begin", 2, 1, make_room):
            assert words.run() == {2: 2}
        assert_told(caplog, place(server), "Raise maxmemory")
        assert words.counted_all()


def test_a_redis_that_stays_full_stops_the_run_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server:
        words = WordCount(redis.opaque(server.host, server.port), tmp_path)
        with (
            at("before write", 2, 0, lambda: server.cli("config", "set", "maxmemory", "1")),
            pytest.raises(OutageError, match=f"{place(server)}: it is full.*Raise maxmemory"),
        ):
            words.run(patience=0.1)
        assert words.counted() == words.size
        server.cli("config", "set", "maxmemory", "0")
        words.run()
        assert words.counted_all()


SECRET = "swordfish-77"


def test_a_wrong_password_is_told_at_start_and_never_shown(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", password="right") as server:
        factory = redis.opaque(server.host, server.port, user="reader", password=SECRET)
        words = WordCount(factory, tmp_path)
        began = monotonic()
        with pytest.raises(StateUnavailableError, match="it refuses the user") as refused:
            words.start()
        assert monotonic() - began < 3
        assert place(server) in str(refused.value)
        assert "Check password=, and user=, which is reader" in str(refused.value)
        assert SECRET not in str(refused.value) + repr(refused.value) + repr(factory)


def change_password(server: RedisServer, password: str) -> None:
    """Change it, and have every client log in again."""
    server.cli("config", "set", "requirepass", password)
    server.password = password
    server.cli("client", "kill", "type", "normal")


def test_a_password_that_is_changed_and_changed_back_costs_an_attempt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer(tmp_path / "redis", password=SECRET) as server:
        factory = redis.opaque(server.host, server.port, password=SECRET)
        words = WordCount(factory, tmp_path)
        with (
            at("before write", 2, 0, lambda: change_password(server, "another")),
            when_waiting(lambda: change_password(server, SECRET)),
        ):
            assert words.run() == {2: 2}
        assert_told(caplog, place(server), "")
        assert SECRET not in caplog.text
        assert words.counted_all()


def test_a_password_that_stays_changed_stops_the_run_and_a_start_with_the_new_one_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with RedisServer(tmp_path / "redis", password=SECRET) as server:
        words = WordCount(redis.opaque(server.host, server.port, password=SECRET), tmp_path)
        with (
            at("before write", 2, 0, lambda: change_password(server, "another")),
            pytest.raises(OutageError, match="Check password=, and user=") as stopped,
        ):
            words.run(patience=0.1)
        assert place(server) in str(stopped.value)
        assert SECRET not in str(stopped.value) + caplog.text
        words = WordCount(redis.opaque(server.host, server.port, password="another"), tmp_path)
        assert words.counted() == words.size
        words.run()
        assert words.counted_all()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    """A master and its replica."""
    with (
        RedisServer(tmp_path / "one") as one,
        RedisReplica(tmp_path / "other", one) as other,
    ):
        yield one, other


def swap(master: RedisServer, replica: RedisServer) -> None:
    """Let the two take each other's role, with nothing lost."""
    wait_until(lambda: offset(master) == offset(replica))
    replica.cli("replicaof", "no", "one")
    master.cli("replicaof", replica.host, str(replica.port))
    wait_until(lambda: "master_link_status:up" in master.cli("info", "replication"))


def test_a_server_that_became_a_replica_takes_the_batch_when_it_is_the_master_again(
    pair: tuple[RedisServer, RedisServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = pair
    words = WordCount(redis.opaque(one.host, one.port), tmp_path)
    with (
        at("before write", 2, 0, lambda: swap(one, other)),
        at("before begin", 2, 1, lambda: swap(other, one)),
    ):
        assert words.run() == {2: 2}
    assert_told(caplog, place(one), "Give the address of its master")
    assert words.counted_all()


def test_a_server_that_stays_a_replica_stops_the_run_and_a_start_with_its_master_goes_on(
    pair: tuple[RedisServer, RedisServer], tmp_path: Path
) -> None:
    one, other = pair
    words = WordCount(redis.opaque(one.host, one.port), tmp_path)
    told = f"{place(one)}: .*Give the address of its master"
    with (
        at("before write", 2, 0, lambda: swap(one, other)),
        pytest.raises(OutageError, match=told),
    ):
        words.run(patience=0.1)
    words = WordCount(redis.opaque(other.host, other.port), tmp_path)
    assert words.counted() == words.size
    words.run()
    assert words.counted_all()
