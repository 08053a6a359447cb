"""Reading partitions in one process: one consumer, whose positions we choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple

from trident.backends.kafka.driver import driver
from trident.errors import SourceUnavailableError
from trident.spouts.kafka.settings import KafkaSettings

_AT_ONCE = 10_000

Place = tuple[str, int]
"""A topic and the number of a partition."""


class OffsetOutOfRange(Exception):
    """The records to read don't exist any more, or never did."""


class Fetched(NamedTuple):
    """Some records of a partition, and the offset after them, and after what is no record."""

    messages: list[Any]
    next: int


@dataclass
class _Ahead:
    """Records that were read of a partition and not handed out yet."""

    position: int
    """The offset at which they begin."""
    messages: list[Any] = field(default_factory=list)
    end: int | None = None
    """The end of the partition, if nothing was read after it."""
    failure: Any = None
    paused: bool = False

    @property
    def reached(self) -> int:
        """The offset up to which the partition is known."""
        last = self.messages[-1].offset() + 1 if self.messages else self.position
        return last if self.end is None else max(last, self.end)

    def take(self, count: int) -> Fetched:
        taken, self.messages = self.messages[:count], self.messages[count:]
        if self.messages:
            self.position = self.messages[0].offset()
        else:
            last = taken[-1].offset() + 1 if taken else self.position
            self.position = last if self.end is None else max(last, self.end)
        return Fetched(taken, self.position)


class KafkaReader:
    """Reads any partitions, one after the other, and keeps records that arrive of others; connects
    late."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._consumer: Any = None
        self._ahead: dict[Place, _Ahead] = {}
        self._trouble = ""

    def keep(self, places: Iterable[Place]) -> None:
        """Read only these partitions from now on."""
        for place in self._ahead.keys() - set(places):
            self._drop(place)

    def read(self, place: Place, start: int, until: int, limit: int) -> Fetched:
        """Read from `start`: up to `limit` records, fewer only at `until`; raises OffsetOutOfRange
        if they were removed."""
        ahead = self._read_from(place, start)
        if self._await(place, ahead, until, limit) or ahead.messages:
            return ahead.take(limit)
        raise self._unavailable(place, self._late(ahead, until))

    def read_exactly(self, place: Place, start: int, until: int) -> list[Any]:
        """Read all records from `start` to before `until`; raises as :meth:`read` does."""
        ahead = self._read_from(place, start)
        if not self._await(place, ahead, until, None):
            self._drop(place)
            raise self._unavailable(place, self._late(ahead, until))
        count = sum(message.offset() < until for message in ahead.messages)
        return ahead.take(count).messages

    def bounds(self, place: Place) -> tuple[int, int]:
        """Where the partition's records begin and end now."""
        kafka = driver()
        try:
            found: tuple[int, int] = self._connect().get_watermark_offsets(
                kafka.TopicPartition(*place), timeout=self._settings.poll_timeout
            )
        except kafka.KafkaException as error:
            raise self._unavailable(place, error.args[0].str()) from error
        return found

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None
        self._ahead = {}

    def _await(self, place: Place, ahead: _Ahead, until: int, limit: int | None) -> bool:
        """Poll until enough has arrived; return False if that takes too long."""
        deadline = monotonic() + self._settings.poll_timeout
        while True:
            if ahead.failure is not None:
                self._fail(place, ahead)
            if ahead.reached >= until or (limit is not None and len(ahead.messages) >= limit):
                return True
            remaining = deadline - monotonic()
            if remaining <= 0:
                return False
            self._poll(place, remaining)

    def _poll(self, place: Place, seconds: float) -> None:
        consumer = self._consumer
        self._go_on(place)
        message = consumer.poll(seconds)
        if message is None:
            return
        ended = driver().KafkaError._PARTITION_EOF
        for each in (message, *consumer.consume(_AT_ONCE, 0)):
            of = each.topic(), each.partition()
            ahead = self._ahead.get(of)
            error = each.error()
            if ahead is None:
                continue
            if error is None:
                ahead.messages.append(each)
                ahead.end = None
            elif error.code() == ended:
                ahead.end = each.offset()
            else:
                ahead.failure = error
        self._hold_back(place)

    def _hold_back(self, place: Place) -> None:
        """Pause partitions with enough records."""
        enough = 2 * self._settings.max_records
        for other, ahead in self._ahead.items():
            if other != place and not ahead.paused and len(ahead.messages) >= enough:
                self._consumer.pause([driver().TopicPartition(*other)])
                ahead.paused = True

    def _go_on(self, place: Place) -> None:
        """Resume a partition that was paused."""
        if self._ahead[place].paused:
            self._consumer.resume([driver().TopicPartition(*place)])
            self._ahead[place].paused = False

    def _read_from(self, place: Place, start: int) -> _Ahead:
        """The records ahead from `start` on."""
        ahead = self._ahead.get(place)
        if ahead is not None and ahead.position == start and ahead.failure is None:
            if len(ahead.messages) < self._settings.max_records:
                self._go_on(place)
            return ahead
        self._drop(place)
        self._connect().incremental_assign([driver().TopicPartition(*place, start)])
        ahead = self._ahead[place] = _Ahead(start)
        return ahead

    def _drop(self, place: Place) -> None:
        if place in self._ahead:
            self._go_on(place)  # it would still be paused when it is assigned anew
            del self._ahead[place]
            self._consumer.incremental_unassign([driver().TopicPartition(*place)])

    def _fail(self, place: Place, ahead: _Ahead) -> None:
        self._drop(place)
        if ahead.failure.code() == driver().KafkaError._AUTO_OFFSET_RESET:
            raise OffsetOutOfRange
        raise self._unavailable(place, ahead.failure.str())

    def _connect(self) -> Any:
        if self._consumer is None:
            self._consumer = driver().Consumer(
                {**self._settings.consumer(), "error_cb": self._note_trouble}
            )
        return self._consumer

    def _note_trouble(self, error: Any) -> None:
        self._trouble = error.str()

    def _late(self, ahead: _Ahead, until: int) -> str:
        if ahead.end is not None:
            return f"it ends at offset {ahead.end}, and is to be read to {until}"
        trouble = f"; the driver says: {self._trouble}" if self._trouble else ""
        self._trouble = ""
        return f"no answer within {self._settings.poll_timeout:g} s{trouble}"

    def _unavailable(self, place: Place, problem: str) -> SourceUnavailableError:
        topic, partition = place
        return SourceUnavailableError(
            f"Kafka at {self._settings.servers}, topic {topic}, partition {partition}", problem
        )
