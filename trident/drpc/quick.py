"""Which queries never wait: an event loop may answer them itself."""

from __future__ import annotations

from trident.backends.memory import MemoryMap
from trident.operations.builtin import (
    Count,
    Equals,
    FilterNull,
    MapGet,
    Max,
    Min,
    SnapshotGet,
    Split,
    Sum,
)
from trident.plan.plan import DRPCQuery

_NEVER_WAIT = {Count, Equals, FilterNull, MapGet, Max, Min, SnapshotGet, Split, Sum}
"""Operations that call nothing of a user's, and take a time that follows from their tuples. A class
derived from one of them may do anything."""


def never_waits(query: DRPCQuery) -> bool:
    """Whether all states of a query are in this process's memory, and all its operations are the
    library's own, so that no step of it can wait for anything.
    """
    operations = [node.facts.operation for node in query.nodes]
    return all(each is None or type(each) in _NEVER_WAIT for each in operations) and all(
        state.state.factory.map_type is MemoryMap for state in query.states
    )
