"""How state in Redis connects, and what it says of a server that it can't use."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.redis_batches import committed, found, new_prefix, plain, record, written
from tests.backends.redis_replies import Replies
from tests.servers.certificates import Certificates, make_certificates
from tests.servers.redis import RedisReplica, SecureRedisServer
from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.redis import connections
from trident.backends.redis.connections import ConnectionOptions, connected
from trident.backends.redis.masters import SentinelMaster
from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.states import MapStateFactory
from trident.states.errors import NoStateError, StateUnavailableError
from trident.testing.servers.process import free_port, wait_until
from trident.testing.servers.promised import Served
from trident.testing.servers.redis import RedisServer


def opened(url: str, options: str = "") -> MapStateFactory:
    factory = state_from_url(f"{url}?prefix={new_prefix()}{options}")
    assert isinstance(factory, MapStateFactory)
    return factory


def problem(factory: MapStateFactory) -> str:
    """Return what a batch fails with, after which it is retried."""
    with pytest.raises(StateUnavailableError) as caught:
        committed(factory, record(1), dog=1)
    return str(caught.value)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server of its own, to be hurt."""
    with RedisServer(tmp_path / "server") as server:
        yield server


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[RedisServer]:
    folder = tmp_path_factory.mktemp("guarded")
    with SecureRedisServer(folder, "hunter2", certificates) as server:
        yield server


class TestTLSAndPassword:
    def test_they_let_us_in(self, guarded: RedisServer, certificates: Certificates) -> None:
        counts = opened(guarded.url, f"&tls_ca={certificates.authority}")
        committed(counts, record(1), dog=2)
        assert found(counts, "dog") == [2]

    def test_a_user_has_a_name_of_its_own(self, server: RedisServer) -> None:
        server.cli("acl", "setuser", "counter", "on", ">hunter2", "~*", "+@all")
        url = server.url.replace("redis://", "redis://counter:hunter2@")
        committed(opened(url), record(1), dog=2)

    def test_a_certificate_of_somebody_else_is_refused(self, guarded: RedisServer) -> None:
        assert "tls_ca=" in problem(opened(guarded.url))

    def test_a_server_without_tls(self, redis_server: Served) -> None:
        text = problem(opened(redis_server.url.replace("redis://", "rediss://"), "&timeout=0.5"))
        assert "whether the port speaks TLS" in text

    def test_a_wrong_password_is_not_shown(
        self, guarded: RedisServer, certificates: Certificates
    ) -> None:
        url = guarded.url.replace("hunter2", "guessed")
        text = problem(opened(url, f"&tls_ca={certificates.authority}"))
        assert f"redis at {guarded.host}:{guarded.port}: it refuses the user or the" in text
        assert "guessed" not in text

    def test_no_password(self, guarded: RedisServer, certificates: Certificates) -> None:
        url = guarded.url.replace(":hunter2@", "")
        text = problem(opened(url, f"&tls_ca={certificates.authority}"))
        assert "it wants a password" in text

    def test_a_password_too_many(self, server: RedisServer) -> None:
        text = problem(opened(server.url.replace("redis://", "redis://:hunter2@")))
        assert "it has no password" in text
        assert "hunter2" not in text

    def test_a_user_who_may_too_little(self, server: RedisServer) -> None:
        server.cli("acl", "setuser", "guest", "on", ">hunter2", "~*", "+get", "+info", "+select")
        text = problem(opened(server.url.replace("redis://", "redis://guest:hunter2@")))
        assert "ACL SETUSER" in text

    def test_a_server_that_repeats_the_password_is_not_repeated(self) -> None:
        with Replies(b"-ERR unknown command 'AUTH', with args: 'hunter2'\r\n") as server:
            url = server.url.replace("redis://", "redis://:hunter2@")
            with pytest.raises(StateUnavailableError) as caught:
                opened(url).store.open().getControl()
        assert "with args: '***'" in str(caught.value)
        assert caught.value.__cause__ is None


