"""A topic's partitions, as the coordinator describes them to those that read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class KafkaPartition:
    """One partition as it was when a batch began; pickles.

    `topic_id` is one that another topic of the same name does not have; None where the broker has
    no such ids. `begin` is where the stream begins in it, None where that is long past; `end` the
    offset behind the last record that may be read, None where it is `away`, which says why.
    """

    topic: str
    partition: int
    topic_id: str | None
    begin: int | None
    end: int | None
    away: str = ""

    def getId(self) -> str:
        return f"{self.topic}-{self.partition}"
