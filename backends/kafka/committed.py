"""Reading a sink: the records of attempts that the topology has committed, each once."""

from __future__ import annotations

import re
from typing import NamedTuple

from trident.backends.kafka.control_topic import ControlTopic
from trident.backends.kafka.state import STATE, TOKEN
from trident.backends.kafka.topic_reader import TopicReader
from trident.states.control import Control

_TOKEN = re.compile(rb"([0-9]{1,19})/([0-9]{1,19})")


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
            Where to go on. Who keeps it together with what became of the records has them exactly
            once.

        Raises
        ------
        StateUnavailableError
            Where the cluster doesn't answer.
        """
        # First the control record: what it doesn't know yet is left for the next call.
        control = self._control.read()
        messages, following = self._reader.read(self._topic, partition, start, limit)
        found: list[CommittedRecord] = []
        for message in messages:
            headers = dict(message.headers() or ())
            token = _TOKEN.fullmatch(headers.get(TOKEN) or b"")
            # Anybody may write to the topic: what no attempt of this state can have is passed over.
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
        """Let go of the connections."""
        self._reader.close()
        self._place.close()
