"""Acknowledged writes that vanish: a server that goes back in time, or a replica that lags."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.replication import offset
from tests.faults.word_count import WordCount, assert_told, at
from tests.servers.redis import RedisReplica, RedisSentinel
from trident.backends import memcached, redis
from trident.batch.watchpoints import watching
from trident.errors import LostStateError, LostWritesError, NoStateError, RewoundStateError
from trident.states.values import Token
from trident.testing.servers.memcached import MemcachedServer
from trident.testing.servers.process import wait_until
from trident.testing.servers.redis import RedisServer

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


@dataclass(frozen=True)
class Rewindable:
    """A Redis server whose data can be put back to what it once was."""

    server: RedisServer
    words: WordCount

    def copy(self, name: str) -> None:
        """Keep its data as of now: every acknowledged write is in its file."""
        shutil.copytree(self._data, self.server.folder / name)

    def put_back(self, name: str) -> None:
        """Start it again from a copy."""
        self.server.kill()
        shutil.rmtree(self._data)
        shutil.copytree(self.server.folder / name, self._data)
        self.server.start()

    @property
    def place(self) -> str:
        return f"redis at {self.server.host}:{self.server.port}"

    @property
    def _data(self) -> Path:
        return self.server.folder / "appendonlydir"


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[Rewindable]:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield Rewindable(server, WordCount(redis.opaque(server.host, server.port), tmp_path))


def test_a_redis_that_lost_writes_of_the_batch_under_way_has_them_written_again(
    redis_server: Rewindable, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        at("before write", 2, 0, lambda: redis_server.copy("begun")),
        at("after write", 2, 0, lambda: redis_server.put_back("begun")),
    ):
        assert redis_server.words.run() == {2: 2}
    assert_told(caplog, f"count in {redis_server.place}", "lost writes during the batch")
    assert redis_server.words.counted_all()


def test_a_redis_that_lost_the_begin_of_the_batch_under_way_is_not_taken_for_a_later_run(
    redis_server: Rewindable, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        at("before begin", 2, 0, lambda: redis_server.copy("old")),
        at("before write", 2, 0, lambda: redis_server.put_back("old")),
    ):
        assert redis_server.words.run() == {2: 2}
    assert_told(caplog, redis_server.place, "did it start from old data")
    assert redis_server.words.counted_all()


def test_a_redis_that_went_back_before_a_committed_batch_stops_the_run_and_the_next_start(
    redis_server: Rewindable,
) -> None:
    words = redis_server.words
    with (
        at("before begin", 2, 0, lambda: redis_server.copy("old")),
        at("before begin", 3, 0, lambda: redis_server.copy("whole")),
        at("after begin", 3, 0, lambda: redis_server.put_back("old")),
        pytest.raises(RewoundStateError, match="batch 2 .*newer backup") as stopped,
    ):
        words.run()
    assert f"count in {redis_server.place}" in str(stopped.value)
    assert words.counted() == words.size
    with pytest.raises(RewoundStateError, match="Restore the store from a newer backup"):
        words.start()
    redis_server.put_back("whole")
    words.run()
    assert words.counted_all()


def test_a_redis_that_lost_writes_of_a_batch_after_its_announcement_stops_the_run(
    redis_server: Rewindable,
) -> None:
    words = redis_server.words
    with (
        at("after begin", 2, 0, lambda: redis_server.copy("begun")),
        at("after announce", 2, 0, lambda: redis_server.copy("whole")),
        at("before begin", 3, 0, lambda: redis_server.put_back("begun")),
        pytest.raises(LostWritesError, match="count in redis at .* lost writes of batch 2"),
    ):
        words.run()
    assert words.counted() == words.size
    with pytest.raises(LostWritesError, match="count in redis at .* lost writes of batch 2"):
        words.start()
    redis_server.put_back("whole")
    words.run()
    assert words.counted_all()


def test_a_redis_that_lost_writes_between_commit_and_announcement_stops_the_run(
    redis_server: Rewindable,
) -> None:
    words = redis_server.words
    with (
        at("after begin", 2, 0, lambda: redis_server.copy("begun")),
        at("after ready", 2, 0, lambda: redis_server.copy("whole")),
        at("before announce", 2, 0, lambda: redis_server.put_back("begun")),
        pytest.raises(LostWritesError, match="count in redis at .* lost writes of batch 2"),
    ):
        words.run()
    with pytest.raises(LostWritesError, match="count in redis at .* lost writes of batch 2"):
        words.start()
    redis_server.put_back("whole")
    words.run()
    assert words.counted_all()


LOST = (LostStateError, LostWritesError, RewoundStateError)


@dataclass(frozen=True)
class Moments:
    """A word count on a Redis, whose files and checkpoint are kept as they were at every point."""

    server: RedisServer
    words: WordCount

    def keep(self) -> list[str]:
        """Count all words; return the names of the moments of batches 2 and 3, in order."""
        kept = []

        def watch(point: str, token: Token) -> None:
            if token.txid in (2, 3):
                kept.append(f"{point} {token.txid}")
                shutil.copytree(self._data, self._kept(kept[-1]) / "data")
                shutil.copytree(self._checkpoint, self._kept(kept[-1]) / "checkpoint")

        with watching(watch):
            self.words.run()
        return kept

    def written(self, moment: str) -> bytes:
        """Return what Redis had appended to its file."""
        [file] = (self._kept(moment) / "data").glob("*.incr.aof")
        return file.read_bytes()

    def silently_wrong(self, checkpoint: str, data: str, size: int | None = None) -> bool:
        """Start with a checkpoint and data of two moments, the data perhaps cut to a size."""
        self.server.kill()
        for kept, place in (
            (self._kept(data) / "data", self._data),
            (self._kept(checkpoint) / "checkpoint", self._checkpoint),
        ):
            shutil.rmtree(place)
            shutil.copytree(kept, place)
        if size is not None:
            [file] = self._data.glob("*.incr.aof")
            os.truncate(file, size)
        self.server.start()
        try:
            self.words.run()
        except LOST:
            return False
        return not self.words.counted_all()

    def _kept(self, moment: str) -> Path:
        return self.server.folder / "kept" / moment

    @property
    def _checkpoint(self) -> Path:
        return self.words.folder / "checkpoint"

    @property
    def _data(self) -> Path:
        return self.server.folder / "appendonlydir"


@pytest.fixture
def moments(tmp_path: Path) -> Iterator[Moments]:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        factory = redis.opaque(server.host, server.port)
        yield Moments(server, WordCount(factory, tmp_path, size=6))


def test_no_start_on_a_redis_that_is_of_an_earlier_moment_loses_a_batch_silently(
    moments: Moments,
) -> None:
    kept = moments.keep()
    silent = [
        (earlier, later)
        for later in ("after commit 2", "before begin 3", "after commit 3")
        for earlier in kept[: kept.index(later)]
        if moments.silently_wrong(checkpoint=later, data=earlier)
    ]
    assert not silent


def test_no_start_on_a_redis_whose_file_was_cut_anywhere_loses_a_batch_silently(
    moments: Moments,
) -> None:
    moments.keep()
    whole, begun = (
        len(moments.written(moment)) for moment in ("after announce 3", "before begin 3")
    )
    cuts = range(begun, whole, max(1, (whole - begun) // 40))
    silent = [
        cut
        for cut in cuts
        if moments.silently_wrong(checkpoint="after commit 3", data="after announce 3", size=cut)
    ]
    assert not silent


def test_a_redis_that_was_emptied_stops_the_run_and_the_next_start_but_no_new_checkpoint(
    redis_server: Rewindable, tmp_path: Path
) -> None:
    server = redis_server.server
    factory = redis.opaque(server.host, server.port)
    words = WordCount(factory, tmp_path)
    with (
        at("after begin", 3, 0, lambda: server.cli("flushall")),
        pytest.raises(LostStateError, match="count in redis at .*batch 2 .*from a backup"),
    ):
        words.run()
    with pytest.raises(LostStateError, match="count in redis at .*batch 2 .*from a backup"):
        words.start()
    anew = WordCount(factory, tmp_path / "anew")
    assert anew.run() == {}
    assert anew.counted_all()


@pytest.mark.parametrize(
    "moment", ["before begin", "after begin", "before ready", "before announce"]
)
def test_a_memcached_that_restarted_stops_the_run_and_the_next_start(
    own_memcached: MemcachedServer, moment: str, tmp_path: Path
) -> None:
    place = f"{own_memcached.host}:{own_memcached.port}"
    words = WordCount(memcached.opaque([place]), tmp_path)
    lost = f"count in .*{place}.* is lost.*begin anew"
    with (
        at(moment, 3, 0, own_memcached.restart),
        pytest.raises(LostStateError, match=lost),
    ):
        words.run()
    with pytest.raises(LostStateError, match=lost):
        words.start()
    with pytest.raises(NoStateError):
        words.counted()


@dataclass(frozen=True)
class Replicated:
    """A master and a replica under a Sentinel that is quick to decide."""

    master: RedisServer
    replica: RedisReplica
    sentinel: RedisSentinel
    words: WordCount

    def cut_off(self) -> None:
        """Let the replica learn nothing of what the master acknowledges from now on."""
        wait_until(lambda: offset(self.replica) == offset(self.master))
        self.replica.pause()
        self.master.cli("client", "kill", "type", "replica")

    def fail_over(self) -> None:
        """Lose the master, and wait until the replica has its place."""
        self.master.kill()
        self.replica.resume()
        wait_until(lambda: self.sentinel.master_port() == self.replica.port)
        wait_until(lambda: "role:master" in self.replica.cli("info", "replication"))


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    with (
        RedisServer(tmp_path / "master") as master,
        RedisReplica(tmp_path / "replica", master) as replica,
        RedisSentinel(tmp_path / "sentinel", master) as sentinel,
    ):
        sentinel.cli("sentinel", "set", sentinel.service, "down-after-milliseconds", "500")
        sentinels = [(sentinel.host, sentinel.port)]
        factory = redis.opaque(sentinels=sentinels, service=sentinel.service, timeout=1.0)
        yield Replicated(master, replica, sentinel, WordCount(factory, tmp_path))


def test_a_fail_over_to_a_replica_without_the_batchs_writes_has_them_written_again(
    replicated: Replicated, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        at("before write", 2, 0, replicated.cut_off),
        at("after write", 2, 0, replicated.fail_over),
    ):
        attempts = replicated.words.run()
    assert attempts.keys() == {2}
    assert_told(caplog, f"127.0.0.1:{replicated.master.port}", "try again")
    assert replicated.words.counted_all()


def test_a_fail_over_to_a_replica_without_a_committed_batch_stops_the_run_and_the_next_start(
    replicated: Replicated,
) -> None:
    words = replicated.words
    with (
        at("before begin", 2, 0, replicated.cut_off),
        at("after announce", 2, 0, replicated.fail_over),
        pytest.raises(RewoundStateError, match="sentinels 127.0.0.1:.*batch 2 .*newer backup"),
    ):
        words.run()
    assert words.counted() == words.size
    with pytest.raises(RewoundStateError, match="batch 2 .*newer backup"):
        words.start()
