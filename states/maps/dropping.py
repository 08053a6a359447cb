"""Removes a state: bars everybody from it, then removes its entries, then its record."""

from __future__ import annotations

from dataclasses import replace

from trident.states.backing_map import Ability, abilities
from trident.states.control import UNFINISHED, ControlRecord
from trident.states.errors import DROPPING, StaleBatchError, StateError
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token


def check_droppable(state: StoredMap) -> None:
    """Raise StateError if the state's store can't list or remove its entries."""
    if Ability.DROP not in abilities(state.backing):
        raise StateError(
            f"the state {state.backing.prefix or ''} in {state.backing.where or 'its store'} can't "
            "be dropped, as this store can't find or remove all that belongs to it. Give the state "
            "another prefix; or remove its table, nodes or database by the store's own means, "
            "after every run that updates it has ended."
        )


def drop_state(state: StoredMap) -> None:
    """Remove a state with its control record; a run that updates it ends with an error.

    Runs in the process that calls. Until the end, a marker that all readers and runs refuse takes
    the place of the control record; so it may be called again after a failure. If the state has
    moved, its record stays: readers find the other state by it.

    Raises NoStateError without a control record, as entries may be somebody else's then, and
    StaleBatchError if somebody else has written the record meanwhile.
    """
    check_droppable(state)
    backing = state.backing
    stored = backing.getControl()
    if stored is None:
        state.control.expect()  # raises NoStateError, with other prefixes
        return
    found = ControlRecord.decode(stored)
    if found.move is not None:
        _drop_moved(state, found, stored)
        return
    marker = replace(
        found,
        log_id=f"{UNFINISHED}{DROPPING}",
        token=Token(found.token.txid, found.token.attempt + 1),
        ready=True,
        plan=None,
    )
    fence = stored if found.log_id == marker.log_id else marker.encode()
    if fence != stored and not backing.putControl(fence, stored):
        raise StaleBatchError(None)
    if not backing.drop(fence):
        raise StaleBatchError(None)


def _drop_moved(state: StoredMap, found: ControlRecord, stored: bytes) -> None:
    """Remove the entries of a state that has moved, and keep its record."""
    if not state.has_moved(found):
        state.control.check_here(found)
    for page in state.backing.pages():
        if page and not state.backing.multiRemoveFenced([key for key, _ in page], stored):
            raise StaleBatchError(None)
