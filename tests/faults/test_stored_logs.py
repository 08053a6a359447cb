"""A checkpoint in a store whose server is killed, paused or cut off, and driven by zombies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.faults.proxy import Proxy
from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.state_url import StateURL
from trident.log.entry import LogEntry
from trident.log.errors import CorruptLogError, LogConflictError, LogUnavailableError
from trident.log.log import LogWriter
from trident.log.stored_checkpoint import StoredLog
from trident.states.checkpoint_store import CheckpointStore, this_process
from trident.states.values import Token
from trident.testing.servers.process import ServerProcess, wait_until
from trident.testing.servers.redis import RedisServer
from trident.testing.servers.seaweedfs import SeaweedServer
from trident.testing.servers.zookeeper import ZooKeeperServer

FIRST = LogEntry(1, "", "a1", begun=Token(1, 0), committed=0)
SECOND = b'"number":2,'
"""What is in a request that appends the second entry."""


@dataclass
class Stored:
    """A server that tests may hurt, and the way to it.

    `place` is the checkpoint's URL, with ``{}`` for host and port.
    """

    server: ServerProcess
    proxy: Proxy
    place: str
    opened: ExitStack

    def store(self, through: Proxy | ServerProcess) -> CheckpointStore:
        url = self.place.format(f"{through.host}:{through.port}")
        store = checkpoint_from_url(StateURL.parse(url))
        self.opened.callback(store.release)
        return store

    def log(self) -> StoredLog:
        """The log through the proxy."""
        return StoredLog(self.store(self.proxy), "words")

    def elsewhere(self) -> StoredLog:
        """The log as another machine has it."""
        return StoredLog(self.store(self.server), "words")


@pytest.fixture(scope="module")
def own_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One for the whole module, because it takes long to start."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture(scope="module")
def own_seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeaweedServer]:
    """One for the whole module likewise."""
    with SeaweedServer(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture
def own_durable_redis(tmp_path: Path) -> Iterator[RedisServer]:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with RedisServer(tmp_path / "redis", *options) as server:
        yield server


KINDS = {
    "redis": ("own_durable_redis", "redis://{}?prefix=words&timeout=0.5"),
    "zookeeper": ("own_zookeeper", "zookeeper://{}/%s?timeout=0.5"),
    "seaweedfs": (
        "own_seaweedfs",
        "s3://trident/%s?timeout=0.5&access_key_id=trident&secret_access_key=trident-secret"
        "&endpoint=http://{}",
    ),
}
"""The server of each kind of store, and the URL of a test's own checkpoint."""


@pytest.fixture(params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stored]:
    """Each kind of store, in turn."""
    server, place = KINDS[request.param]
    own: ServerProcess = request.getfixturevalue(server)
    with ExitStack() as opened, Proxy(own.host, own.port) as proxy:
        yield Stored(own, proxy, place.replace("%s", tmp_path.name), opened)


def begun(log: StoredLog) -> LogWriter:
    writer = LogWriter(log)
    writer.begin(FIRST)
    return writer


def commit_patiently(writer: LogWriter) -> None:
    """Append the same entry until it is known to be there, as a run does."""

    def committed() -> bool:
        try:
            writer.append(committed=1, begun=Token(2, 0))
        except LogUnavailableError:
            return False
        return True

    wait_until(committed)


def lost_answer(stored: Stored) -> None:
    """The entry is there, and the connection is cut before that is said."""
    stored.proxy.when_asked(SECOND, lambda: stored.proxy.cut(0))


def killed_before(stored: Stored) -> None:
    """The server is gone before it has the entry."""
    stored.proxy.when_asked(SECOND, stored.server.kill)


def paused(stored: Stored) -> None:
    """The server has the entry, and does nothing."""
    stored.proxy.when_asked(SECOND, stored.server.pause)


def start_again(server: ServerProcess) -> None:
    wait_until(lambda: server.process is None)
    server.start()


@pytest.mark.parametrize(
    ("misfortune", "heal"),
    [
        (lost_answer, lambda server: None),
        (killed_before, start_again),
        (paused, ServerProcess.resume),
    ],
)
def test_an_entry_that_may_be_there_is_appended_again_until_it_is(
    stored: Stored,
    misfortune: Callable[[Stored], None],
    heal: Callable[[ServerProcess], None],
) -> None:
    writer = begun(stored.log())
    misfortune(stored)
    with pytest.raises(LogUnavailableError, match="words"):
        writer.append(committed=1, begun=Token(2, 0))
    assert writer.entry.number == 1
    heal(stored.server)
    commit_patiently(writer)
    writer.append(committed=2, begun=Token(3, 0))
    assert stored.elsewhere().newest() == writer.entry
    assert (writer.entry.number, writer.entry.committed) == (3, 2)


