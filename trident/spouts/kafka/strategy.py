"""Where a stream begins in a partition that its log doesn't know yet."""

from __future__ import annotations

from enum import Enum


class FirstPollOffsetStrategy(Enum):
    """Where to begin in the partitions that there are when a stream runs for the first time.

    A partition that the log knows goes on where its last committed batch ended, whatever the
    strategy: a checkpoint is what Storm calls a deployment. A partition, or topic, that appears
    later begins at its first record, or some would never be read.

    Examples
    --------
    >>> FirstPollOffsetStrategy("LATEST").prefers_committed
    False
    """

    EARLIEST = "EARLIEST"
    """At the first record that there is."""
    LATEST = "LATEST"
    """Behind the last one."""
    TIMESTAMP = "TIMESTAMP"
    """At the first record as young as ``timestamp``, or behind the last one."""
    UNCOMMITTED_EARLIEST = "UNCOMMITTED_EARLIEST"
    """Where the consumer group of the setting ``group.id`` has committed an offset, there, to
    take over from another consumer; else as EARLIEST. Nothing is ever committed to the group."""
    UNCOMMITTED_LATEST = "UNCOMMITTED_LATEST"
    """Likewise, else as LATEST."""
    UNCOMMITTED_TIMESTAMP = "UNCOMMITTED_TIMESTAMP"
    """Likewise, else as TIMESTAMP."""

    @property
    def prefers_committed(self) -> bool:
        """Whether a consumer group's offset comes first."""
        return self.value.startswith("UNCOMMITTED_")

    @property
    def otherwise(self) -> str:
        """EARLIEST, LATEST or TIMESTAMP."""
        return self.value.removeprefix("UNCOMMITTED_")
