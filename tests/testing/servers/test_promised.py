"""Which server is served: one that is promised, one that is started, or none, with the reason."""

from __future__ import annotations

import pickle
import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.servers import spark_kafka
from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.java import jars
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.mariadb import MariaDBServer
from trident.testing.servers.memcached import MemcachedServers
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import QUICK, MissingServer, free_port
from trident.testing.servers.promised import BrokenPromise, Served, served
from trident.testing.servers.redis import RedisCluster, RedisServer
from trident.testing.servers.seaweedfs import SeaweedServer
from trident.testing.servers.zookeeper import ZooKeeperServer


@pytest.fixture(autouse=True)
def machine_without_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    for name in ("CI", "JAVA_HOME", "TRIDENT_TEST_REDIS_URL", QUICK):
        monkeypatch.delenv(name, raising=False)


def need(made: Callable[[], AbstractContextManager[Served]]) -> None:
    with served("REDIS", made):
        pass


@pytest.mark.parametrize(
    "kind",
    [
        *(RedisServer, RedisCluster, MemcachedServers, HBaseServer, KafkaServer, PostgresServer),
        *(MariaDBServer, SeaweedServer, ZooKeeperServer),
    ],
)
def test_a_missing_server_is_told_with_the_ways_to_have_it(
    kind: type[RedisServer], tmp_path: Path
) -> None:
    had = "(On Debian: apt-get|PyPI has it: pip) install"
    told = f"{had} .*. Or name one that runs in TRIDENT_TEST_REDIS_URL"
    with pytest.raises(MissingServer, match=told) as missing:
        need(lambda: kind(tmp_path / "server"))
    assert str(pickle.loads(pickle.dumps(missing.value))) == str(missing.value)


@pytest.mark.parametrize("url", ["redis://:secret@{}/0?a=b", "redis://{}"])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "nowhere.invalid"])
def test_a_promised_server_that_is_not_there_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, host: str
) -> None:
    place = f"{host}:{free_port()}"
    monkeypatch.setenv("TRIDENT_TEST_REDIS_URL", url.format(place))
    with pytest.raises(BrokenPromise, match=f"none is at {re.escape(place)}; ") as broken:
        need(lambda: RedisServer(tmp_path / "server"))
    assert "secret" not in str(broken.value)
    assert str(pickle.loads(pickle.dumps(broken.value))) == str(broken.value)


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
    with pytest.raises(MissingServer, match="Maven collects them, once: mvn"):
        spark_kafka.jars()


def test_jars_that_are_missing_are_told_with_the_commands_that_collect_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "the cache"))
    maven = tmp_path / "mvn"
    collect = 'test -f "$3" && for last; do :; done && /bin/mkdir -p "${last#*=}"'
    maven.write_text(f"#!/bin/sh\n{collect}\n")
    maven.chmod(0o755)
    (tmp_path / "mv").symlink_to("/bin/mv")
    with pytest.raises(MissingServer) as missing:
        jars("kafka")
    _, commands = missing.value.advice.split("once: ")
    subprocess.run(["/bin/sh", "-c", commands], check=True)
    assert jars("kafka").is_dir()
