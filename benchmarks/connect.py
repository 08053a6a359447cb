"""A batch of spouts through Spark Connect, beside the same on a classic session of its server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.report import Figure, latency, median
from trident import Count, FeederBatchSpout, MemoryMapState, TridentTopology
from trident.spark import local_session

_MODE = "SPARK_CONNECT_MODE_ENABLED"
_ROUNDS = 40
_WARM_UP = 10
_PORT = 15_310


def figures(folder: Path) -> Iterator[Figure]:
    """Measure batches of a few tuples, one after the other, and alternate the two sessions."""
    from pyspark.sql.connect.session import SparkSession as Remote

    classic = local_session(
        **{
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": _PORT,
        }
    )
    remote: Any = Remote
    took: dict[str, list[float]] = {"classic": [], "Connect": []}
    connect = remote.builder.remote(f"sc://127.0.0.1:{_PORT}").create()
    for _ in range(3):
        os.environ.pop(_MODE, None)
        took["classic"] += _batches(classic)
        os.environ[_MODE] = "1"
        took["Connect"] += _batches(connect)
    os.environ.pop(_MODE)
    connect.client.close()
    name = "Spark Connect: a batch of 6 words; on a classic session"
    yield latency(name, median(took["Connect"]), median(took["classic"]), target=2.5)
    classic.stop()


def _batches(session: Any) -> list[float]:
    """How long batches take, when those are left out that start workers."""
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).each("word", str.split, "same string")
    stream.groupBy("same").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    took = []
    with topology.start(session, engine="spark"):
        for _ in range(_WARM_UP + _ROUNDS):
            began = perf_counter()
            spout.feed([(word,) for word in "a b c a b a".split()])
            took.append(perf_counter() - began)
    return took[_WARM_UP:]
