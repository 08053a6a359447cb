"""A state built anew from its history, swap included, beside batches of a million words.

Both count 4 million words into an empty SQLite file. The rebuild is to reach 0.7 of the rate of
such large batches. The history is in files, or in four partitions of a topic, beside batches from
memory on the local engine; or it is a streaming DataFrame of files, beside batches of some files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.report import Figure, throughput
from benchmarks.topologies import word_count
from benchmarks.words import WORDS, write_text
from trident import Fields, IBatchSpout, TextFileSpout, TridentTopology, native
from trident.api.start import start
from trident.backends import sqlite
from trident.batch.start_options import StartOptions
from trident.plan.substitution import plan_rebuild
from trident.spark import local_session
from trident.spouts.kafka import KafkaSpout
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.moving import swap_states
from trident.testing.servers.kafka import KafkaServer

_BATCHES = 4
_FILES = 3  # of ten, so a batch of them is about as large
_PARTITIONS = 4
_TOPIC = "lines"
_ROUNDS = 4
_TARGET = 0.7


def figures(folder: Path) -> Iterator[Figure]:
    """Measure pairs, after one that isn't counted, of each kind of history."""
    texts = write_text(folder / "texts")
    lines = [line for path in sorted(texts.iterdir()) for line in path.read_text().splitlines()]
    share = len(lines) // _BATCHES
    batches = [lines[start : start + share] for start in range(0, len(lines), share)]

    def files() -> TextFileSpout:
        return TextFileSpout(texts / "*.txt")

    yield _figure(folder, "files", "line", files, lambda: _InMemory(batches))
    with KafkaServer(folder / "kafka") as kafka:
        servers = f"{kafka.host}:{kafka.port}"
        _append(servers, lines)

        def topic() -> Any:
            return KafkaSpout.opaque(servers, _TOPIC, fields="value")

        yield _figure(folder, "Kafka", "value", topic, lambda: _InMemory(batches, "value"))
    spark = local_session()

    def read(**options: Any) -> Any:
        return spark.readStream.options(**options).text(f"file://{texts}")

    def some() -> Any:
        return read(maxFilesPerTrigger=_FILES)

    split = native("explode(split(value, ' '))")
    yield _figure(folder, "files, on Spark", "value", read, some, spark, split)
    spark.stop()


def _figure(
    folder: Path,
    name: str,
    field: str,
    history: Callable[[], Any],
    beside: Callable[[], Any],
    spark: Any = None,
    split: Any = None,
) -> Figure:
    times: list[tuple[float, float]] = []
    for number in range(_ROUNDS + 1):
        place = folder / f"{name.replace(', ', '-')}-{number}"
        place.mkdir()
        state = sqlite.opaque(place / "counts.db", "count")
        word = [["an old state"]]
        _run(word_count(_InMemory(word), "line", state), place / "old")
        anew = _rebuild(word_count(history(), field, state, split), place / "new", spark)
        direct: MapStateFactory = sqlite.opaque(place / "direct.db", "count")
        topology = word_count(beside(), field, direct, split)
        times.append((anew, _run(topology, place / "direct", spark)))
    ours, baseline = zip(*times[1:], strict=True)
    compared = f"a rebuild from {name}; batches of 1 M words"
    return throughput(compared, WORDS, ours, baseline, target=_TARGET)


def _append(servers: str, lines: Sequence[str]) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(_TOPIC, _PARTITIONS)])[_TOPIC].result(30)
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": len(lines)})
    for number, line in enumerate(lines):
        producer.produce(_TOPIC, line, partition=number % _PARTITIONS)
    assert not producer.flush(60), "the lines are not in the topic after 60 s"


def _run(topology: TridentTopology, checkpoint: Path, spark: Any = None) -> float:
    began = perf_counter()
    with topology.start(spark, checkpoint, trigger="available") as run:
        run.awaitTermination()
    return perf_counter() - began


def _rebuild(topology: TridentTopology, checkpoint: Path, spark: Any) -> float:
    """Do as the command does."""
    began = perf_counter()
    plan, [swaps] = plan_rebuild(topology.plan(), {"count": "count_2"})
    options = StartOptions(checkpoint=checkpoint, trigger="available", max_pending=4)
    with start(plan, spark, options) as run:
        run.awaitTermination()
    swap_states(swaps)
    seconds = perf_counter() - began
    [(factory, _)] = swaps
    counted = sum(value for _, value in factory.makeMap().getTuples())
    assert counted == WORDS, f"{counted} words are in the state"
    return seconds


class _InMemory(IBatchSpout):
    kind = "transactional"

    def __init__(self, batches: Sequence[Sequence[str]], field: str = "line") -> None:
        self._batches = batches
        self._field = field

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches)

    def emitBatch(self, batchId: int, collector: Any) -> None:
        collector.emitColumns({self._field: self._batches[batchId - 1]})

    def getOutputFields(self) -> Fields:
        return Fields.of(f"{self._field} string")
