"""Reading one partition, from an offset to the end of what is committed in Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, sleep
from typing import Any

from trident.backends.kafka.driver import DriversLog, driver, unavailable
from trident.states.errors import StateUnavailableError


class TopicReader:
    """Reads records of committed transactions; used by one thread."""

    def __init__(self, settings: Mapping[str, Any], where: str, timeout: float) -> None:
        self._settings = settings
        self._where = where
        self._timeout = timeout
        self._consumer: Any = None
        self._placed: tuple[str, int, int] | None = None

    def end(self, topic: str, partition: int) -> int:
        """Return the last stable offset of a topic that is there."""
        kafka = driver()
        at = kafka.TopicPartition(topic, partition)
        # A topic that was just made, or whose broker just began, is not known everywhere.
        unknown = kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, kafka.KafkaError._UNKNOWN_PARTITION
        deadline = monotonic() + self._timeout
        while True:
            left = max(0.1, deadline - monotonic())
            try:
                _, end = self._client().get_watermark_offsets(at, timeout=left)
            except kafka.KafkaException as error:
                if error.args[0].code() not in unknown or monotonic() > deadline:
                    raise unavailable(f"{self._where}, {topic}-{partition}", error) from error
                sleep(0.02)
            else:
                return int(end)

    def read(self, topic: str, partition: int, start: int, limit: int) -> tuple[list[Any], int]:
        """Return up to `limit` messages from `start` on, and where to go on behind them.

        Fewer than `limit` only where the end that there was at the call is reached.
        """
        end = self.end(topic, partition)
        if start >= end:
            return [], start
        kafka, consumer = driver(), self._client()
        if self._placed != (topic, partition, start):
            consumer.assign([kafka.TopicPartition(topic, partition, start)])
        self._placed = None
        found: list[Any] = []
        following = start
        deadline = monotonic() + self._timeout
        while following < end and len(found) < limit:
            message = consumer.poll(max(0.0, deadline - monotonic()))
            if message is None:
                raise StateUnavailableError(
                    self._where, f"{topic}-{partition}: no answer within {self._timeout:g} s"
                )
            following = message.offset()
            error = message.error()
            if error is None:
                found.append(message)
                following += 1
            elif error.code() != kafka.KafkaError._PARTITION_EOF:
                raise StateUnavailableError(self._where, f"{topic}-{partition}: {error.str()}")
        self._placed = topic, partition, following
        return found, following

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._placed = None

    def _client(self) -> Any:
        if self._consumer is None:
            self._consumer = driver().Consumer(
                {
                    "group.id": "trident",
                    "fetch.wait.max.ms": 10,
                    **self._settings,
                    "isolation.level": "read_committed",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "logger": DriversLog(),
                }
            )
        return self._consumer