class TestUnreachable:
    def test_nobody_listens(self) -> None:
        port = free_port()
        text = problem(opened(f"redis://127.0.0.1:{port}"))
        assert f"redis at 127.0.0.1:{port}: nothing listens there" in text
        assert f"redis-server --port {port} (Debian: apt-get install redis-server)" in text
        assert f"docker run -p {port}:6379 redis" in text

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "url",
        [
            pytest.param("redis://192.0.2.1", id="one server"),
            pytest.param("redis+cluster://192.0.2.1,192.0.2.2,192.0.2.3", id="a cluster"),
            pytest.param("redis+sentinel://192.0.2.1,192.0.2.2,192.0.2.3/main", id="sentinels"),
        ],
    )
    def test_a_machine_out_of_reach_is_known_within_3_seconds(self, url: str) -> None:
        start = time.monotonic()
        assert "192.0.2.1:" in problem(opened(url))
        assert time.monotonic() - start < 3

    def test_the_login_too_is_answered_in_time(self) -> None:
        start = time.monotonic()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            text = problem(opened(f"redis://127.0.0.1:{silent.getsockname()[1]}", "&timeout=0.5"))
        assert "no answer in time" in text
        assert 0.5 < time.monotonic() - start < 2.5

    def test_an_unknown_host(self) -> None:
        assert "redis at nowhere.invalid:6379" in problem(opened("redis://nowhere.invalid"))

    def test_something_that_is_no_redis(self) -> None:
        with Replies(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
            assert "no Redis" in problem(opened(server.url))

    def test_a_database_that_is_not_there(self, redis_server: Served) -> None:
        assert "it has no database of that number" in problem(opened(f"{redis_server.url}/9999"))

    def test_a_single_server_given_as_a_cluster(self, server: RedisServer) -> None:
        text = problem(opened(server.url.replace("redis://", "redis+cluster://")))
        assert "redis://" in text
        assert "it is not a node of a cluster" in text

    def test_a_cluster_given_as_a_single_server(self, redis_cluster: Served) -> None:
        [first, *_] = redis_cluster.url.replace("redis+cluster://", "redis://").split(",")
        backing = opened(first).store.open()
        with pytest.raises(StateUnavailableError, match="redis\\+cluster://"):
            backing.multiGet([b"dog", b"cat"])
        with pytest.raises(StateUnavailableError, match="redis\\+cluster://"):
            list(map(backing.multiGet, ([b"key %d" % number] for number in range(50))))


class TestTroubled:
    def test_a_full_server_takes_the_batch_again_when_it_has_room(
        self, server: RedisServer
    ) -> None:
        counts = opened(server.url)
        committed(counts, record(1), dog=1)
        server.cli("config", "set", "maxmemory", "1")
        text = problem_of_retry(counts)
        assert f"redis at {server.host}:{server.port}: it is full" in text
        assert "noeviction" in text
        server.cli("config", "set", "maxmemory", "0")
        committed(counts, record(2, 1), dog=1)
        assert found(counts, "dog") == [2]

    def test_a_server_that_fills_up_during_the_batch(self, server: RedisServer) -> None:
        counts = opened(server.url)
        driver = counts.makeMap()
        driver.control.begin(record(1))
        server.cli("config", "set", "maxmemory", "1")
        with pytest.raises(StateUnavailableError, match="it is full"):
            driver.backing.multiPutFenced([b"dog"], [b"1"], record(1).encode())
        with pytest.raises(StateUnavailableError, match="it is full"):
            opened(server.url, "&ttl=10").store.open().multiPut([b"dog"], [b"1"])

    def test_a_paused_server_is_given_up_and_found_again(self, server: RedisServer) -> None:
        counts = opened(server.url, "&timeout=0.3")
        committed(counts, record(1), dog=1)
        server.pause()
        assert "no answer in time" in problem_of_retry(counts)
        server.resume()
        committed(counts, record(2, 1), dog=1)
        assert found(counts, "dog") == [2]

    def test_an_answer_may_take_longer_than_a_connection(self) -> None:
        options = ConnectionOptions(connect=0.1, timeout=10.0)
        with (
            Replies(b"+PONG\r\n", pause=0.3) as server,
            connected((server.host, server.port), options) as wire,
        ):
            assert wire.ask(["PING"]) == [b"PONG"]

    def test_a_connection_that_is_used_again_is_as_patient(self, server: RedisServer) -> None:
        options = ConnectionOptions(connect=0.1, timeout=10.0)
        address = (server.host, server.port)
        with connected(address, options) as wire:
            [first] = wire.ask(["CLIENT", "ID"])
        with connected(address, options) as wire:
            assert wire.ask(["CLIENT", "ID"]) == [first]
            assert wire.ask(["BLPOP", "nothing", "0.3"]) == [None]

    def test_a_connection_cut_in_the_middle_of_an_answer(self) -> None:
        with (
            Replies(b"*2\r\n$5\r\n[1,2") as server,
            pytest.raises(StateUnavailableError) as caught,
        ):
            opened(server.url).store.open().multiGet([b"dog", b"cat"])
        assert "the connection was cut" in str(caught.value)
        assert "unknown" in str(caught.value)

    def test_a_read_only_replica(self, server: RedisServer, tmp_path: Path) -> None:
        with RedisReplica(tmp_path / "replica", server) as replica:
            assert "its role is slave" in problem(opened(replica.url))
            with pytest.raises(StateUnavailableError, match="read-only replica"):
                opened(replica.url).store.open().multiPut([b"dog"], [b"1"])

    def test_a_master_that_became_a_replica_during_the_batch(
        self, server: RedisServer, tmp_path: Path
    ) -> None:
        counts = opened(server.url)
        driver = written(counts, record(1), dog=1)
        with RedisServer(tmp_path / "other") as other:
            server.cli("replicaof", other.host, str(other.port))
            with pytest.raises(StateUnavailableError, match=f"redis at {server.host}"):
                driver.control.ready(record(1))

    @pytest.mark.parametrize(
        ("reply", "text"),
        [
            (b"-LOADING Redis is loading the dataset in memory", "it is still loading its data"),
            (b"-MISCONF Redis is configured to save RDB snapshots", "is its disk full"),
            (b"-NOREPLICAS Not enough good replicas to write.", "min-replicas-to-write"),
            (b"-MASTERDOWN Link with MASTER is down", "lost its master"),
            (b"-CLUSTERDOWN The cluster is down", "redis-cli --cluster check"),
            (b"-MOVED 5 127.0.0.1:7001", "new map"),
            (b"-ASK 5 127.0.0.1:7001", "new map"),
            (b"-TRYAGAIN Multiple keys request during rehashing of slot", "new map"),
            (b"-ERR Script attempted to access a non local key in a cluster node", "new map"),
            (b"-BUSY Redis is busy running a script.", "script kill"),
            (b"-ERR max number of clients reached", "maxclients"),
            (b"-ERR something new", "it answered: something new"),
        ],
    )
    def test_what_servers_rarely_say(self, reply: bytes, text: str) -> None:
        with Replies(reply + b"\r\n") as server:
            found = problem(opened(server.url))
        assert text in found
        assert f"redis at 127.0.0.1:{server.port}" in found


def problem_of_retry(factory: MapStateFactory) -> str:
    with pytest.raises(StateUnavailableError) as caught:
        committed(factory, record(2), dog=1)
    return str(caught.value)


class TestPool:
    def test_tasks_do_not_connect_anew(self, server: RedisServer) -> None:
        with plain(server.url) as client:
            committed(opened(server.url), record(1), dog=1)
            before = client.info("stats")["total_connections_received"]
            for _ in range(5):
                committed(opened(server.url), record(1), dog=1)
            assert client.info("stats")["total_connections_received"] == before

    def test_a_restarted_server_is_found_again(self, server: RedisServer) -> None:
        counts = opened(server.url)
        committed(counts, record(1), dog=1)
        server.restart()
        with pytest.raises(NoStateError):  # it keeps nothing on disk
            found(counts, "dog")
        committed(counts, record(1), dog=1)
        assert found(counts, "dog") == [1]

    def test_many_threads_share_it(self, redis_server: Served) -> None:
        counts = opened(redis_server.url)
        keys = [b"key %d" % number for number in range(5000)]
        backing = counts.store.open()
        backing.multiPut(keys, keys)
        answers: list[bool] = []

        def read() -> None:
            answers.extend(backing.multiGet(keys) == keys for _ in range(5))

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [True] * 40

    def test_a_child_process_connects_by_itself(self, redis_server: Served) -> None:
        program = (
            "import os, sys\n"
            "from trident.backends.urls import state_from_url\n"
            "backing = state_from_url(sys.argv[1]).store.open()\n"
            "backing.multiPut([b'dog'], [b'parent'])\n"
            "child = os.fork()\n"
            "answers = {bytes(*backing.multiGet([b'dog'])) for _ in range(1000)}\n"
            "assert answers == {b'parent'}, answers\n"
            "if child:\n"
            "    print(os.waitpid(child, 0)[1])\n"
        )
        url = f"{redis_server.url}?prefix={new_prefix()}"
        command = [sys.executable, "-W", "error", "-c", program, url]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("0\n", "")

    def test_idle_connections_can_be_closed(self, server: RedisServer) -> None:
        backing = opened(server.url).store.open()
        backing.multiPut([b"dog"], [b"1"])
        connections.pool.close_idle()
        with plain(server.url) as client:
            wait_until(lambda: len(client.client_list()) == 1)
        assert backing.multiGet([b"dog"]) == [b"1"]


def test_a_master_that_is_gone_during_a_fail_over_is_not_to_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SentinelMaster, "find", lambda *_: [("127.0.0.8", 1)])
    url = "redis+sentinel://127.0.0.9:1/main/0?prefix=x"
    state, checkpoint = state_from_url(url).makeState(), checkpoint_from_url(StateURL.parse(url))
    for read in (lambda: state.multiGet([("a",)]), checkpoint.names):
        with pytest.raises(StateUnavailableError, match="still name it as the master of") as it:
            read()
        assert "While they fail over" in str(it.value)
        assert "Start one" not in str(it.value)
