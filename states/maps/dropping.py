"""A state is removed: first nobody may write or read it, then its entries go, then its record."""

from __future__ import annotations

from dataclasses import replace

from trident.states.backing_map import Ability, abilities
from trident.states.control import UNFINISHED, ControlRecord
from trident.states.errors import DROPPING, StaleBatchError, StateError
from trident.states.maps.stored_map import StoredMap
from trident.states.values import Token


def check_droppable(state: StoredMap) -> None:
    """Raise StateError where the store of a state can't list or remove what is there."""
    if Ability.DROP not in abilities(state.backing):
        raise StateError(
            f"the state {state.backing.prefix or ''} in {state.backing.where or 'its store'} can't "
            "be dropped, as this store can't find or remove all that belongs to it. Give the state "
            "another prefix; or remove its table, nodes or database by the store's own means, "
            "after every run that updates it has ended."
        )


def drop_state(state: StoredMap) -> None:
    """Remove a state with its control record; a run that updates it ends with an error.

    Runs in the process that calls. May be called again, should it fail halfway: until then a
    marker, which every reader and every run refuses, stands in the place of the control record.
    Of a state that has moved the record stays, as readers find the other one by it.

    Raises NoStateError without a control record, as what is there may be somebody else's, and
    StaleBatchError where somebody else has written that meanwhile.
    """
    check_droppable(state)
    backing = state.backing
    stored = backing.getControl()
    if stored is None:
        state.control.expect()  # raises, with what there is
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
    """Remove the entries of a state that has moved.

    Its record stays: who knows the old place finds the new one by it.
    """
    if not state.has_moved(found):
        state.control.check_here(found)
    for page in state.backing.pages():
        if page and not state.backing.multiRemoveFenced([key for key, _ in page], stored):
            raise StaleBatchError(None)
