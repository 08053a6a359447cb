"""A word count, and what can go wrong with it."""

from __future__ import annotations

from typing import Any

from trident import (
    Count,
    FeederBatchSpout,
    FixedBatchSpout,
    MapGet,
    MemoryMapState,
    TridentTopology,
)
from trident.backends.state_spec import StateLike


def counted(spout: Any, state: StateLike | None = None, stream: str = "words") -> TridentTopology:
    """Counts the words of a stream; ``count`` answers how many there are of one."""
    topology = TridentTopology()
    counts = (
        topology.newStream(stream, spout)
        .groupBy("word")
        .persistentAggregate(state or MemoryMapState.Factory(), Count(), "count")
    )
    query = topology.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "count")
    query.project("count")
    return topology


def words(*batches: str) -> FixedBatchSpout:
    """A spout of batches of two words each."""
    return FixedBatchSpout("word", 2, *[(word,) for batch in batches for word in batch.split()])


def fed() -> FeederBatchSpout:
    """A spout that a test feeds."""
    return FeederBatchSpout("word")
