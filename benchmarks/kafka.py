"""From a record's timestamp in Kafka until it is readable in Redis, with a kill in between.

A process appends records of 1,000 keys to four partitions, so many a second; a topology counts them
by key in Redis, which appends to its file, and keeps the latest timestamp of each partition beside.
Another process reads these timestamps, of the last batch that is committed: so it knows up to which
record all were readable when it looked. After ten seconds the driver is killed and started again;
the figure is how long nothing is committed. Last, a process asks for four counts at a time, as fast
as it can, while batches are written. All processes share this machine's cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.report import Figure, limit, rate
from trident import Count, Max, TridentTopology
from trident.backends import state_from_url
from trident.errors import NoStateError
from trident.spouts.kafka import KafkaSpout
from trident.testing.servers.kafka import KafkaServer
from trident.testing.servers.redis import RedisServer

RATES = (10_000, 100_000)
_PARTITIONS = 4
_KEYS = 1_000
_SECONDS = 10.0
_WARM = 3.0
"""Seconds of each driver's life that are not counted."""
_STEP = 0.005
"""Seconds between two bursts of records."""
_LOOK = 0.001
"""Seconds between two looks at what is readable."""


@dataclass(frozen=True)
class Place:
    """Where one measurement's topic, states and log are."""

    servers: str
    topic: str
    redis: str
    checkpoint: Path

    def state(self, name: str) -> str:
        """The URL of a state."""
        return f"{self.redis}?prefix={self.topic}-{name}"


def figures(folder: Path) -> Iterator[Figure]:
    """Measure each rate: how long records wait, the kill, and queries beside it."""
    with (
        KafkaServer(folder / "kafka") as kafka,
        RedisServer(folder / "redis", "--appendonly", "yes", "--appendfsync", "everysec") as redis,
    ):
        for records in RATES:
            servers = f"{kafka.host}:{kafka.port}"
            place = Place(servers, f"records-{records}", redis.url, folder / f"log-{records}")
            yield from _figures(place, records)


def _figures(place: Place, records: int) -> Iterator[Figure]:
    _make_topic(place)
    name = f"Kafka to Redis, {records:,} records/s"
    with Watch(place) as seen, _running(append, place, records):
        with _running(count, place):
            seen.until(seen.has_begun)
            seen.look_for(_WARM)
            waited = sorted(seen.look_for(_SECONDS))
        killed = time.time()
        with _running(count, place):
            seen.until(lambda: seen.moment > killed)
            pause = time.time() - killed
            seen.look_for(_WARM)
            asked = ask(place)
    for share, most in ((50, 0.05), (99, 0.25)):
        wait = waited[len(waited) * share // 100]
        yield limit(f"{name}: readable after, p{share}", wait, target=most)
    yield limit(f"{name}: from a kill to the next commit", pause, target=5.0)
    yield rate(f"{name}: queries of four keys meanwhile", *asked, target=1_000)
    with _running(count, place):
        _check(place)


@contextmanager
def _running(work: Callable[..., None], *given: object) -> Iterator[None]:
    """Run a process beside this one; it is killed at the end."""
    process = get_context("spawn").Process(target=work, args=given, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _make_topic(place: Place) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": place.servers})
    admin.create_topics([NewTopic(place.topic, _PARTITIONS)])[place.topic].result(30)


def _check(place: Place) -> None:
    """Wait until each record of the topic is counted once; raise where it is not so."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "check"})
    ends = [
        consumer.get_watermark_offsets(TopicPartition(place.topic, number), 30)[1]
        for number in range(_PARTITIONS)
    ]
    consumer.close()
    counted, deadline = 0, time.monotonic() + 60
    with closing(state_from_url(place.state("counts")).makeState()) as state:
        while counted < sum(ends) and time.monotonic() < deadline:
            time.sleep(_STEP)
            keys = [(f"key {number}",) for number in range(_KEYS)]
            counted = sum(each or 0 for each in state.multiGet(keys))
    if counted != sum(ends):
        raise RuntimeError(f"{counted:,} records were counted of {sum(ends):,}")


def count(place: Place) -> None:
    """Be the driver."""
    spout = KafkaSpout.opaque(place.servers, place.topic, fields="partition, key, timestamp")
    topology = TridentTopology()
    records = topology.newStream("records", spout)
    records.groupBy("key").persistentAggregate(place.state("counts"), Count(), "count")
    latest = records.groupBy("partition")
    latest.persistentAggregate(place.state("seen"), "timestamp", Max(), "latest")
    with topology.start(checkpoint=place.checkpoint) as run:
        run.awaitTermination()


def append(place: Place, records: int) -> None:
    """Append so many records a second, for ever."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": place.servers, "linger.ms": 2}
    producer = Producer({**settings, "queue.buffering.max.messages": 1_000_000})
    keys = [f"key {number}" for number in range(_KEYS)]
    done, begun = 0, time.monotonic()
    while True:
        due = int((time.monotonic() - begun) * records)
        for number in range(done, due):
            producer.produce(place.topic, None, keys[number % _KEYS], number % _PARTITIONS)
        done = due
        producer.poll(0)
        time.sleep(_STEP)


def ask(place: Place) -> tuple[int, Sequence[float]]:
    """Ask for four counts at a time; return how often, and in how many seconds."""
    asked, begun = 0, time.monotonic()
    with closing(state_from_url(place.state("counts")).makeState()) as state:
        while (seconds := time.monotonic() - begun) < _SECONDS:
            state.multiGet([(f"key {(4 * asked + number) % _KEYS}",) for number in range(4)])
            asked += 1
    return asked, [seconds]


class Watch:
    """Reads up to which record all are readable."""

    def __init__(self, place: Place) -> None:
        self._state: Any = state_from_url(place.state("seen")).makeState()
        self._latest: Sequence[int | None] = [None] * _PARTITIONS
        self._waited: list[float] = []

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._state.close()

    @property
    def moment(self) -> float:
        """The timestamp up to which all partitions are readable, in seconds."""
        return min(each or 0 for each in self._latest) / 1e3

    def has_begun(self) -> bool:
        """Whether records of all partitions are readable."""
        return self.moment > 0

    def until(self, reached: Callable[[], bool]) -> None:
        """Look until something is so."""
        while not reached():
            self._look()

    def look_for(self, seconds: float) -> Sequence[float]:
        """Look for some time; return how long records have waited, one of each millisecond."""
        self._waited = []
        deadline = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > deadline)
        return self._waited

    def _look(self) -> None:
        with suppress(NoStateError):
            latest = self._state.multiGet([(number,) for number in range(_PARTITIONS)])
            now = time.time()
            for before, after in zip(self._latest, latest, strict=True):
                if before is not None:
                    self._waited += [now - at / 1e3 for at in range(before + 1, after + 1)]
            self._latest = latest
        time.sleep(_LOOK)