def test_a_server_that_is_killed_between_entry_and_answer_has_the_entry(stored: Stored) -> None:
    writer = begun(stored.log())
    lost_answer(stored)
    with pytest.raises(LogUnavailableError):
        writer.append(committed=1, begun=Token(2, 0))
    stored.server.kill()
    stored.server.start()
    newest = stored.elsewhere().newest()
    assert newest is not None
    assert (newest.number, newest.committed) == (2, 1)
    commit_patiently(writer)
    assert writer.entry == newest


def test_an_entry_that_arrives_after_a_take_over_is_refused(stored: Stored) -> None:
    """It was on its way all the time: its writer had given it up."""
    zombie, newcomer = begun(stored.log()), stored.elsewhere()
    stored.proxy.hold_when_asked(SECOND)
    with pytest.raises(LogUnavailableError):
        zombie.append(committed=1, begun=Token(2, 0))
    newest = newcomer.newest()
    assert newest is not None
    assert newest.number == 1
    writer = LogWriter(newcomer)
    writer.begin(replace(newest, number=2, begun=Token(1, 1)))
    stored.proxy.release()
    assert newcomer.newest() == writer.entry
    with pytest.raises(LogConflictError):
        commit_patiently(zombie)
    writer.append(committed=1, begun=Token(2, 0))


def test_what_a_server_has_lost_that_it_had_acknowledged_is_an_error(tmp_path: Path) -> None:
    """One that keeps nothing on disk."""
    with RedisServer(tmp_path / "redis") as server:
        store = checkpoint_from_url(StateURL.parse(f"{server.url}?prefix=words"))
        writer = begun(StoredLog(store, "words"))
        before = server.cli("--raw", "HGET", "trident.checkpoint:{words}", "words")
        writer.append(committed=1, begun=Token(2, 0))
        server.cli("HSET", "trident.checkpoint:{words}", "words", f"{before}\n")
        with pytest.raises(CorruptLogError, match="number is 1, and entry 2 was acknowledged"):
            writer.append(committed=2, begun=Token(3, 0))
        server.restart()
        with pytest.raises(CorruptLogError, match="nothing is there, and entry 2"):
            commit_patiently(writer)


def test_an_entry_that_too_few_replicas_have_is_not_built_on(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server:
        url = f"{server.url}?prefix=words&wait_replicas=1&wait_timeout=0.1"
        writer = LogWriter(StoredLog(checkpoint_from_url(StateURL.parse(url)), "words"))
        with pytest.raises(LogUnavailableError, match="0 of 1 replicas have acknowledged"):
            writer.begin(FIRST)


def expire(store: CheckpointStore) -> None:
    """End a store's session, as its servers do when they have heard nothing for too long."""
    from kazoo.client import KazooClient

    client = store._session._client
    thief = KazooClient(client.hosts and ",".join(f"{h}:{p}" for h, p in client.hosts))
    thief._session_id, thief._session_passwd = client.client_id
    thief.start()
    thief.stop()
    thief.close()


@pytest.fixture
def zookeeper(own_zookeeper: ZooKeeperServer, tmp_path: Path) -> Iterator[Stored]:
    with ExitStack() as opened, Proxy(own_zookeeper.host, own_zookeeper.port) as proxy:
        place = f"zookeeper://{{}}/{tmp_path.name}?session_timeout=2"
        yield Stored(own_zookeeper, proxy, place, opened)
        opened.close()


def test_a_server_that_takes_a_connection_and_says_nothing_is_tried_again(
    zookeeper: Stored,
) -> None:
    """Servers that are just starting do so."""
    zookeeper.proxy.hold_when_asked(b"")
    assert replace(zookeeper, place=f"{zookeeper.place}&timeout=2").log().newest() is None


def test_a_run_whose_session_has_expired_goes_on_and_holds_its_checkpoint_again(
    zookeeper: Stored,
) -> None:
    store = zookeeper.store(zookeeper.server)
    assert store.hold() is None
    writer = begun(StoredLog(store, "words"))
    expire(store)
    commit_patiently(writer)
    assert zookeeper.elsewhere().newest() == writer.entry
    assert zookeeper.store(zookeeper.server).hold() == this_process()


def test_a_run_whose_session_has_expired_stops_where_another_has_taken_over(
    zookeeper: Stored,
) -> None:
    store, other = zookeeper.store(zookeeper.server), zookeeper.store(zookeeper.server)
    assert store.hold() is None
    zombie = begun(StoredLog(store, "words"))
    expire(store)
    wait_until(lambda: other.hold() is None)
    log = StoredLog(other, "words")
    newest = log.newest()
    assert newest is not None
    LogWriter(log).begin(replace(newest, number=2, begun=Token(1, 1)))
    with pytest.raises(LogConflictError):
        commit_patiently(zombie)


def test_a_lock_that_could_not_be_given_back_is_waited_for(zookeeper: Stored) -> None:
    store = zookeeper.store(zookeeper.server)
    assert store.hold() is None
    zookeeper.server.kill()
    store.release()
    zookeeper.server.start()
    assert zookeeper.store(zookeeper.server).hold() is None
