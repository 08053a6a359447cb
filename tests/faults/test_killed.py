"""A server that is killed with -9 while a batch is written to it, and started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.proxy import Proxy
from tests.faults.servers import own
from tests.faults.word_count import WordCount, assert_told, at
from tests.servers.redis import RedisServer
from trident.backends import redis

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def test_a_redis_killed_in_the_middle_of_a_write_and_restarted_counts_every_word_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        own(lambda: RedisServer(tmp_path / "redis", *DURABLE)) as server,
        Proxy(server.host, server.port) as proxy,
    ):
        # A batch takes several transactions; the second finds nobody.
        words = WordCount(redis.opaque(proxy.host, proxy.port), tmp_path, batches=3, size=16_000)
        entries = []

        def start_write() -> None:
            entries.append(int(server.cli("dbsize")))
            proxy.when_asked(b"MULTI", server.kill, times=2)

        def restart() -> None:
            server.start()
            entries.append(int(server.cli("dbsize")))

        with at("before write", 2, 0, start_write), at("before begin", 2, 1, restart):
            assert words.run() == {2: 2}
        assert entries[0] < entries[1], "nothing was written before the end"
        assert_told(caplog, f"redis at {proxy.host}:{proxy.port}", "Look at its log")
        assert words.counted_all()
