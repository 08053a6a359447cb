"""Spouts on Spark Connect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.connect import Server, session_of
from tests.spark.test_tasks import WORDS, in_files, stored
from tests.topologies.conftest import feed
from trident import Count, FeederBatchSpout, TridentTopology
from trident.spark.errors import SparkSessionError


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("connect"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def spark(server: Server) -> Iterator[SparkSession]:
    with session_of(server.url) as session:
        yield session


@pytest.mark.parametrize("hosted", ["driver", "executor"])
def test_words_are_counted_once(spark: SparkSession, tmp_path: Path, hosted: str) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    factory = replace(in_files(tmp_path / "state"), hosted=hosted)
    stream = topology.newStream("words", spout).groupBy("word")
    stream.persistentAggregate(factory, Count(), "count")
    with topology.start(spark, tmp_path / "checkpoint", engine="spark") as run:
        feed(run, spout, [(word,) for word in WORDS], [("w3",), ("new",)])
        progress = run.lastProgress
    assert progress is not None
    assert (progress.keys_read, progress.keys_written) == (2, 2)
    expected = Counter([*WORDS, "w3", "new"])
    assert stored(factory, [*expected, "none"]) == {**expected, "none": None}


def test_a_streaming_frame_is_refused_with_what_to_do(spark: SparkSession) -> None:
    topology = TridentTopology()
    topology.newStream("ticks", spark.readStream.format("rate").load()).peek(print)
    with pytest.raises(SparkSessionError, match=r"stream 'ticks'.*read the source by a spout"):
        topology.start(spark)
