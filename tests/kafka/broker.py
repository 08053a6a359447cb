"""What tests do to a Kafka broker, and how they fill topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic


class Quiet:
    """Takes what a client logs, whose broker a test kills."""

    def log(self, *_: Any) -> None:
        pass


class Broker:
    """A broker, by its URL."""

    def __init__(self, url: str) -> None:
        self.servers = url.removeprefix("kafka://")
        self._admin: AdminClient | None = None

    @property
    def settings(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.servers, "logger": Quiet()}

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self.settings)
        return self._admin

    def topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """Make a topic, by default of a name that nobody else has."""
        name = name or f"topic-{uuid4().hex[:8]}"
        config = {key.replace("_", "."): value for key, value in config.items()}
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        made[name].result(30)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(30)

    def delete(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)

    def exists(self, topic: str) -> bool:
        return topic in self.admin.list_topics(timeout=30).topics

    def id_of(self, topic: str) -> str:
        described = self.admin.describe_topics(TopicCollection([topic]))[topic].result(30)
        return str(described.topic_id)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete as retention does: what lies before an offset."""
        at = TopicPartition(topic, partition, before)
        self.admin.delete_records([at])[at].result(30)

    def produce(
        self,
        topic: str,
        values: Iterable[Any],
        *,
        partition: int = 0,
        keys: Iterable[Any] | None = None,
        timestamps: Iterable[int] | None = None,
    ) -> None:
        """Append records, and return when the broker has them."""
        values = list(values)
        keys = [None] * len(values) if keys is None else list(keys)
        times = [0] * len(values) if timestamps is None else list(timestamps)
        # A topic that has just been made may refuse a request and take the next: without
        # idempotence the first would be sent again behind it, and records change their order.
        settings = {"linger.ms": 1, "queue.buffering.max.messages": 0, "enable.idempotence": True}
        producer = Producer({**self.settings, **settings})
        failed: list[Any] = []
        for key, value, time in zip(keys, values, times, strict=True):
            producer.produce(
                topic,
                value,
                key,
                partition,
                timestamp=time,
                on_delivery=lambda error, _: error and failed.append(error),
            )
            producer.poll(0)
        assert producer.flush(60) == 0
        assert not failed, failed

    def transaction(self, name: str | None = None) -> Producer:
        """A producer in the middle of a transaction."""
        producer = Producer({**self.settings, "transactional.id": name or uuid4().hex})
        producer.init_transactions(60)
        producer.begin_transaction()
        return producer

    def append(self, topic: str, values: Iterable[Any], ending: str, *, partition: int = 0) -> None:
        """Append records plainly, or in a transaction that ends by ``commit`` or ``abort``."""
        if ending == "plain":
            self.produce(topic, values, partition=partition)
            return
        producer = self.transaction()
        for value in values:
            producer.produce(topic, value, partition=partition)
        getattr(producer, f"{ending}_transaction")()

    def read(self, topic: str, partition: int = 0, **settings: Any) -> list[Any]:
        """All committed records of a partition, read to its end."""
        fixed: Mapping[str, Any] = {
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
        consumer = Consumer({**self.settings, **fixed, **settings})
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            found = []
            while (message := consumer.poll(30)) is not None and message.error() is None:
                found.append(message)
            return found
        finally:
            consumer.close()
