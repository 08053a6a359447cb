"""Batches without a log: a state that is begun with plain ints keeps its own control record."""

from __future__ import annotations

from trident.states.control import BURNT, Control, ControlRecord
from trident.states.errors import OtherLogError
from trident.states.values import Token

STAND_ALONE = "stand-alone"
"""The log id of a state that no log updates."""


def begin_without_log(control: Control, txid: int) -> ControlRecord:
    """Begin the next attempt of `txid`, or its first, and return the record.

    A repeated txid is a replay, even of a batch that had been committed: it starts from the batch
    before. What a batch wrote that was passed over without a commit does not count.

    Raises StaleBatchError where a later txid has begun, OtherLogError for a state of a topology.
    """
    found = control.read()
    if found is not None and found.is_free_for(STAND_ALONE):
        found = None
    if found is not None and found.log_id != STAND_ALONE:
        raise OtherLogError(control.place, found.log_id, STAND_ALONE)
    attempt = 0
    retried: dict[int, int] = {}
    if found is not None:
        retried.update(found.retried)
        if found.token.txid == txid:
            attempt = found.token.attempt + 1
            if found.committed == txid:  # should the replay be passed over, this still counts
                retried[txid] = found.attempt_of(txid)
        elif found.committed < found.token.txid:
            retried.setdefault(found.token.txid, BURNT)
    record = ControlRecord(STAND_ALONE, Token(txid, attempt), txid - 1, retried)
    control.begin(record)
    return record
