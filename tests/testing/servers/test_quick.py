"""A quick run starts no server, whatever test asks for one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trident.testing.servers.hbase import HBaseServer
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.mariadb import MariaDBServer
from trident.testing.servers.memcached import MemcachedServer, MemcachedServers
from trident.testing.servers.postgres import PostgresServer
from trident.testing.servers.process import QUICK, MissingServer
from trident.testing.servers.promised import served
from trident.testing.servers.redis import RedisCluster, RedisServer
from trident.testing.servers.seaweedfs import SeaweedServer
from trident.testing.servers.zookeeper import ZooKeeperServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUICK, "1")
    monkeypatch.setattr(subprocess, "Popen", NotImplemented)


@pytest.mark.parametrize(
    "kind",
    [
        *(RedisServer, RedisCluster, MemcachedServer, MemcachedServers, HBaseServer, KafkaServer),
        *(MariaDBServer, PostgresServer, SeaweedServer, ZooKeeperServer),
    ],
)
def test_no_server_is_to_be_had(kind: type[RedisServer], tmp_path: Path) -> None:
    with pytest.raises(MissingServer, match="needs a server"), kind(tmp_path / "server"):
        pass


def test_nor_is_one_that_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIDENT_TEST_REDIS_URL", "redis://localhost:6379")
    with (
        pytest.raises(MissingServer, match="needs a server"),
        served("REDIS", lambda: pytest.fail("it is promised")),
    ):
        pass
