"""A sink whose records carry the attempt that wrote them."""

from __future__ import annotations

from trident.backends.kafka.control_topic import ControlTopic, Outgoing
from trident.states.control import Control, ControlRecord
from trident.states.errors import StateError
from trident.states.state import Batch, State
from trident.states.values import StateType

TOKEN = "trident.token"
"""The header that tells the attempt: ``txid/attempt``."""
STATE = "trident.state"
"""The header that tells the state, where several write to one topic."""


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
