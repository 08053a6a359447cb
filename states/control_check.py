"""A state's control record, checked against the log: has the store lost writes? docs/protocol.md,
"Lost writes", has the table of what may be found."""

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
    """What a log says of one of its states; immutable."""

    listed: Token | None = None
    """The last committed attempt that had begun the state; None where none has."""
    adopted: frozenset[str] = frozenset()
    """Further log ids whose state this log has taken over."""
    accepted: bool = False
    """Whether `listed` is what the store held when the loss of all that came after was accepted."""
    kind: StateType | None = None
    """How the state keeps its values; None where it doesn't say."""
    swept: int = 0
    """The last batch that the log has ever forgotten to have tried again. Where a loss was accepted
    it may remember it anew, and the records of other states lack it."""
    base: int = 0
    """The last batch before the log's first."""
    begun: frozenset[Token] = frozenset()
    """What `listed` is of all states of the log, those of older names too."""

    def listed_of(self, found: ControlRecord | None) -> Token | None:
        """What is listed of the state of a record: of a renamed one under its older name."""
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
) -> None:
    """Return if `found` is what the log left, or an attempt that failed; else raise the error of
    what it means. `own` is the attempt that the log has reserved, which has not begun the state
    yet, with what the log has committed; `lasts` says whether the store outlives the process."""
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
        raise OtherLogError(place, found.log_id, own.log_id, prefix)
    if listed is not None and found.token < listed:
        raise RewoundStateError(name, found.token, listed, where)
    if found.token == listed:
        began_only = not found.ready and found.committed < listed.txid
        if began_only and own.is_committed(*listed) and not claim.accepted:
            raise LostWritesError(name, listed, where)
        return
    if found.log_id == own.log_id and found.token >= own.token:
        raise StaleBatchError(own.token, found.token)
    if found.token >= own.token or _unknown_to(own, found, claim):
        raise CopiedLogError(name, found.token, own.committed, where)
    if (
        claim.kind is StateType.TRANSACTIONAL
        and found.token.txid == own.token.txid
        and found.plan not in (None, own.plan)
    ):
        raise LostPlanError(name, found.token, where)


def _unknown_to(own: ControlRecord, found: ControlRecord, claim: Claim) -> bool:
    """Return whether `found`, which is behind what is listed, tells of something that the log of
    `own` has not done."""
    txid, attempt = found.token
    if found.committed > own.committed:
        return True
    if txid <= own.committed:
        if found.committed < txid <= claim.swept and txid not in own.retried:
            return True  # it may be of an attempt that failed, as which one counts is forgotten
        ours = own.attempt_of(txid)
        undone = ours == BURNT and not found.is_committed(txid, attempt)
        if undone and claim.kind is StateType.OPAQUE:
            ours = attempt  # whichever it is, nothing of it counts
        if attempt > ours or (attempt == ours and txid > claim.base):
            return True  # where it is this very attempt, it has begun no state here
    known = {txid: kept for txid, kept in own.retried.items() if txid <= found.committed}
    lacking = [txid for txid in known.keys() - found.retried.keys() if txid > claim.swept]
    return bool(lacking) or not found.retried.items() <= known.items()
