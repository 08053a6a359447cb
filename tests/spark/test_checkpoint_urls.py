"""A DataFrame whose log is in a store, and Spark's own checkpoint in a folder beside it."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import PATIENCE, Lines
from trident.batch.errors import BatchFailedError
from trident.log.checkpoint import groups_at
from trident.log.errors import CheckpointError
from trident.testing import fail_at
from trident.testing.servers.promised import Served


@pytest.fixture
def url(redis_server: Served) -> str:
    return f"{redis_server.url}?prefix={uuid4().hex}"


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path)


def test_without_a_folder_for_spark_it_does_not_start(lines: Lines, url: str) -> None:
    with pytest.raises(CheckpointError, match="group lines reads a streaming .*spark_checkpoint="):
        lines.topology().start(lines.spark, url)
    assert groups_at(url) == []
    assert not (lines.folder / "counts.db").exists()


def test_a_file_system_that_spark_does_not_know_is_refused(lines: Lines, url: str) -> None:
    with pytest.raises(CheckpointError, match="nope://x/y: Spark can't use it: .*No FileSystem"):
        lines.topology().start(lines.spark, url, spark_checkpoint="nope://x/y")
    assert groups_at(url) == []


def test_every_file_is_counted_once_over_restarts(lines: Lines, url: str) -> None:
    shared = lines.folder / "shared"

    def start(**options: object) -> None:
        topology = lines.topology()
        with topology.start(
            lines.spark, url, spark_checkpoint=shared, trigger="available", **options
        ) as run:
            assert run.awaitTermination(PATIENCE)

    lines.write("the cow", "jumped over\nthe moon")
    with fail_at("before write", 1, times=9), pytest.raises(BatchFailedError, match="batch 1"):
        start(max_pending=3, retries=0)
    assert list((shared / "lines" / "staged").glob("*-*.staged"))
    start()
    assert lines.counts == lines.expected
    lines.write("the  end", "the cow")
    start(max_pending=2)
    assert lines.counts == lines.expected
    assert groups_at(url) == ["lines"]
