"""A state's control record in a compacted topic, and the producer that alone may write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic, sleep
from typing import Any, NamedTuple, NoReturn

from trident.backends.kafka.driver import Admin, DriversLog, admin_module, driver, explain
from trident.states.backing_map import IBackingMap
from trident.states.errors import StaleBatchError, StateError, StateUnavailableError
from trident.states.values import Token

_READ_AT_ONCE = 10_000


class Outgoing(NamedTuple):
    """A record to send."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


class _Fenced(Exception):
    """Another producer has the transactional id now."""


class ControlTopic(IBackingMap):
    """Keeps the control record only; one producer holds the state, and alone may write.

    A producer holds the state from its ``init_transactions`` on, which fences every other one of
    the same transactional id, and aborts its open transaction. Until it is fenced itself, no other
    can write. So what it has read then, and written since, is what the topic holds, and to compare
    with it and write is one step. The transactional id is the topic's name.
    """

    def __init__(self, topic: str, settings: Mapping[str, Any], where: str, timeout: float) -> None:
        self.where = where
        self.prefix = topic
        self._topic = topic
        self._settings = settings
        self._timeout = timeout
        self._reader = TopicReader(settings, where, timeout)
        self._admin = Admin(settings)
        self._producer: Any = None
        self._position = 0
        self._record: bytes | None = None

    def getControl(self) -> bytes | None:
        if self._producer is None:
            self._catch_up()
        return self._record

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        self._hold()
        if self._record != expected:
            return False
        try:
            self._transaction([Outgoing(self._topic, b"control", new, [])])
        except _Fenced:
            return False
        self._record = new
        return True

    def send(self, records: Iterable[Outgoing], token: Token, fence: bytes) -> None:
        """Write records in one transaction; StaleBatchError if another producer holds the state."""
        if self._producer is None or self._record != fence:
            raise StaleBatchError(token)
        try:
            self._transaction(records)
        except _Fenced:
            raise StaleBatchError(token) from None

    def multiGet(self, keys: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where} is a sink: it keeps no entries that could be read")

    def multiPut(self, keys: Sequence[Any], values: Sequence[Any]) -> NoReturn:
        raise StateError(f"{self.where} is a sink: it keeps no entries")

    def close(self) -> None:
        self._producer = None
        self._admin.close()
        self._reader.close()

    def _catch_up(self) -> None:
        """Read what was written since the last call."""
        if not self._position and not self._exists():
            return
        end = self._reader.end(self._topic, 0)
        if end < self._position:
            problem = f"{self._topic} ends at offset {end}, and was read to {self._position}"
            raise StateUnavailableError(self.where, problem, "Restore the topic.")
        while self._position < end:
            messages, self._position = self._reader.read(
                self._topic, 0, self._position, _READ_AT_ONCE
            )
            if messages:
                self._record = messages[-1].value()

    def _hold(self) -> None:
        """Take the state: fence the last holder, then read what it has written."""
        if self._producer is not None:
            return
        if not self._exists():
            self._make_topic()
        producer = driver().Producer(
            {
                "partitioner": "murmur2_random",  # as the other clients of Kafka
                **self._settings,
                "transactional.id": self._topic,
                "enable.idempotence": True,
                "logger": DriversLog(),
            }
        )
        self._ask(lambda: producer.init_transactions(self._timeout))
        self._catch_up()
        self._producer = producer

    def _transaction(self, records: Iterable[Outgoing]) -> None:
        producer = self._producer

        def write() -> None:
            producer.begin_transaction()
            for topic, key, value, headers in records:
                while True:
                    try:
                        producer.produce(topic, value, key, headers=headers)
                        break
                    except BufferError:
                        producer.poll(0.1)
                producer.poll(0)
            producer.commit_transaction(self._timeout)

        self._ask(write)

    def _ask(self, ask: Callable[[], object]) -> None:
        """Ask the cluster to write; after a failure the next producer finds what was written."""
        kafka = driver()
        try:
            ask()
        except kafka.KafkaException as error:
            self._producer = None
            code, codes = error.args[0].code(), kafka.KafkaError
            if code in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH):
                raise _Fenced from error
            if code == codes.MSG_SIZE_TOO_LARGE:
                advice = "Make it smaller, or raise message.max.bytes in settings= and the topic."
                raise StateError(f"{self.where}: a record is too large. {advice}") from error
            raise explain(self.where, error) from error

    def _exists(self) -> bool:
        """Ask the cluster whether the control topic exists."""
        topics = driver().TopicCollection([self._topic])
        asked = self._admin.client().describe_topics(topics, request_timeout=self._timeout)
        return self._wait(asked, driver().KafkaError.UNKNOWN_TOPIC_OR_PART)

    def _make_topic(self) -> None:
        topic = admin_module().NewTopic(self._topic, 1, config={"cleanup.policy": "compact"})
        asked = self._admin.client().create_topics([topic], request_timeout=self._timeout)
        self._wait(asked, driver().KafkaError.TOPIC_ALREADY_EXISTS)

    def _wait(self, asked: Mapping[str, Any], refusal: int) -> bool:
        """Wait for an answer about the control topic; return False if it is `refusal`."""
        try:
            asked[self._topic].result()
        except driver().KafkaException as error:
            if error.args[0].code() != refusal:
                raise explain(self.where, error) from error
            return False
        return True


class TopicReader:
    """Reads records of committed transactions; used by one thread."""

    def __init__(self, settings: Mapping[str, Any], where: str, timeout: float) -> None:
        self._settings = settings
        self._where = where
        self._timeout = timeout
        self._consumer: Any = None
        self._placed: tuple[str, int, int] | None = None

    def end(self, topic: str, partition: int) -> int:
        """Return the last stable offset of an existing topic."""
        kafka = driver()
        at = kafka.TopicPartition(topic, partition)
        # Not every broker knows a topic that was just made, or whose broker just began.
        unknown = kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, kafka.KafkaError._UNKNOWN_PARTITION
        deadline = monotonic() + self._timeout
        while True:
            remaining = max(0.1, deadline - monotonic())
            try:
                _, end = self._client().get_watermark_offsets(at, timeout=remaining)
            except kafka.KafkaException as error:
                if error.args[0].code() not in unknown or monotonic() > deadline:
                    raise explain(f"{self._where}, {topic}-{partition}", error) from error
                sleep(0.02)
            else:
                return int(end)

    def read(self, topic: str, partition: int, start: int, limit: int) -> tuple[list[Any], int]:
        """Return up to `limit` messages from `start` on, and the offset to go on from."""
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
