"""The settings of a stream from Kafka: brokers, topics, begin, sizes, and how clients connect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

from trident.backends.kafka.driver import DriversLog
from trident.spouts.kafka.records import OnRecordError, Translation
from trident.tuples.fields import Fields

FIXED: Mapping[str, Any] = {
    # The stream's own log knows its offsets and which process reads a partition.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Removed records are an error, or are logged; the driver must not skip them.
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
"""The driver's settings that exactness rests on."""
_DEFAULTS: Mapping[str, Any] = {
    "group.id": "trident",
    "isolation.level": "read_committed",
    # After a transaction's marker the end of a partition is known only after such a wait.
    "fetch.wait.max.ms": 50,
    # A queue that was full is filled again at once, not after a second.
    "fetch.queue.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
}


@dataclass(frozen=True)
class DeadLetterTopic:
    """A topic for records that don't decode, in the same cluster; it has to exist.

    A dead letter has the record's key, value and headers, and headers with its origin:
    ``trident.topic``, ``trident.partition``, ``trident.offset`` and ``trident.error``. It is
    confirmed before its batch goes on, and sent again if the batch is emitted again: duplicates
    have the same topic, partition and offset.

    Parameters
    ----------
    topic : str
        The topic.

    Examples
    --------
    >>> DeadLetterTopic("sentences.dead")
    DeadLetterTopic(topic='sentences.dead')
    """

    topic: str


OnError = Literal["fail", "skip"] | OnRecordError | DeadLetterTopic


@dataclass(frozen=True, repr=False)
class KafkaSettings:
    """The checked parameters of :meth:`KafkaSpout.opaque`."""

    servers: str
    topics: tuple[str, ...] | re.Pattern[str]
    first_poll: FirstPollOffsetStrategy
    timestamp: int | None
    fields: Fields
    translation: Translation
    max_records: int
    on_error: OnError
    fail_on_data_loss: bool
    poll_timeout: float
    partition_refresh: float
    client: Mapping[str, Any]
    offsets: Mapping[str, int] = field(default_factory=dict)
    """The first offsets of some partitions, by ``topic-partition``, whatever the strategy."""

    def __repr__(self) -> str:
        # Names only, as any value may be secret.
        return f"<{self.place}, client settings: {', '.join(sorted(self.client)) or 'none'}>"

    @property
    def place(self) -> str:
        """The topics and their brokers, for errors."""
        topics = self.topics
        what = topics.pattern if isinstance(topics, re.Pattern) else ", ".join(topics)
        return f"Kafka at {self.servers}, {what}"

    @property
    def group(self) -> str | None:
        """The consumer group whose offsets the first poll may take over."""
        return self.client.get("group.id") if self.first_poll.prefers_committed else None

    @property
    def reads_committed(self) -> bool:
        """Whether only records of committed transactions are read."""
        return str(self.consumer()["isolation.level"]) == "read_committed"

    def consumer(self) -> dict[str, Any]:
        """The driver's settings of a consumer."""
        return {**_DEFAULTS, **self.client, **FIXED, **self._connection()}

    def admin(self) -> dict[str, Any]:
        """Those of a client that asks the cluster about itself, or writes to it."""
        return {**self.client, **self._connection()}

    def _connection(self) -> dict[str, Any]:
        return {"bootstrap.servers": self.servers, "logger": DriversLog()}


class FirstPollOffsetStrategy(Enum):
    """Where a stream begins, when it first runs, in the partitions that exist then.

    A partition that the log knows goes on after its last committed batch, whatever the strategy: a
    checkpoint is what Storm calls a deployment. A partition, or topic, that appears later begins at
    its first record, or some would never be read.

    Examples
    --------
    >>> FirstPollOffsetStrategy("LATEST").prefers_committed
    False
    """

    EARLIEST = "EARLIEST"
    """At the first existing record."""
    LATEST = "LATEST"
    """After the last one."""
    TIMESTAMP = "TIMESTAMP"
    """At the first record from ``timestamp`` on, or after the last one."""
    UNCOMMITTED_EARLIEST = "UNCOMMITTED_EARLIEST"
    """At the offset that the consumer group of the setting ``group.id`` has committed, to take
    over from another consumer; without one as EARLIEST. Nothing is ever committed to the group."""
    UNCOMMITTED_LATEST = "UNCOMMITTED_LATEST"
    """Likewise; without such an offset as LATEST."""
    UNCOMMITTED_TIMESTAMP = "UNCOMMITTED_TIMESTAMP"
    """Likewise; without such an offset as TIMESTAMP."""

    @property
    def prefers_committed(self) -> bool:
        """Whether a consumer group's offset comes first."""
        return self.value.startswith("UNCOMMITTED_")

    @property
    def otherwise(self) -> str:
        """EARLIEST, LATEST or TIMESTAMP."""
        return self.value.removeprefix("UNCOMMITTED_")
