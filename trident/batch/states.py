"""The states of a batch group or query, as objects of this process, and what the batch runner does
with those of a group."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from trident.log.entry import LogEntry
from trident.log.errors import AdoptionError
from trident.plan.nodes import StateNode
from trident.states.control import (
    ControlRecord,
    Prepared,
    announce_all,
    catch_up_all,
    prepare_all,
)
from trident.states.control_check import Claim, check_record
from trident.states.errors import (
    CorruptStateError,
    LostPlanError,
    LostStateError,
    LostWritesError,
    RewoundStateError,
    SerializationError,
    UnavailableError,
)
from trident.states.expiry import later
from trident.states.maps.sweeping import ExpirySweep, can_sweep, sweep
from trident.states.state import State
from trident.states.values import StateType, Token

_logger = logging.getLogger("trident")


class BatchState(NamedTuple):
    """One state of a group, as an object of this process."""

    state: State
    is_single: bool = False
    """Whether it is one value."""
    expires: bool = False
    """Whether its entries expire."""


def make_states(
    nodes: Iterable[StateNode], conf: Mapping[str, Any] | None = None
) -> dict[StateNode, State]:
    """Make each state in this process, as its only partition; the caller closes them."""
    made: dict[StateNode, State] = {}
    try:
        for node in nodes:
            made[node] = node.state.factory.makeState(conf or {}, None, 0, 1)
    except BaseException:
        close_states(made.values())
        raise
    return made


def close_states(states: Iterable[State]) -> None:
    """Close all of them, even if one raises."""
    with ExitStack() as closing:
        for state in states:
            closing.callback(state.close)


def batch_states(states: Mapping[StateNode, State]) -> dict[str, BatchState]:
    """The states that a group updates, as the batch runner sees them, by their names in the log."""
    return {
        node.state.kept_name: BatchState(state, node.keeps_one_value, node.expiry is not None)
        for node, state in states.items()
        if node.updates is not None
    }


class GroupStates:
    """All states of a group; each method acts on all of them, in the order of the topology."""

    def __init__(self, states: Mapping[str, BatchState]) -> None:
        self.controls = {
            name: control
            for name, one in states.items()
            if (control := one.state.control) is not None
        }
        for name, control in self.controls.items():
            control.name = name
        self._kinds = {name: one.state.kind for name, one in states.items()}
        self.kinds = {name: kind.value for name, kind in self._kinds.items() if kind is not None}
        """How each state keeps its values; states that aren't maps are left out."""
        self._singles = {name: one.state for name, one in states.items() if one.is_single}
        self._sweepable = {
            name: state for name, one in states.items() if can_sweep(state := one.state)
        }
        self._expiring = {
            name: ExpirySweep(state)
            for name, one in states.items()
            if one.expires and ExpirySweep.can_sweep(state := one.state)
        }
        self.inexact = sorted(
            name for name, kind in self._kinds.items() if kind is not StateType.OPAQUE
        )
        """The states in which a batch that was partly written can't be undone."""
        self._prepared: list[Prepared] = []

    def check_unowned(self, log_id: str) -> None:
        """Raise OtherLogError if a state belongs to a log; the new log has `log_id`."""
        for control in self.controls.values():
            found = control.read()
            if found is not None and not found.is_unused:
                raise control.other_log(found.log_id, log_id)

    def check_free(self, log_id: str) -> None:
        """Raise if a new log can't begin a state: it is another log's, or has entries of none."""
        for name, control in self.controls.items():
            found = control.read()
            if found is None or found.is_unused:
                control.check_vacant()
            elif not self._is_abandoned(name, found):
                raise control.other_log(found.log_id, log_id)

    def attempt_behind(self, log_id: str, attempt: int) -> int:
        """Return which attempt of its first batch a log begins with: `attempt`, or a later one if
        other logs have begun a state and never made it ready."""
        for name, control in self.controls.items():
            found = control.read()
            if found is not None and found.log_id != log_id and self._is_abandoned(name, found):
                attempt = max(attempt, found.token.attempt + 1)
        return attempt

    def _is_abandoned(self, name: str, found: ControlRecord) -> bool:
        return found.never_ready and self._kinds[name] is StateType.OPAQUE

    def unknown(self, known: Iterable[str], log_id: str) -> list[str]:
        """Return the states that are not `known`, although their records name the log."""
        return [
            name
            for name in self.controls.keys() - {*known}
            if (found := self.controls[name].read()) is not None
            and found.log_id == log_id
            and not found.is_unused
        ]

    def unmerged(self, record: ControlRecord) -> list[str]:
        """Return the prefixes of states beside these that lack the batch which `record` says is
        committed."""
        controls = self.controls.values()
        lacking = {prefix for control in controls for prefix in control.unmerged(record)}
        return sorted(lacking - {control.prefix or control.name for control in controls})

    def may_hold(self, txid: int) -> bool:
        """Whether a state may hold a part of the batch `txid` that can't be undone."""
        found = [self.controls[name].read() for name in self.inexact if name in self.controls]
        return any(record is not None and record.token.txid == txid for record in found)

    def check_reachable(self) -> None:
        """Raise StateUnavailableError if a store is away."""
        for control in self.controls.values():
            control.read()

    def check_occupied(self, place: str) -> None:
        """Raise if stores that can look for entries have none of Storm's to go on from."""
        controls = self.controls.values()
        if controls and all(one.can_look and one.occupant() is None for one in controls):
            places = ", ".join(control.place for control in controls)
            raise AdoptionError(
                place,
                f"no entries are in {places}",
                "Give the states the prefix under which Storm's entries are, empty for bare keys.",
            )
        for single in self._singles.values():
            single.check_single()

    def check_keys(self, entry: LogEntry) -> None:
        """Raise StateError if a single value that the log knows is under another key."""
        for name, single in self._singles.items():
            if self._claim(entry, name).listed is not None:
                single.check_key()

    def accept(self, entry: LogEntry, losses: Mapping[str, int]) -> LogEntry:
        """Return `entry`, changed so that the states in `losses` may stay as they are, if they have
        lost what the user says: up to a batch."""
        accepted = dict(entry.accepted)
        retried = dict(entry.retried)
        for name, control in self.controls.items():
            if name not in losses:
                continue
            found = control.read()
            try:
                self._check(entry, name, found)
            except (LostStateError, RewoundStateError, LostWritesError, LostPlanError) as lost:
                listed = self._claim(entry, name).listed_of(found)
                if isinstance(lost, LostPlanError) or listed is None:
                    listed = entry.begun
                if losses[name] == listed.txid:
                    _logger.warning("accepted: %s", lost)
                    accepted[name] = None if found is None or found.is_unused else found.token
                    if found is not None:  # a sweep that let the log forget may be lost too
                        retried = {**found.retried, **retried}
                else:
                    _logger.warning(
                        "accept_loss= names batch %d of the state %r; the loss is of batch %d",
                        *(losses[name], name, listed.txid),
                    )
        states = {name: token for name, token in entry.states.items() if name not in accepted}
        return replace(entry, states=states, accepted=accepted, retried=retried)

    def recall(self, entry: LogEntry) -> LogEntry:
        """Return `entry` with the attempts that the log has forgotten, and that a state remembers
        which the log has adopted but never had: no sweep has reached this state."""
        recalled: dict[int, int] = {}
        for name in self.controls.keys() - entry.states.keys() if entry.adopted else ():
            found = self.controls[name].read()
            if found and found.log_id in entry.adopted and found.committed <= entry.base:
                recalled |= found.retried
        swept = max(entry.swept, *(recalled.keys() - entry.retried.keys()), 0)
        return replace(entry, retried={**recalled, **entry.retried}, swept=swept)

    def catch_up(self, entry: LogEntry) -> bool:
        """Tell every state what `entry` says is committed; a state without a record gets one.

        Returns whether a state had begun a later batch.
        """
        begun = False

        def check(name: str, found: ControlRecord | None) -> None:
            nonlocal begun
            self._check(entry, name, found)
            if found is not None and found.log_id == entry.log_id:
                begun = begun or found.token.txid > entry.committed

        checks = [(control, partial(check, name)) for name, control in self.controls.items()]
        catch_up_all(checks, entry.reserved)
        return begun

    def own(self, entry: LogEntry, names: Iterable[str]) -> None:
        """Write the first control record of states that have none, whatever entries they have.

        This is for the states of a new log, in which Storm may have left entries, and for states
        that have lost their record, if that is accepted. Readers then know that the state exists.
        """
        reserved = entry.reserved
        token = Token(entry.base, reserved.attempt_of(entry.base))
        record = replace(reserved, token=token)
        for name in names:
            control = self.controls.get(name)
            found = None if control is None else control.read()
            if control is not None and (found is None or found.is_free_for(entry.log_id)):
                control.create(record)

    def begin(self, entry: LogEntry, reached: int | None = None) -> ControlRecord:
        """Begin the attempt that `entry` reserves at every state, and return their new record.

        If the time of batches lets entries expire, it has `reached` this.
        """
        record = self._reserved(entry)
        record = replace(record, reached=later(record.reached, reached))
        for name, control in self.controls.items():
            control.begin(record, partial(self._check, entry, name))
        return record

    def _reserved(self, entry: LogEntry) -> ControlRecord:
        """What `entry` reserves, with a digest of the plan if a state needs the same tuples."""
        transactional = StateType.TRANSACTIONAL in self._kinds.values()
        return replace(entry.reserved, plan=entry.plan if transactional else None)

    def _check(self, entry: LogEntry, name: str, found: ControlRecord | None) -> None:
        control = self.controls[name]
        claim = self._claim(entry, name)
        place = name, control.where, control.lasts, control.prefix, control.removal
        check_record(found, self._reserved(entry), claim, *place)

    def _claim(self, entry: LogEntry, name: str) -> Claim:
        accepted = name in entry.accepted
        listed = (entry.accepted if accepted else entry.states).get(name)
        adopted, kind = frozenset(entry.adopted), self._kinds[name]
        begun = frozenset(filter(None, (*entry.states.values(), *entry.accepted.values())))
        return Claim(listed, adopted, accepted, kind, entry.swept, entry.base, begun)

    def can_sweep(self, entry: LogEntry) -> bool:
        """Whether the values of failed attempts can be swept away in all states of the log.

        A state that can't be swept, or is no longer in the topology, may name an attempt for ever.
        """
        return {*entry.states, *entry.kinds, *self._kinds} <= self._sweepable.keys()

    def sweep(self, record: ControlRecord) -> bool:
        """Rewrite the values of failed attempts, under `record`; return False if an entry can't be
        read, or can't be kept."""
        for name, state in self._sweepable.items():
            try:
                sweep(state, record)
            except (CorruptStateError, SerializationError) as error:  # the latter by an upgrade
                _logger.warning("state %s is not swept, its log grows: %s", name, error)
                del self._sweepable[name]
                return False
        return True

    def sweep_expired(self, record: ControlRecord, entry: LogEntry, written: int) -> None:
        """Remove some entries that had expired with the batch before.

        The more keys were `written`, the more are looked at, so a round ends however many keys are
        added. A state with an entry that can't be read is not swept any more by this run.
        """
        if entry.reached is None:
            return
        for name, expiring in list(self._expiring.items()):
            try:
                expiring.go_on(record, entry.reached, 4 + 3 * written)
            except CorruptStateError as error:
                _logger.warning("state %s keeps what has expired: %s", name, error)
                del self._expiring[name]

    def ready(self, record: ControlRecord) -> ControlRecord:
        """Confirm that every state holds what `record` wrote; return the record to announce."""
        for control in self.controls.values():
            control.ready(record)
        self._prepared = prepare_all(self.controls.values(), record.confirmed())
        return record.confirmed()

    def announce(self, record: ControlRecord) -> None:
        """Tell every state that still holds the confirmed `record` that it is committed."""
        remaining = {*self.controls.values()}
        while self._prepared:
            prepared = self._prepared.pop()
            prepared.announce()
            remaining -= {*prepared.controls}
        announce_all([each for each in self.controls.values() if each in remaining], record)

    def drop_prepared(self) -> None:
        """Give up the prepared announcement of an attempt that is not committed."""
        while self._prepared:
            try:
                self._prepared.pop().drop()
            except UnavailableError as away:  # then it was dropped by itself
                _logger.debug("%s", away)
