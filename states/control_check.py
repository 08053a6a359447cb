"""Compares a state's control record with the log, to find out whether the store lost writes.

The table in docs/protocol.md, "Lost writes", lists all cases.
"""

from __future__ import annotations

from dataclasses import dataclass

from trident.states.control import BURNT, ControlRecord
from trident.states.errors import (
    CopiedLogError,
    LostPlanError,
    LostStateError,
    LostWritesError,
    OtherLogError,
    RewoundStateError,
    StaleBatchError,
)
from trident.states.values import StateType, Token


@dataclass(frozen=True, slots=True)
class Claim:
    """What a log knows of one of its states; immutable."""

    listed: Token | None = None
    """The last committed attempt that had begun the state; None if there is none."""
    adopted: frozenset[str] = frozenset()
    """Ids of other logs whose states this log has taken over."""
    accepted: bool = False
    """Whether a loss was accepted: then `listed` is the token that the store held at that time."""
    kind: StateType | None = None
    """How the state keeps its values; None if unknown."""
    swept: int = 0
    """The last batch that a sweep has removed from the log's retried batches. After an accepted
    loss the log may list it again; then the records of other states lack it."""
    base: int = 0
    """The last batch before the log's first."""
    begun: frozenset[Token] = frozenset()
    """`listed` of all states of the log, also under their older names."""

    def listed_of(self, found: ControlRecord | None) -> Token | None:
        """Return the token listed for the state of a record, perhaps under the state's old name."""
        if found is None or found.token not in self.begun:
            return self.listed
        return max(found.token, self.listed or found.token)


def check_record(
    found: ControlRecord | None,
    own: ControlRecord,
    claim: Claim,
    name: str,
    where: str = "",
    lasts: bool = True,
    prefix: str | None = None,
    removal: str = "",
) -> None:
    """Raise the fitting error unless the log, or a failed attempt of it, can have left `found`.

    `own` is the log's reserved attempt, which has not begun the state yet. `lasts` says whether the
    store outlives the process.
    """
    listed = claim.listed_of(found)
    if found is None:
        if listed is not None:
            raise LostStateError(name, listed, where, lasts)
        return
    if listed is None and found.is_free_for(own.log_id):
        return
    if found.log_id != own.log_id and found.log_id not in claim.adopted:
        if claim.kind is StateType.OPAQUE and found.never_ready and own.is_later_than(found):
            return
        place = f"{name} in {where}" if where else name
        raise OtherLogError(place, found.log_id, own.log_id, prefix, removal)
    if listed is not None and found.token < listed:
        raise RewoundStateError(name, found.token, listed, where)
    if found.token == listed:
        began_only = not found.ready and found.committed < listed.txid
        if began_only and own.is_committed(*listed) and not claim.accepted:
            raise LostWritesError(name, listed, where)
        return
    if found.log_id == own.log_id and found.token >= own.token:
        raise StaleBatchError(own.token, found.token)
    if found.token >= own.token or _is_unknown(found, own, claim):
        raise CopiedLogError(name, found.token, own.committed, where)
    if (
        claim.kind is StateType.TRANSACTIONAL
        and found.token.txid == own.token.txid
        and found.plan not in (None, own.plan)
    ):
        raise LostPlanError(name, found.token, where)


def _is_unknown(found: ControlRecord, own: ControlRecord, claim: Claim) -> bool:
    """Return whether a record tells of something that the log of `own` has not done."""
    txid, attempt = found.token
    if found.committed > own.committed:
        return True
    if txid <= own.committed:
        if found.committed < txid <= claim.swept and txid not in own.retried:
            return True  # the attempt may have failed: the log has forgotten which one counts
        ours = own.attempt_of(txid)
        undone = ours == BURNT and not found.is_committed(txid, attempt)
        if undone and claim.kind is StateType.OPAQUE:
            ours = attempt  # no attempt of the batch counts
        if attempt > ours or (attempt == ours and txid > claim.base):
            return True  # by the log, the committed attempt has begun no state here
    known = {txid: kept for txid, kept in own.retried.items() if txid <= found.committed}
    missing = [txid for txid in known.keys() - found.retried.keys() if txid > claim.swept]
    return bool(missing) or not found.retried.items() <= known.items()
