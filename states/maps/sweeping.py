"""Removes expired entries, and rewrites the entries of failed attempts.

So the log can forget these attempts: "What expires" and "What is forgotten" in docs/protocol.md.
"""

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
    """Return whether the log may forget failed attempts: no entry of a state names an attempt, or
    all that do can be found, and rewritten under the fence."""
    if not isinstance(state, StoredMap):
        return state is not None and not state.names_attempts
    if state.kind is not StateType.OPAQUE:
        return True
    return state.lists and state.tables.writing.removes and not state.backing.shares


def sweep(state: State, record: ControlRecord) -> None:
    """Rewrite the entries of all retried batches in `record`, which has begun.

    Has these entries in memory, and a page of others. Writes nothing if an entry can't be read. May
    be called again after a failure.
    """
    if not isinstance(state, StoredMap) or state.kind is not StateType.OPAQUE:
        return
    table = state.tables.writing
    table.begin(record)
    retried = record.retried
    old = {key: entry for page in table.pages() for key, entry in page if entry.txid in retried}
    values = dict(zip(old, state.kept_as.read([*old.values()], Cut.before(record)), strict=True))
    dead = [key for key, value in values.items() if value is None]
    present = [key for key, value in values.items() if value is not None]
    for start in range(0, len(dead), _AT_ONCE):
        table.remove(dead[start : start + _AT_ONCE])
    for start in range(0, len(present), _AT_ONCE):
        keys = present[start : start + _AT_ONCE]
        entries = [OpaqueValue(old[key].txid, 0, values[key], values[key]) for key in keys]
        if table.write(keys, entries):
            raise StaleBatchError(record.token)


class ExpirySweep:
    """Removes the expired entries of a state, some of them in each batch, round after round.

    It removes an entry that is absent already for readers as of the batch before. So it doesn't
    matter where a sweep ends, nor whether the attempt commits. Only this process remembers where
    the next batch goes on; another process begins a new round.
    """

    def __init__(self, state: StoredMap) -> None:
        self._state = state
        self._pages: Iterator[Sequence[tuple[bytes, Any]]] = iter(())
        self._due = 0

    @staticmethod
    def can_sweep(state: State | None) -> TypeGuard[StoredMap]:
        """Return whether expired entries can be found and removed: in an opaque state, which alone
        tells what is committed, and only if it lists no entries of others."""
        if not isinstance(state, StoredMap) or state.kind is not StateType.OPAQUE:
            return False
        table = state.tables.writing
        return table.has_pages and table.sweeps and not state.backing.shares

    def go_on(self, record: ControlRecord, reached: int, count: int) -> None:
        """Check `count` more entries, as soon as they fill a page; each entry once at most.

        Called after all writes of the attempt of `record`. `reached` is the time that the log had
        reached with the batch before.
        """
        table = self._state.tables.writing
        table.begin(record)
        cut = Cut.before(record)._replace(reached=reached)
        new_round = False
        self._due += count
        while self._due > 0:
            page = next(self._pages, None)
            if page is None:
                if new_round:
                    self._due = 0
                    return
                self._pages, new_round = table.pages(), True
                continue
            self._due -= len(page)
            keys = self._removable_keys(page, cut)
            if keys:  # again, as they may have been updated since the page was read
                keys = self._removable_keys(list(zip(keys, table.read(keys), strict=True)), cut)
            if keys:
                table.remove(keys)

    def _removable_keys(self, found: Sequence[tuple[bytes, Any]], cut: Cut) -> list[bytes]:
        """Return the keys of entries that have expired, but not those that the attempt has written.

        If the store removes tombstones, also the keys that are absent for another reason. In a
        store of versions a late write may restore the previous value: that has expired too.
        """
        try:
            values = self._state.kept_as.read([entry for _, entry in found], cut)
        except BatchMovedOn as later:
            raise StaleBatchError(cut.horizon, *later.args) from None
        removes = self._state.tables.writing.removes
        return [
            key
            for (key, entry), value, shown in zip(
                found, values, alive(values, cut.moment), strict=True
            )
            if entry is not None and (entry.txid, entry.attempt) != cut.horizon
            if shown is None
            if removes or (value is not None and alive_at(entry.prev, cut.moment) is None)
        ]
