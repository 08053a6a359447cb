"""A Redis that is away for seconds, for longer than the retries of a batch would take."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from tests.faults.word_count import WordCount, assert_told, at, when_waiting
from trident.backends import redis
from trident.batch.errors import OutageError
from trident.testing.servers.redis import RedisServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
SECONDS = 3.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", *DURABLE) as server:
        yield server


@pytest.fixture
def words(server: RedisServer, tmp_path: Path) -> WordCount:
    return WordCount(redis.opaque(server.host, server.port, timeout=0.2), tmp_path)


@contextmanager
def over_after(seconds: float, do: Callable[[], object]) -> Iterator[None]:
    """Do something so long after a batch has begun to wait."""
    timer = threading.Timer(seconds, do)
    with when_waiting(timer.start):
        yield
    timer.join()


def test_a_redis_that_stands_still_for_seconds_has_no_batch_dead_lettered(
    server: RedisServer, words: WordCount, caplog: pytest.LogCaptureFixture
) -> None:
    with at("before write", 2, 0, server.pause), over_after(SECONDS, server.resume):
        assert words.run(on_failure="dead-letter") == {2: 2}
    assert words.counted_all()
    assert_told(caplog, f"redis at {server.host}:{server.port}", "It may be paused")
    assert len(caplog.records) == 2  # its begin and its end


def test_a_redis_killed_and_started_seconds_later_has_no_batch_dead_lettered(
    server: RedisServer, words: WordCount
) -> None:
    with at("before ready", 2, 0, server.kill), over_after(SECONDS, server.start):
        assert words.run(on_failure="dead-letter") == {2: 2}
    assert words.counted_all()


def test_a_redis_that_stands_still_after_a_commit_is_told_of_it_seconds_later(
    server: RedisServer, words: WordCount
) -> None:
    with at("before announce", 2, 0, server.pause), over_after(SECONDS, server.resume):
        assert words.run(on_failure="dead-letter") == {}
    assert words.counted_all()


@pytest.mark.parametrize("moment", ["before begin", "before write", "before announce"])
def test_a_redis_that_never_comes_back_ends_the_run_when_patience_does(
    server: RedisServer, words: WordCount, moment: str
) -> None:
    told = rf"batch 2 of words waited 1\.. s.*redis at {server.host}:{server.port}: .*patience="
    with at(moment, 2, 0, server.kill), pytest.raises(OutageError, match=told):
        words.run(on_failure="dead-letter", patience=1.0)
    server.start()
    words.run()
    assert words.counted_all()


def test_stopping_a_run_that_waits_takes_no_longer_than_a_try(
    server: RedisServer, words: WordCount
) -> None:
    began = []
    with at("before write", 2, 0, server.pause), words.start() as run:

        def stop() -> None:
            began.append(monotonic())
            run.groups["words"].request_stop()

        with when_waiting(stop):
            assert run.awaitTermination(30)
    assert monotonic() - began[0] < 2
    assert run.status == {"words": "stopped"}
    server.resume()
    words.run()
    assert words.counted_all()


def test_a_redis_that_stands_still_under_the_tasks_of_a_batch_on_spark_costs_an_attempt(
    server: RedisServer, tmp_path: Path, spark: SparkSession
) -> None:
    factory = redis.opaque(server.host, server.port, timeout=0.2)
    words = WordCount(factory, tmp_path, batches=3, spark=spark)
    with at("before write", 2, 0, server.pause), over_after(SECONDS, server.resume):
        assert words.run(on_failure="dead-letter", retries=0) == {2: 2}
    assert words.counted_all()
