"""Rewrites what failed attempts have left, so that the batches they were of can be forgotten:
docs/protocol.md, "What is forgotten"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from trident.states.control import ControlRecord
from trident.states.cut import Cut
from trident.states.errors import StaleBatchError
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


def _parts(whole: Sequence[Any]) -> list[Sequence[Any]]:
    return [whole[start : start + _AT_ONCE] for start in range(0, len(whole), _AT_ONCE)]
