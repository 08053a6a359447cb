"""A server that is killed with -9 while a batch is written to it, and started again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy
from tests.faults.word_count import WordCount, assert_told, at, when_waiting
from trident.backends import hbase, redis
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.process import ServerProcess, wait_until
from trident.testing.servers.redis import RedisServer

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def kill_and_restart(words: WordCount, server: ServerProcess, proxy: Proxy, write: bytes) -> None:
    """Count, and have the second write of a batch of several find nobody."""
    written = []

    def restart() -> None:
        wait_until(lambda: server.process is None)
        server.start()
        written.append(words.written(2))

    with (
        at("before write", 2, 0, lambda: proxy.when_asked(write, server.kill, times=2)),
        when_waiting(restart),
    ):
        assert words.run() == {2: 2}
    assert 0 < written[0] < 1, "the server wasn't killed in the middle of the write"
    assert words.counted_all()


def test_a_redis_killed_in_the_middle_of_a_write_and_restarted_counts_every_word_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        RedisServer(tmp_path / "redis", *DURABLE) as server,
        Proxy(server.host, server.port) as proxy,
    ):
        words = WordCount(redis.opaque(proxy.host, proxy.port), tmp_path, batches=3, size=16_000)
        kill_and_restart(words, server, proxy, b"MULTI")
        assert_told(caplog, f"redis at {proxy.host}:{proxy.port}", "Look at its log")


def test_an_hbase_killed_in_the_middle_of_a_write_and_restarted_counts_every_word_once(
    own_hbase: HBaseServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Proxy(own_hbase.host, own_hbase.port) as proxy:
        factory = hbase.opaque(proxy.host, proxy.port, prefix="killed", timeout=60.0)
        words = WordCount(factory, tmp_path, batches=3, size=4000)
        with closing(factory.store.open()) as backing:
            before = backing.incarnation()
            kill_and_restart(words, own_hbase, proxy, b"mutateRowsTs")
            assert backing.incarnation() != before, "ready would not notice a restart"
        assert_told(caplog, f"hbase at {proxy.host}:{proxy.port}", "Look at the gateway's log")
