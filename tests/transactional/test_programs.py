"""The classic programs of transactional topologies are exact, though killed at any point."""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from tests import forks
from tests.transactional import killed_program
from tests.transactional.killed_program import EXAMPLES, TEXT, topology
from trident.testing import POINTS, fail_at
from trident.testing.servers.promised import Served


def run(program: str, folder: Path, redis: str, point: str = "", txid: int = 0) -> int:
    """Run a program in a process of its own; return how that ended."""
    return forks.run(killed_program, program, folder, redis, point, txid).code


def counted(folder: Path) -> int:
    database = sqlite3.connect(folder / "total.db")
    [(count,)] = database.execute("SELECT count FROM total")
    database.close()
    return int(count)


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_the_global_count_is_exact_after_a_kill(tmp_path: Path, point: str) -> None:
    assert run("count", tmp_path, "", point, 2) == -signal.SIGKILL
    assert run("count", tmp_path, "") == 0
    assert counted(tmp_path) == 19


class Words:
    """What the bucketed word count leaves in Redis."""

    def __init__(self, redis: str, folder: Path) -> None:
        with Redis.from_url(redis, decode_responses=True) as database:
            words: Any = database.hgetall(f"{folder.name}:words")
            buckets: Any = database.hgetall(f"{folder.name}:buckets")
        self.words = {word: json.loads(row)["count"] for word, row in words.items()}
        found = {int(bucket): json.loads(row)["count"] for bucket, row in buckets.items()}
        self.buckets = {bucket: count for bucket, count in found.items() if count}


WORDS = Counter(TEXT.split())
BUCKETS = Counter(count // 10 for count in WORDS.values())


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before write", "after write", "after ready", "after commit"])
def test_the_bucketed_word_count_is_exact_after_kills(
    tmp_path: Path, redis_server: Served, point: str
) -> None:
    for txid in (1, 3):
        assert run("words", tmp_path, redis_server.url, point, txid) == -signal.SIGKILL
    assert run("words", tmp_path, redis_server.url) == 0
    found = Words(redis_server.url, tmp_path)
    assert (found.words, found.buckets) == (WORDS, BUCKETS)


@pytest.mark.parametrize("pending", [1, 3])
def test_an_attempt_that_failed_after_it_wrote_is_not_added_again(
    tmp_path: Path, redis_server: Served, pending: int
) -> None:
    words = topology("words", str(tmp_path), redis_server.url)
    options = {"checkpoint": tmp_path / "log", "trigger": "available", "max_pending": pending}
    with fail_at("after write", txid=2), words.start(**options) as started:
        started.awaitTermination(60)
    found = Words(redis_server.url, tmp_path)
    assert (found.words, found.buckets) == (WORDS, BUCKETS)


def test_on_spark_they_come_to_the_same(tmp_path: Path, redis_server: Served, spark: Any) -> None:
    from pyspark.cloudpickle import register_pickle_by_value

    for program in ("count", "words"):
        options = {"checkpoint": tmp_path / program, "trigger": "available", "engine": "spark"}
        declared = topology(program, str(tmp_path), redis_server.url)
        # Workers know no folder of examples.
        register_pickle_by_value(sys.modules[EXAMPLES[program]])
        with declared.start(spark, **options) as started:
            started.awaitTermination(240)
    assert counted(tmp_path) == 19
    found = Words(redis_server.url, tmp_path)
    assert (found.words, found.buckets) == (WORDS, BUCKETS)
