"""What writes tuples to a sink in Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import orjson

from trident.operations.interfaces import StateUpdater, TridentCollector
from trident.tuples import TridentTuple


class _Sink(Protocol):
    def send(self, value: bytes | None, key: bytes | None, topic: str | None) -> None: ...


class KafkaStateUpdater(StateUpdater[_Sink]):
    """Appends a record for each tuple, to a state of :func:`trident.backends.kafka.sink`.

    Parameters
    ----------
    value : str
        The field of the record's value.
    key : str, optional
        The field of its key; without it the key is null.
    topic : str, optional
        The field that names its topic; without it the sink's own.

    Notes
    -----
    A string is written as UTF-8, bytes as they are, null as null, anything else as JSON.

    Examples
    --------
    >>> from trident import FixedBatchSpout, TridentTopology
    >>> from trident.backends import kafka
    >>> words = TridentTopology().newStream("s", FixedBatchSpout("word string, n long", 3))
    >>> counts = kafka.sink("localhost:9092", "counts")
    >>> state = words.partitionPersist(counts, "word, n", KafkaStateUpdater("n", key="word"))
    """

    def __init__(self, value: str, key: str | None = None, topic: str | None = None) -> None:
        self._value = value
        self._key = key
        self._topic = topic

    def updateState(
        self, state: _Sink, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        for each in tuples:
            key = None if self._key is None else _data(each[self._key])
            topic = None if self._topic is None else each[self._topic]
            state.send(_data(each[self._value]), key, topic)


def _data(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else orjson.dumps(value)
