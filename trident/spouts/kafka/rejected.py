"""Takes records that don't decode: as an error, as nothing, or as a dead letter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trident.backends.kafka.driver import driver
from trident.errors import SourceUnavailableError
from trident.spouts.kafka.records import KafkaRecord, OnRecordError
from trident.spouts.kafka.settings import DeadLetterTopic, KafkaSettings
from trident.states.errors import TridentError


class Rejected:
    """Hands records to a function, and counts them."""

    def __init__(self, handle: OnRecordError) -> None:
        self._handle = handle
        self._count = 0

    def take(self, record: KafkaRecord, error: Exception) -> None:
        """Take a record; called for each that doesn't decode."""
        self._handle(record, error)
        self._count += 1

    def settle(self) -> int:
        """Return how many were taken since the last call, once their letters are confirmed."""
        count, self._count = self._count, 0
        return count

    def close(self) -> None:
        """Release what is held."""


def _skip(record: KafkaRecord, error: Exception) -> None:
    """Do nothing with a record."""


def _fail(record: KafkaRecord, error: Exception) -> None:
    problem = f"{type(error).__name__}: {error}"
    raise KafkaRecordError(record.topic, record.partition, record.offset, problem) from error


class _DeadLetters(Rejected):
    """Sends them to a topic."""

    def __init__(self, topic: str, settings: KafkaSettings) -> None:
        super().__init__(self._send)
        self._topic = topic
        self._settings = settings
        self._producer: Any = None
        self._failures: list[str] = []

    def _send(self, record: KafkaRecord, error: Exception) -> None:
        if self._producer is None:
            self._producer = driver().Producer(self._settings.admin())
        origin = {
            "trident.topic": record.topic,
            "trident.partition": record.partition,
            "trident.offset": record.offset,
            "trident.error": f"{type(error).__name__}: {error}",
        }
        headers = [(name, str(value).encode()) for name, value in origin.items()]
        letter = {
            "topic": self._topic,
            "key": record.key,
            "value": record.value,
            "headers": [*record.headers, *headers],
            "on_delivery": self._delivered,
        }
        try:
            self._producer.produce(**letter)
        except BufferError:  # many are on their way
            self._producer.flush(self._settings.poll_timeout)
            self._producer.produce(**letter)

    def settle(self) -> int:
        if self._producer is not None:
            unsent = self._producer.flush(self._settings.poll_timeout)
            failures, self._failures = self._failures, []
            if unsent or failures:
                self._producer.purge()
                problem = failures[0] if failures else "no answer in time"
                place = f"Kafka at {self._settings.servers}, topic {self._topic}"
                raise SourceUnavailableError(place, f"dead letters are not taken: {problem}")
        return super().settle()

    def close(self) -> None:
        if self._producer is not None:
            self._producer.flush(0)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failures.append(error.str())


def rejecting(settings: KafkaSettings) -> Rejected:
    """Return the object that takes the records of a stream that don't decode."""
    if isinstance(settings.on_error, DeadLetterTopic):
        return _DeadLetters(settings.on_error.topic, settings)
    if callable(settings.on_error):
        return Rejected(settings.on_error)
    return Rejected(_skip if settings.on_error == "skip" else _fail)


@dataclass(eq=False, repr=False)
class KafkaRecordError(TridentError):
    """A record can't be made a tuple; nothing of its batch was written."""

    topic: str
    """The topic."""
    partition: int
    """The partition."""
    offset: int
    """Where in the partition the record is."""
    problem: str
    """What was found."""

    _template = (
        "the record of topic {topic!r}, partition {partition}, offset {offset}: {problem}. Change "
        "what decodes it, or pass such records over with on_error='skip', or put them aside with "
        "on_error=DeadLetterTopic(...) or a function of yours."
    )


@dataclass(eq=False, repr=False)
class KafkaDataLossError(TridentError):
    """Records were removed before the stream has read them."""

    topic: str
    """The topic."""
    partition: int
    """The partition."""
    problem: str
    """What was found."""

    _template = (
        "topic {topic!r}, partition {partition}: {problem}. The run stops before it writes. "
        "Restore the topic, or go on without them with fail_on_data_loss=False; keep records for "
        "longer than a run may stand still."
    )
