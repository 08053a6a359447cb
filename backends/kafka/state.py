"""A sink whose records carry the attempt that wrote them, and the reader of those that count."""

from __future__ import annotations

import re
from typing import NamedTuple

from trident.backends.kafka.control_topic import ControlTopic, Outgoing, TopicReader
from trident.states.control import Control, ControlRecord
from trident.states.errors import StateError
from trident.states.state import Batch, State
from trident.states.values import StateType

TOKEN = "trident.token"
"""The header with the attempt: ``txid/attempt``."""
STATE = "trident.state"
"""The header with the state, because several may write to one topic."""
_TOKEN = re.compile(rb"([0-9]{1,19})/([0-9]{1,19})")


class KafkaState(State):
    """Appends a batch's records to topics, in one transaction of Kafka's.

    Made by :func:`trident.backends.kafka.sink`; lives on the driver.
    """

    kind = StateType.OPAQUE

    def __init__(self, place: ControlTopic, topic: str) -> None:
        self.control = Control(place)
        self._place = place
        self._topic = topic
        self._pending: list[Outgoing] = []
        self._headers: list[tuple[str, bytes]] = []

    def beginCommit(self, batch: Batch) -> None:
        self._pending = []
        token = self._record(batch).token
        mark = f"{token.txid}/{token.attempt}".encode()
        self._headers = [(TOKEN, mark), (STATE, str(self._place.prefix).encode())]

    def send(
        self,
        value: bytes | None,
        key: bytes | None = None,
        topic: str | None = None,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None:
        """Append a record to the batch that has begun; it is written by the commit.

        Parameters
        ----------
        value, key : bytes or None
            The record.
        topic : str, optional
            By default the sink's.
        headers : list of (str, bytes), optional
            More headers.
        """
        # Ours come last, as the last header of a name counts.
        record = Outgoing(topic or self._topic, key, value, [*(headers or ()), *self._headers])
        self._pending.append(record)

    def commit(self, batch: Batch) -> None:
        record = self._record(batch)
        pending, self._pending = self._pending, []
        if pending:
            self._place.send(pending, record.token, record.encode())

    def close(self) -> None:
        self._place.close()

    def _record(self, batch: Batch) -> ControlRecord:
        if not isinstance(batch, ControlRecord):
            raise StateError(
                f"{self._place.where}: a sink is part of a topology, whose log says which of its "
                f"attempts count; it was begun with {batch!r}. Use partitionPersist."
            )
        return batch


class CommittedRecord(NamedTuple):
    """One record of a sink."""

    offset: int
    txid: int
    """The batch that wrote it."""
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class CommittedRecords:
    """Reads a sink's records in any process; made by :meth:`KafkaSink.records`.

    A record counts when the attempt in its header is the one that the log has committed for its
    batch, which the state's control record tells. Where that is not decided yet, reading ends
    before the record, and a later call goes on there.
    """

    def __init__(self, place: ControlTopic, reader: TopicReader, topic: str) -> None:
        self._control = Control(place)
        self._place = place
        self._reader = reader
        self._topic = topic

    def read(
        self, partition: int = 0, start: int = 0, limit: int = 10_000
    ) -> tuple[list[CommittedRecord], int]:
        """Return committed records of a partition from `start` on.

        Parameters
        ----------
        partition : int
            The partition of the sink's topic.
        start : int
            An offset: 0, or what the call before returned.
        limit : int
            How many of Kafka's records to look at, at most.

        Returns
        -------
        records : list of CommittedRecord
            Those that count, in order.
        next : int
            Where to go on. A program that stores it together with the results of the records has
            them exactly once.

        Raises
        ------
        StateUnavailableError
            Where the cluster doesn't answer.
        """
        # The control record first: the next call reads what it doesn't know yet.
        control = self._control.read()
        messages, following = self._reader.read(self._topic, partition, start, limit)
        found: list[CommittedRecord] = []
        for message in messages:
            headers = dict(message.headers() or ())
            token = _TOKEN.fullmatch(headers.get(TOKEN) or b"")
            # Any program may write to the topic: records of no attempt of this state are skipped.
            if headers.get(STATE) != str(self._place.prefix).encode() or token is None:
                continue
            txid, attempt = map(int, token.groups())
            if control is None or txid > control.committed:
                return found, message.offset()
            if control.is_committed(txid, attempt):
                found.append(
                    CommittedRecord(message.offset(), txid, message.key(), message.value(), headers)
                )
        return found, following

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._place.close()
