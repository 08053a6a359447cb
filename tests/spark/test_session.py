"""Sessions: ours, and those of users, which stay as they are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Lock

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import Lines
from trident import (
    Count,
    FeederBatchSpout,
    Fields,
    MemoryMapState,
    Split,
    TridentTopology,
    native,
)
from trident.errors import FieldError, OperationTypeError
from trident.spark import local_session
from trident.spark.errors import SparkFailure, SparkSessionError
from trident.spark.versions import settings_of
from trident.spouts.feeder import FeedError


def test_a_second_call_gives_the_same_session(spark: SparkSession) -> None:
    assert local_session() is spark
    assert local_session(**{"spark.ui.enabled": False}) is spark
    with pytest.raises(SparkSessionError, match=r"spark.master=local\[\*\], asked for is local\[9"):
        local_session(**{"spark.master": "local[9]"})


def test_what_the_jvm_prints_is_in_a_file(spark: SparkSession) -> None:
    assert Path(spark.conf.get("spark.trident.log") or "").is_file()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_session_leaves_nothing_on_disk_though_killed(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"  # of which Spark's options are no two words
    folder.mkdir()
    environment = {**os.environ, "TMPDIR": str(folder)}
    for way, code in {"killed": -signal.SIGKILL, "stopped": 0}.items():
        program = [sys.executable, "-m", "tests.spark.sessions", way]
        ended = subprocess.run(
            program, env=environment, timeout=100, capture_output=True, text=True
        )
        assert ended.returncode == code, ended.stderr
        assert Path(ended.stdout.strip()).parent == folder
    assert list(folder.iterdir()) == []  # the second took along what the first had to leave


def test_the_users_settings_are_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    before = settings_of(spark)
    lines = Lines(spark, tmp_path)
    lines.write("a")
    lines.count()
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    topology.newStream("words", spout).groupBy("word").persistentAggregate(
        MemoryMapState.Factory(), Count(), "count"
    )
    with topology.start(spark, engine="spark"):
        spout.feed([("a",)], 60)
    assert settings_of(spark) == before
    assert SparkSession.getActiveSession() is spark
    assert local_session() is spark


def test_what_batches_of_spouts_do_not_see_is_said(spark: SparkSession) -> None:
    spark.udf.register("shout", str.upper)
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    topology.newStream("words", spout).each(native("shout(word)"), "loud string").peek(print)
    with topology.start(spark, engine="spark") as run:
        with pytest.raises(FeedError):
            spout.feed([("a",)], 60)
        with pytest.raises(SparkFailure, match="temporary views"):
            run.awaitTermination(60)


def test_fields_that_differ_in_case_only_are_refused_by_name(spark: SparkSession) -> None:
    topology = TridentTopology()
    topology.newStream("texts", FeederBatchSpout("w string")).each("w", Split(), "W").peek(print)
    with pytest.raises(FieldError, match="doesn't tell 'W' from the field 'w'"):
        topology.start(spark, engine="spark")


def test_an_operation_that_cannot_be_sent_is_named_at_start(spark: SparkSession) -> None:
    topology, lock = TridentTopology(), Lock()
    topology.newStream("words", FeederBatchSpout("word string")).filter(
        lambda word: not lock.locked()
    )
    with pytest.raises(OperationTypeError, match=r"cannot pickle '_thread.lock'.*in prepare"):
        topology.start(spark, engine="spark")


def test_a_type_that_spark_needs_and_nobody_tells_is_an_error_at_start(
    spark: SparkSession,
) -> None:
    topology = TridentTopology()
    stream = topology.newStream("texts", FeederBatchSpout("text string"))
    stream.each("text", lambda text: text.split(), "word").groupBy("word").persistentAggregate(
        MemoryMapState.Factory(), Count(), "count"
    )
    with pytest.raises(FieldError, match=r"type of field 'word'.*Fields\(word=str\)"):
        topology.start(spark, engine="spark")


def test_a_type_is_not_needed_inside_a_stage(spark: SparkSession) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("text string")
    counts = MemoryMapState.Factory()
    stream = topology.newStream("texts", spout)
    stream.each("text", lambda text: [text.split()], "words").each(
        "words", lambda words: words, Fields(word=str)
    ).groupBy("word").persistentAggregate(counts, Count(), "count")
    with topology.start(spark, engine="spark"):
        spout.feed([("a b a",)], 60)
    assert counts.makeState().multiGet([("a",), ("b",)]) == [2, 1]
