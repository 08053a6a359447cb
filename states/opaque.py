"""Maps that stay exact when a replayed batch holds other tuples than before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trident.states.columns import OpaqueEntries
from trident.states.control import ControlRecord
from trident.states.resolution import Cut, at_cut, in_batch
from trident.states.rules import Rules
from trident.states.stored_map import StoredMap
from trident.states.values import StateType


class OpaqueRules(Rules):
    """Every entry keeps its token and the committed value before it."""

    kind = StateType.OPAQUE

    def read(self, stored: Sequence[Any], record: ControlRecord) -> list[Any]:
        return in_batch(stored, record)

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> OpaqueEntries:
        txid, attempt = record.token
        count = len(values)
        return OpaqueEntries([txid] * count, [attempt] * count, values, befores)

    def at_cut(self, stored: Sequence[Any], cut: Cut) -> list[Any]:
        return at_cut(stored, cut)

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return (
            entry is not None
            and entry.curr is None
            and record.is_committed(entry.txid, entry.attempt)
        )


class OpaqueMap(StoredMap):
    """A map state that is exact for every source, whatever a replay brings.

    An entry holds its value, the committed value before it, and who wrote it; so a later attempt,
    with other tuples or none for this key, starts again from what was committed.

    Parameters
    ----------
    backing : IBackingMap
        The store.
    serializer : Serializer, optional
        JSON as Storm writes it, by default.

    Examples
    --------
    >>> from trident.states import MemoryMap, PutUpdater
    >>> ages = OpaqueMap(MemoryMap("ages"))
    >>> ages.beginCommit(1)
    >>> ages.multiUpdate([("rex",)], [PutUpdater(3)])
    [3]
    >>> ages.commit(1)
    >>> ages.multiGet([("rex",), ("tom",)])
    [3, None]
    """

    rules = OpaqueRules()
