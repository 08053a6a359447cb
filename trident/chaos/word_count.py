"""The topology that is put to the test where the command names none."""

from __future__ import annotations

from typing import Any

from trident.api.topology import TridentTopology
from trident.backends.state_spec import StateLike
from trident.operations.builtin import Count


def topology(source: Any, state: StateLike) -> TridentTopology:
    """Count each word of the source, and all of them.

    Parameters
    ----------
    source : ITridentSpout or DataFrame
        A stream of one field, ``word``.
    state : StateFactory
        What the topology's states are made of: each has its own entries, under its own name.

    Examples
    --------
    >>> from trident import FixedBatchSpout
    >>> made = topology(FixedBatchSpout("word string", 2, ("the",)), "sqlite:counts.db")
    >>> [group.id for group in made.plan().groups]
    ['words']
    """
    made = TridentTopology()
    words = made.newStream("words", source)
    words.groupBy("word").persistentAggregate(state, Count(), "count", name="count")
    words.persistentAggregate(state, Count(), "total", name="total")
    return made
