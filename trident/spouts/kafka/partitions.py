"""A topic's partitions, as the coordinator describes them to those that read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class KafkaPartition:
    """One partition as it was when a batch began; pickles.

    Parameters
    ----------
    topic : str
        The topic.
    partition : int
        Its number.
    topic_id : str or None
        The topic's id, which another topic of the same name does not have; None where the broker
        has no such ids.
    begin : int or None
        Where the stream begins in it; None where that is long past.
    end : int or None
        The offset behind the last record that may be read; None where it is away.
    away : str
        Why it is.

    Examples
    --------
    >>> KafkaPartition("sentences", 3, None, 0, 17).getId()
    'sentences-3'
    """

    topic: str
    partition: int
    topic_id: str | None
    begin: int | None
    end: int | None
    away: str = ""

    def getId(self) -> str:
        return f"{self.topic}-{self.partition}"
