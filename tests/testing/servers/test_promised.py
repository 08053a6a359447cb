"""What becomes of a test whose server is promised, installed, or missing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from trident.testing.servers import spark_kafka
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.memcached import MemcachedServers
from trident.testing.servers.ports import free_port
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import QUICK, MissingServer
from trident.testing.servers.promised import Served, served
from trident.testing.servers.redis import RedisCluster, RedisServer


@pytest.fixture(autouse=True)
def machine_without_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CI", "JAVA_HOME", "TRIDENT_TEST_REDIS_URL", QUICK):
        monkeypatch.delenv(name, raising=False)


def need(made: Callable[[], AbstractContextManager[Served]]) -> None:
    with served("REDIS", made):
        pass


@pytest.mark.parametrize(
    "kind",
    [RedisServer, RedisCluster, MemcachedServers, HBaseServer, KafkaServer, PostgresServer],
)
def test_a_missing_server_skips_with_the_reason(kind: type[RedisServer], tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match="setup/servers"):
        need(lambda: kind(tmp_path / "server"))


def test_a_missing_server_fails_in_ci(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="CI is true.*redis-server is not installed"):
        need(lambda: RedisServer(tmp_path / "server"))


@pytest.mark.parametrize("url", ["redis://:secret@127.0.0.1:{}/0?a=b", "redis://127.0.0.1:{}"])
def test_a_promised_server_that_is_not_there_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    port = free_port()
    monkeypatch.setenv("TRIDENT_TEST_REDIS_URL", url.format(port))
    with pytest.raises(pytest.fail.Exception, match=f"none is at 127.0.0.1:{port}; ") as failed:
        need(lambda: RedisServer(tmp_path / "server"))
    assert "secret" not in str(failed.value)


def test_a_promised_server_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def made() -> RedisServer:
        raise AssertionError("a server is promised, and none may be started")

    monkeypatch.setenv("TRIDENT_TEST_REDIS_URL", "redis:///run/redis.sock")
    with served("REDIS", made) as server:
        assert server.url == "redis:///run/redis.sock"


def test_a_java_without_a_compiler_is_not_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jre"))
    with pytest.raises(MissingServer, match="needs a JDK"):
        HBaseServer(tmp_path / "server").start()


def test_a_session_whose_jars_are_missing_is_made_without_and_tells_whoever_needs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert spark_kafka.settings() == {}
    with pytest.raises(MissingServer, match="setup/servers"):
        spark_kafka.jars()
