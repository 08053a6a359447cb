"""Removes what has expired, and rewrites what failed attempts have left, so that the batches they
were of can be forgotten: docs/protocol.md, "What expires" and "What is forgotten"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.errors import StaleBatchError
from trident.states.expiry import alive, alive_at
from trident.states.maps.stored_map import StoredMap
from trident.states.state import State
from trident.states.values import OpaqueValue, StateType

_AT_ONCE = 1000


def can_sweep(state: State | None) -> TypeGuard[State]:
    """Whether no entry of a state names an attempt, or all that do can be found, and rewritten
    under the fence, as a late writer's would name what is forgotten."""
    if not isinstance(state, StoredMap):
        return state is not None and not state.names_attempts
    if state.kind is not StateType.OPAQUE:
        return True
    return state.lists and state.tables.writing.removes and not state.backing.shares


def sweep(state: State, record: ControlRecord) -> None:
    """Rewrite the entries of all batches that `record`, which has begun, remembers.

    With those entries in memory, and a page of others. May be called again, should it fail halfway.

    Where something is there that can't be read nothing is written.
    """
    if not isinstance(state, StoredMap) or state.kind is not StateType.OPAQUE:
        return
    table = state.tables.writing
    table.begin(record)
    found = table.pages() if table.has_pages else [table.entries()]
    mine = {key: entry for page in found for key, entry in page if entry.txid in record.retried}
    named = list(mine.items())
    values = state.kept_as.read([entry for _, entry in named], Cut.before(record))
    dead = [key for (key, _), value in zip(named, values, strict=True) if value is None]
    kept = [
        (key, OpaqueValue(entry.txid, 0, value, value))
        for (key, entry), value in zip(named, values, strict=True)
        if value is not None
    ]
    for part in _parts(dead):
        table.remove(part)
    for part in _parts(kept):
        keys, entries = zip(*part, strict=True)
        if table.write(keys, entries):
            raise StaleBatchError(record.token)


class ExpirySweep:
    """Removes what has expired in a state, some of it in each batch, round after round.

    An entry goes if it was absent already for whoever reads as of the batch before. So it doesn't
    matter how far a sweep has come, nor whether the attempt commits. Only the place where the next
    batch goes on is remembered, in this process; another one begins a round anew.
    """

    def __init__(self, state: StoredMap) -> None:
        self._state = state
        self._pages: Iterator[Sequence[tuple[bytes, Any]]] = iter(())
        self._due = 0

    @staticmethod
    def can_sweep(state: State | None) -> TypeGuard[StoredMap]:
        """Whether what has expired can be found and removed: in an opaque state, which alone tells
        what is committed, that lists its own entries only."""
        if not isinstance(state, StoredMap) or state.kind is not StateType.OPAQUE:
            return False
        table = state.tables.writing
        return table.has_pages and table.sweeps and not state.backing.shares

    def go_on(self, record: ControlRecord, reached: int, count: int) -> None:
        """Look at `count` entries more, as soon as they are a page; at each once at most.

        After all writes of the attempt that `record` has begun. `reached` is the time that the log
        had reached with the batch before.
        """
        table = self._state.tables.writing
        table.begin(record)
        cut = Cut.before(record)._replace(reached=reached)
        begun_anew = False
        self._due += count
        while self._due > 0:
            page = next(self._pages, None)
            if page is None:
                if begun_anew:
                    self._due = 0
                    return
                self._pages, begun_anew = table.pages(), True
                continue
            self._due -= len(page)
            keys = self._absent(page, cut)
            if keys:  # which may have been updated since the store was asked for the page
                keys = self._absent(list(zip(keys, table.read(keys), strict=True)), cut)
            if keys:
                table.remove(keys)

    def _absent(self, found: Sequence[tuple[bytes, Any]], cut: Cut) -> list[bytes]:
        """Return the keys that have expired, or are absent at all if the store removes such ones;
        none that the attempt itself has written.

        In a store of versions a late write may bring the value before back: that has expired too.
        """
        try:
            values = self._state.kept_as.read([entry for _, entry in found], cut)
        except BatchMovedOn as later:
            raise StaleBatchError(cut.horizon, *later.args) from None
        there = zip(found, values, alive(values, cut.moment), strict=True)
        removes = self._state.tables.writing.removes
        return [
            key
            for (key, entry), value, left in there
            if entry is not None and (entry.txid, entry.attempt) != cut.horizon
            if left is None
            if removes or (value is not None and alive_at(entry.prev, cut.moment) is None)
        ]


def _parts(whole: Sequence[Any]) -> list[Sequence[Any]]:
    return [whole[start : start + _AT_ONCE] for start in range(0, len(whole), _AT_ONCE)]
