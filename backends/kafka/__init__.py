"""A topic of Kafka as a sink, exact for readers that use this library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from trident.backends.kafka.control_topic import ControlTopic, TopicReader
from trident.backends.kafka.state import CommittedRecord, CommittedRecords, KafkaState
from trident.states.errors import UsageError
from trident.states.state import StateFactory
from trident.states.values import StateType

__all__ = ["CommittedRecord", "CommittedRecords", "KafkaSink", "KafkaState", "sink"]

_FIXED = {"transactional.id", "enable.idempotence", "bootstrap.servers", "logger"}


@dataclass(frozen=True)
class KafkaSink(StateFactory):
    """The factory that :func:`sink` returns."""

    servers: str
    topic: str
    prefix: str | None = None
    timeout: float = 10.0
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)

    kind = StateType.OPAQUE
    hosted: Literal["driver", "executor"] = field(default="driver", init=False)

    def __post_init__(self) -> None:
        for name in sorted(self.settings.keys() & _FIXED):
            raise UsageError(f"kafka.sink: the setting {name!r} is the sink's own; leave it out")

    @property
    def label(self) -> str:
        return "kafka.sink"

    @property
    def identity(self) -> tuple[str, ...]:  # type: ignore[override]
        """What tells this sink from others."""
        return "kafka", self.servers, self._control

    def named(self, name: str) -> KafkaSink:
        """Return this sink with `name` for its prefix, where it has none yet."""
        return self if self.prefix is not None else replace(self, prefix=name)

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> KafkaState:
        return KafkaState(self._place(), self.topic)

    def records(self) -> CommittedRecords:
        """Return what reads the sink's committed records, in any process."""
        reader = TopicReader(self._connection, self._where, self.timeout)
        return CommittedRecords(self._place(), reader, self.topic)

    @property
    def _connection(self) -> dict[str, Any]:
        return {**self.settings, "bootstrap.servers": self.servers}

    @property
    def _where(self) -> str:
        return f"Kafka at {self.servers}, topic {self.topic}"

    @property
    def _control(self) -> str:
        return f"{self.topic}.{self.prefix or 'state'}.trident"

    def _place(self) -> ControlTopic:
        return ControlTopic(self._control, self._connection, self._where, self.timeout)


def sink(
    servers: str,
    topic: str,
    *,
    prefix: str | None = None,
    timeout: float = 10.0,
    settings: Mapping[str, Any] | None = None,
) -> KafkaSink:
    """Return a factory of states that append to a topic, for ``partitionPersist``.

    What an attempt appended is in one transaction of Kafka's, under headers that tell batch and
    attempt. :meth:`KafkaSink.records` reads those of committed attempts, each once. Any other
    consumer that reads committed transactions finds each record at least once, as Kafka knows
    nothing of attempts that the topology has given up after that.

    Parameters
    ----------
    servers : str
        Brokers to begin with, ``"host:port,host:port"``.
    topic : str
        The topic, which has to exist.
    prefix : str, optional
        What tells the sink from others in the topic; None takes the name of the state. The
        control record is in the topic ``<topic>.<prefix>.trident``, which is made where it is
        missing; that is the transactional id, too.
    timeout : float
        Seconds to wait for an answer.
    settings : mapping, optional
        Settings of librdkafka, for security among others. Their values are never shown.

    Raises
    ------
    UsageError
        For a setting that is the sink's own.

    Examples
    --------
    >>> counts = sink("localhost:9092", "counts").named("sums")
    >>> counts.hosted, counts.kind.value, counts.identity[-1]
    ('driver', 'opaque', 'counts.sums.trident')
    """
    return KafkaSink(servers, topic, prefix, timeout, dict(settings or {}))
