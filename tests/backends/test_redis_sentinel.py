"""State behind Redis Sentinel, and replicas that have to have a batch before it counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.backends.redis_batches import add, committed, found, record, written
from tests.faults.replication import offset
from tests.servers.redis import RedisReplica, RedisSentinel
from trident.backends.checkpoints import checkpoint_from_url
from trident.backends.state_url import StateURL
from trident.backends.urls import state_from_url
from trident.log.entry import LogEntry
from trident.log.errors import CorruptLogError, LogUnavailableError
from trident.log.log import LogWriter
from trident.log.stored_checkpoint import StoredLog
from trident.states import MapStateFactory, Token
from trident.states.errors import LostWritesError, StateUnavailableError
from trident.testing.servers.process import wait_until
from trident.testing.servers.redis import RedisServer


def opened(url: str) -> MapStateFactory:
    factory = state_from_url(url)
    assert isinstance(factory, MapStateFactory)
    return factory


@dataclass(frozen=True)
class Service:
    """A master, its replica, and a Sentinel that replaces the one by the other."""

    master: RedisServer
    replica: RedisServer
    sentinel: RedisSentinel

    def fail_over(self) -> None:
        """Lose the master, and return when the replica has taken over."""
        self.master.kill()
        self.wait_for_the_replica()

    def cut_off_the_replica(self) -> None:
        """Let the replica learn nothing of what the master acknowledges from now on."""
        wait_until(lambda: offset(self.replica) == offset(self.master))
        self.replica.pause()
        # What was sent to it already would wait for it; what comes now has nobody to be sent to.
        self.master.cli("client", "kill", "type", "replica")

    def lose_the_master(self) -> None:
        """Lose the master while the replica is cut off, and return when that has taken over."""
        self.master.kill()
        self.replica.resume()
        self.wait_for_the_replica()

    def take_over(self) -> None:
        """Have the replica take over while the master goes on as one, as if nobody told it."""
        self.replica.cli("replicaof", "no", "one")
        service = self.sentinel.service
        place = (self.replica.host, str(self.replica.port))
        for command in (
            ("remove", service),
            ("monitor", service, *place, "1"),
            ("set", service, "auth-pass", self.replica.password or ""),
        ):
            assert self.sentinel.cli("sentinel", *command) == "OK"

    def wait_for_the_replica(self) -> None:
        wait_until(
            lambda: (
                self.sentinel.master_port() == self.replica.port
                and "role:master" in self.replica.cli("info", "replication")
            )
        )


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with (
        RedisServer(tmp_path / "master", password="hunter2") as master,
        RedisReplica(tmp_path / "replica", master) as replica,
        RedisSentinel(tmp_path / "sentinel", master) as sentinel,
    ):
        yield Service(master, replica, sentinel)


@pytest.fixture
def counts(service: Service) -> MapStateFactory:
    return opened(f"{service.sentinel.url}?prefix=counts&timeout=1")


class TestSentinel:
    def test_the_master_is_found(self, service: Service, counts: MapStateFactory) -> None:
        committed(counts, record(1), dog=2)
        assert service.master.cli("get", "counts:dog") == "[1,2,null]"

    def test_a_fail_over_during_the_batch_fails_the_attempt(
        self, service: Service, counts: MapStateFactory
    ) -> None:
        committed(counts, record(1), dog=1)
        driver = written(counts, record(2), dog=10)
        wait_until(lambda: service.replica.cli("get", "counts:dog") == "[2,11,1]")
        service.fail_over()
        with pytest.raises(StateUnavailableError):
            driver.control.ready(record(2))
        with pytest.raises(StateUnavailableError, match="restarted or lost writes"):
            driver.control.ready(record(2))
        committed(counts, record(2, 1), dog=100)
        assert found(counts, "dog") == [101]

    def test_a_fail_over_that_loses_writes_fails_the_attempt(
        self, service: Service, counts: MapStateFactory
    ) -> None:
        """The replica was paused, so it never had the batch that the master acknowledged."""
        committed(counts, record(1), dog=1)
        service.cut_off_the_replica()
        driver = written(counts, record(2), dog=10)
        service.lose_the_master()
        for _ in range(2):
            with pytest.raises(StateUnavailableError):
                driver.control.ready(record(2))
        assert service.replica.cli("get", "counts:dog") == "[1,1,null]"
        committed(counts, record(2, 1), dog=100)
        assert found(counts, "dog") == [101]

    def test_a_fail_over_that_loses_the_end_of_a_committed_batch_is_noticed(
        self, service: Service, counts: MapStateFactory
    ) -> None:
        driver = written(counts, record(1), dog=1)
        service.cut_off_the_replica()
        ready = driver.control.ready(record(1))
        service.lose_the_master()
        with pytest.raises(StateUnavailableError):
            driver.control.announce(ready)
        with pytest.raises(LostWritesError):
            driver.control.announce(ready)

    def test_a_fail_over_that_keeps_a_committed_batch_whole_stops_nothing(
        self, service: Service, counts: MapStateFactory
    ) -> None:
        driver = written(counts, record(1), dog=1)
        ready = driver.control.ready(record(1))
        wait_until(lambda: offset(service.replica) == offset(service.master))
        service.fail_over()
        with pytest.raises(StateUnavailableError):
            driver.control.announce(ready)
        assert driver.control.announce(ready)
        assert found(counts, "dog") == [1]

    def test_an_old_master_that_still_answers_confirms_nothing(
        self, service: Service, counts: MapStateFactory
    ) -> None:
        """It was cut off from the Sentinel only, and takes writes that will be thrown away."""
        driver = written(counts, record(1), dog=1)
        service.take_over()
        assert service.master.cli("get", "counts:dog") == "[1,1,null]"
        with pytest.raises(StateUnavailableError):
            driver.control.ready(record(1))

    def test_a_task_that_the_old_master_refuses_was_not_overtaken(
        self, service: Service, counts: MapStateFactory
    ) -> None:
        """The batch began at the new master, and the task had looked for the master before."""
        committed(counts, record(1), dog=1)
        wait_until(lambda: service.replica.cli("get", "counts:dog") == "[1,1,null]")
        task = counts.makeMap()
        task.beginCommit(record(2))
        assert task.multiGet([("dog",)]) == [1]
        service.take_over()
        moved = counts.makeMap()
        moved.control.begin(record(2))
        with pytest.raises(StateUnavailableError, match="another server has taken over"):
            add(task, record(2), dog=10)

    def test_an_unknown_service_is_named(self, service: Service) -> None:
        url = service.sentinel.url.replace("/counts", "/conuts")
        with pytest.raises(StateUnavailableError) as caught:
            opened(url).store.open().getControl()
        text = str(caught.value)
        assert f"redis service 'conuts' of the sentinels 127.0.0.1:{service.sentinel.port}" in text
        assert "hunter2" not in text

    def test_the_next_sentinel_is_asked_where_one_is_gone(self, service: Service) -> None:
        url = service.sentinel.url.replace("@127.0.0.1", "@127.0.0.1:1,127.0.0.1")
        committed(opened(url), record(1), dog=2)

    def test_no_sentinel_answers(self) -> None:
        with pytest.raises(StateUnavailableError) as caught:
            opened("redis+sentinel://127.0.0.1:1,127.0.0.1:2/counts").store.open().getControl()
        text = str(caught.value)
        assert "the sentinels 127.0.0.1:1,127.0.0.1:2" in text
        assert "redis at 127.0.0.1:2: nothing listens there" in text
        assert "redis-sentinel" in text


class TestReplicas:
    def test_a_batch_counts_when_a_replica_has_it(self, service: Service) -> None:
        counts = opened(f"{service.master.url}?prefix=counts&wait_replicas=1&wait_timeout=4")
        for txid in range(1, 4):
            committed(counts, record(txid), dog=1)
            assert service.replica.cli("get", "counts:dog").startswith(f"[{txid},{txid},")

    def test_a_batch_that_no_replica_has_is_retried(self, service: Service) -> None:
        asked = f"{service.master.url}?prefix=counts&wait_replicas=1"
        hasty, patient = opened(f"{asked}&wait_timeout=0.2"), opened(f"{asked}&wait_timeout=4")
        committed(patient, record(1), dog=1)
        service.replica.pause()
        driver = written(hasty, record(2), dog=1)
        with pytest.raises(StateUnavailableError, match="0 of 1 replicas have acknowledged"):
            driver.control.ready(record(2))
        service.replica.resume()
        committed(patient, record(2, 1), dog=10)
        assert found(patient, "dog") == [11]


class TestCheckpoint:
    """The log of a checkpoint, at whichever server is the master."""

    @pytest.fixture
    def writer(self, service: Service) -> LogWriter:
        url = StateURL.parse(f"{service.sentinel.url}?prefix=words&timeout=1")
        writer = LogWriter(StoredLog(checkpoint_from_url(url), "words"))
        writer.begin(LogEntry(1, "", "a1", begun=Token(1, 0), committed=0))
        return writer

    def test_it_goes_on_after_a_fail_over(self, service: Service, writer: LogWriter) -> None:
        wait_until(lambda: offset(service.replica) == offset(service.master))
        service.fail_over()
        with pytest.raises(LogUnavailableError) as raised:
            writer.append(committed=1)
        assert "hunter2" not in str(raised.value)
        writer.append(committed=1)
        kept = service.replica.cli("hget", "trident.checkpoint:{words}", "words")
        assert '"committed":1,' in kept

    def test_a_fail_over_that_loses_an_entry_is_noticed(
        self, service: Service, writer: LogWriter
    ) -> None:
        service.cut_off_the_replica()
        writer.append(committed=1)
        service.lose_the_master()
        with pytest.raises(LogUnavailableError):
            writer.append(committed=2)
        with pytest.raises(CorruptLogError, match="number is 1, and entry 2 was acknowledged"):
            writer.append(committed=2)
