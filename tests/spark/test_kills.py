"""Drivers are killed at named points of a batch and started again: everything counts once.

Each way in which Spark takes part in a batch is killed at points of its own, again and again, and
what is left is gone on with by the session of the tests. Every point of a batch, with the engine of
one process or with a clock that does what Spark's does, is in `tests.batch`.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.batch import overlapping_run
from tests.kafka import killed_frame
from tests.kafka.broker import Broker
from tests.kafka.counting import Counting
from tests.spark import program, staged_program
from tests.spark.drivers import Drivers
from tests.spark.lines import PATIENCE, Lines
from tests.spark.staged_program import AFTER_SPARKS_COMMIT, PENDING
from trident.backends import sqlite
from trident.spark import kafka_frame
from trident.testing.servers.promised import Served

LINES = [
    ("after begin", 2),
    ("after write", 3),
    ("before commit", 4),
    ("after commit", 5),
    ("before announce", 6),
]
STAGED = [
    "before stage",
    "after stage",
    AFTER_SPARKS_COMMIT,
    "after begin",
    "after write",
    "after ready",
    "after commit",
    "before unstage",
    "after unstage",
]
OVERLAPPING = {
    "spark": [("after write", 2), ("after commit", 6)],
    "mixed": [("compute", 0), ("before commit", 6)],
}
KAFKA = [("after begin", 1), ("after write", 2), ("after commit", 3)]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    with closing(Drivers(tmp_path_factory.mktemp("drivers"))) as running:
        yield running


def test_every_word_of_a_frame_counts_once(
    drivers: Drivers, spark: SparkSession, tmp_path: Path
) -> None:
    lines = Lines(spark, tmp_path)
    lines.write(*[f"all batches\nw{number} w{number % 3}" for number in range(7)])
    for point, txid in LINES:
        drivers.kill(program, tmp_path, point, txid)
    lines.count()
    assert lines.counts == lines.expected


def drawn(folder: Path) -> dict[str, int]:
    """How often each drawn word was counted."""
    state: Any = sqlite.transactional(folder / "drawn.db", "drawn").makeState()
    try:
        return dict(state.getTuples())
    finally:
        state.close()


def test_every_line_of_staged_batches_counts_once_as_it_was_computed(
    drivers: Drivers, spark: SparkSession, tmp_path: Path
) -> None:
    lines = Lines(spark, tmp_path)
    count = 2 * len(STAGED) + 2
    lines.write(*[f"all batches\nw{number} w{number % 3}" for number in range(count)])
    for number, point in enumerate(STAGED):
        drivers.kill(staged_program, tmp_path, point, 2 * number + 1)
    with lines.start(staged_program.topology(lines), max_pending=PENDING) as rest:
        rest.awaitTermination(PATIENCE)
    assert lines.counts == lines.expected
    assert set(drawn(tmp_path).values()) == {1}
    assert len(drawn(tmp_path)) == 2 * count
    assert list((lines.checkpoint / "lines" / "staged").iterdir()) == []


@pytest.mark.parametrize("engine", OVERLAPPING)
def test_every_word_of_overlapping_batches_counts_once(
    drivers: Drivers, spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    for point, txid in OVERLAPPING[engine]:
        drivers.kill(overlapping_run, tmp_path, engine, point, txid)
    overlapping_run.run(tmp_path, engine, spark)
    assert overlapping_run.counts(tmp_path) == overlapping_run.EXPECTED


def test_every_record_of_kafka_counts_once(
    drivers: Drivers, spark_with_kafka: SparkSession, kafka_broker: Served, tmp_path: Path
) -> None:
    broker, choose, truth = Broker(kafka_broker.url), Random(3), Counter[str]()
    topic = broker.topic(2)
    for number, (point, txid) in enumerate(KAFKA):
        if number == 2:
            broker.add_partitions(topic, 3)
        for partition in range(2 if number < 2 else 3):
            words = choose.choices("abcdef", k=20)
            ending = choose.choice(("plain", "commit", "abort"))
            broker.append(topic, words, ending, partition=partition)
            if ending != "abort":
                truth.update(words)
        drivers.kill(killed_frame, tmp_path, broker.servers, topic, point, txid)
    frame = kafka_frame(spark_with_kafka, killed_frame.spout(broker.servers, topic))
    assert Counting(tmp_path).run(frame, session=spark_with_kafka) == truth


def test_a_driver_whose_jvm_is_killed_ends_with_one_error_of_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    Lines(spark, tmp_path).write("one batch")
    without_jvm = [sys.executable, "-m", "tests.spark.without_jvm", str(tmp_path)]
    done = subprocess.run(without_jvm, capture_output=True, text=True, timeout=280, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stdout
    for line in lines:
        assert line.startswith("EngineLostError: Spark is gone: its JVM has ended. The next")
    assert "py4j" not in done.stderr
