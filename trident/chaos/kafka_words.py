"""The record in a topic of Kafka."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trident.backends.kafka.driver import admin_module, driver
from trident.chaos.contender import EpisodePlace, WordSource
from trident.chaos.record import Record
from trident.chaos.servers import SOURCES, started
from trident.spouts.kafka.records import KafkaRecord
from trident.spouts.kafka.spout import KafkaSpout
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class KafkaWords(WordSource):
    """A topic for each episode, with all words in one partition.

    Each driver takes another number of records a batch, so that a batch comes back with others.
    """

    record: Record
    most: int
    servers: str
    troubles: Sequence[Callable[[], str]] = field(default=(), compare=False)

    def before(self, place: EpisodePlace) -> None:
        settings = {"bootstrap.servers": self.servers}
        admin = admin_module().AdminClient(settings)
        admin.create_topics([admin_module().NewTopic(place.name, 1, 1)])[place.name].result(60)
        producer = driver().Producer({**settings, "enable.idempotence": True, "linger.ms": 1})
        for word in self.record.words:
            producer.produce(place.name, word, partition=0)
        if producer.flush(60):
            raise TimeoutError(f"{self.servers} did not take the record within 60 s")

    def make(self, place: EpisodePlace, life: int) -> Any:
        size = random.Random(f"{place.seed} {life}").randint(1, self.most)
        return KafkaSpout.opaque(
            self.servers,
            place.name,
            fields=Fields(word=str),
            translator=_word,
            max_records=size,
            poll_timeout=2.0,
        )


def _word(record: KafkaRecord) -> Sequence[str]:
    return [record.value]


@contextmanager
def kafka_words(text: str, record: Record, most: int, folder: Path) -> Iterator[KafkaWords]:
    """Give the source of ``kafka://host:port``; start a broker for ``kafka:``."""
    servers = text.removeprefix("kafka:").removeprefix("//")
    if servers:
        yield KafkaWords(record, most, servers)
        return
    with started("--source", "kafka", SOURCES, folder) as server:
        yield KafkaWords(record, most, server.url.removeprefix("kafka://"), server.troubles)
