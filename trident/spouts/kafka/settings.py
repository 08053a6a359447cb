"""What a stream from Kafka is told: where, what, from when, how much, and how clients connect."""

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
    # How far the stream has come is in its own log, and a partition is read by whom that says.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # Records that are gone are an error, or told; never passed over by the driver.
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}
"""The driver's settings that exactness rests on."""
_DEFAULTS: Mapping[str, Any] = {
    "group.id": "trident",
    "isolation.level": "read_committed",
    # The end of a partition behind a transaction's marker shows only when such a wait is over.
    "fetch.wait.max.ms": 50,
    # A queue that was full is filled again at once, not after a second.
    "fetch.queue.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
}


@dataclass(frozen=True)
class DeadLetterTopic:
    """Where records go that don't decode: a topic of the same cluster, which has to exist.

    A dead letter has the record's key, value and headers, and headers that tell where it is from:
    ``trident.topic``, ``trident.partition``, ``trident.offset`` and ``trident.error``. It is
    confirmed before its batch goes on, and sent again where the batch is emitted again: topic,
    partition and offset tell duplicates.

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
    """All that is known of a stream from Kafka: the checked parameters of
    :meth:`KafkaSpout.opaque`."""

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
    """Where to begin in some partitions, by ``topic-partition``, whatever the strategy."""

    def __repr__(self) -> str:
        # Names only: there is no telling which values are secret.
        return f"<{self.place}, client settings: {', '.join(sorted(self.client)) or 'none'}>"

    @property
    def place(self) -> str:
        """What is read, for errors."""
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
    """Where to begin in the partitions that there are when a stream runs for the first time.

    A partition that the log knows goes on where its last committed batch ended, whatever the
    strategy: a checkpoint is what Storm calls a deployment. A partition, or topic, that appears
    later begins at its first record, or some would never be read.

    Examples
    --------
    >>> FirstPollOffsetStrategy("LATEST").prefers_committed
    False
    """

    EARLIEST = "EARLIEST"
    """At the first record that there is."""
    LATEST = "LATEST"
    """Behind the last one."""
    TIMESTAMP = "TIMESTAMP"
    """At the first record as young as ``timestamp``, or behind the last one."""
    UNCOMMITTED_EARLIEST = "UNCOMMITTED_EARLIEST"
    """Where the consumer group of the setting ``group.id`` has committed an offset, there, to
    take over from another consumer; else as EARLIEST. Nothing is ever committed to the group."""
    UNCOMMITTED_LATEST = "UNCOMMITTED_LATEST"
    """Likewise, else as LATEST."""
    UNCOMMITTED_TIMESTAMP = "UNCOMMITTED_TIMESTAMP"
    """Likewise, else as TIMESTAMP."""

    @property
    def prefers_committed(self) -> bool:
        """Whether a consumer group's offset comes first."""
        return self.value.startswith("UNCOMMITTED_")

    @property
    def otherwise(self) -> str:
        """EARLIEST, LATEST or TIMESTAMP."""
        return self.value.removeprefix("UNCOMMITTED_")
