"""The topology that is put to the test where the command names none."""

from __future__ import annotations

from typing import Any

from trident.api.topology import TridentTopology
from trident.backends.state_spec import StateLike
from trident.operations.builtin import Count


def topology(source: Any, state: StateLike) -> TridentTopology:
    """Count each word of the source, and all of them.

    `source` is a stream of one field, ``word``; of `state` the topology's states are made, each
    with its own entries, under its own name.
    """
    made = TridentTopology()
    words = made.newStream("words", source)
    counts = words.groupBy("word").persistentAggregate(state, Count(), "count", name="count")
    counts.parallelismHint(2)  # on Spark tasks update it, and the driver the other one
    words.persistentAggregate(state, Count(), "total", name="total")
    return made
