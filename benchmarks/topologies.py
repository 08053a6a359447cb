"""The word count that every benchmark runs, over whatever source and state it is about."""

from __future__ import annotations

from typing import Any

from trident import Count, FilterNull, MapGet, Split, Sum, TridentTopology
from trident.states.state import StateFactory

QUESTION = "cat dog the man"


def word_count(source: Any, field: str, state: StateFactory, split: Any = None) -> TridentTopology:
    """Return a topology that counts the words of `source` in `state`, and can be asked.

    Parameters
    ----------
    source
        A spout or a streaming DataFrame.
    field : str
        Its field with the text.
    state : StateFactory
        Where the counts go.
    split
        What makes words of a line; ``Split()`` by default.
    """
    topology = TridentTopology()
    counts = (
        topology.newStream("lines", source)
        .each(field, split or Split(), "word")
        .groupBy("word")
        .persistentAggregate(state, Count(), "count")
    )
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .each("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    return topology
