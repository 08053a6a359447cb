"""The control record: which attempt of which batch may write a state now, and what is committed.

Its bytes are the *fence* of an attempt's writes; see "The states follow" in docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import orjson

from trident.states.asking import Wait
from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.errors import (
    CorruptStateError,
    GivenBackError,
    LostStateError,
    LostWritesError,
    MovedStateError,
    NoStateError,
    OtherLogError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
    UnfinishedCopyError,
    UnownedStateError,
)
from trident.states.expiry import later
from trident.states.values import StateType, Token

Check = Callable[["ControlRecord | None"], None]
"""Raises for a control record, or a missing one, that the log can't have left."""

_FORMAT = 1
_MOVED_FORMAT = 2
"""The format of a record with a move: a version that knows no moves must not read the old state."""
GIVEN_BACK = "given-back-to-storm"
"""The log id of a state that was given back to Storm: no topology may write it."""

UNFINISHED = "unfinished-copy:"
"""The log id of an unfinished copy begins with this; the log id of the copied state follows."""


class Deciding(NamedTuple):
    """The state whose move decides for others: its prefix, its new prefix and its kind."""

    prefix: str
    to: str
    kind: StateType


@dataclass(frozen=True, slots=True)
class Move:
    """Says that another state, which was built anew, takes the place of this one.

    The other state has the prefix `to` in the same store, and keeps values of `kind`. With `once`,
    the move counts only when the record of that state says that it has made that very move. So
    several states move by the change of one record.
    """

    to: str
    kind: StateType
    once: Deciding | None = None


BURNT = -1
"""Stands for the committed attempt of a batch of which no attempt counts."""


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """Tells a state which attempt runs and what is committed; immutable, sent to every task.

    `moment`, `active` and `reaches` are for tasks: the stored record lacks them.

    Parameters
    ----------
    log_id : str
        The log's id, made once.
    token : Token
        The attempt that may write now.
    committed : int
        The last committed txid; 0 before the first.
    retried : mapping of int to int
        The txids whose committed attempt was not 0, each with that attempt.
    ready : bool
        Whether the attempt has confirmed that all of its writes are stored.
    moment : int or None
        The batch's time, in milliseconds since 1970, if a step uses it.
    plan : str or None
        A digest of the batch's plan in the log, until the batch is committed; for groups with
        a transactional state and a spout that plans.
    active : mapping of str to sequence of str
        The partitions that a window's watermark waits for, by the id of their stream.
    move : Move or None
        The state that takes the place of this one. Nothing begins under a record with a move.
    reached : int or None
        The time, in milliseconds since 1970, that the group's batches have reached, if its entries
        expire. Tasks and readers decide by it what has expired.
    reaches : int or None
        The latest time in the batch of the record. Until the batch is written it is a bound, the
        same for all tasks.

    Examples
    --------
    >>> begun = ControlRecord("a1", Token(5, 2), committed=4, retried={3: 1})
    >>> begun.is_committed(3, 0), begun.is_committed(3, 1), begun.is_committed(5, 2)
    (False, True, False)
    >>> begun.confirmed().announced().is_committed(5, 2)
    True
    >>> ControlRecord.decode(begun.encode()) == begun
    True
    """

    log_id: str
    token: Token
    committed: int = 0
    retried: Mapping[int, int] = field(default_factory=dict)
    ready: bool = False
    moment: int | None = field(default=None, compare=False)
    plan: str | None = None
    active: Mapping[str, Sequence[str]] = field(default_factory=dict, compare=False)
    move: Move | None = None
    reached: int | None = None
    reaches: int | None = field(default=None, compare=False)
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return ControlRecord, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def __hash__(self) -> int:
        return hash((self.log_id, self.token, self.committed))

    def attempt_of(self, txid: int) -> int:
        """Return the committed attempt of `txid`."""
        return self.retried.get(txid, 0)

    def is_committed(self, txid: int, attempt: int) -> bool:
        """Return whether the writes of `attempt` of `txid` count."""
        return txid <= self.committed and attempt == self.attempt_of(txid)

    def confirmed(self) -> ControlRecord:
        """Return the record after its own attempt has written everything."""
        return replace(self, ready=True, moment=None)

    def announced(self) -> ControlRecord:
        """Return the record after its own attempt has been committed."""
        txid, attempt = self.token
        retried = {**self.retried, txid: attempt} if attempt else self.retried
        reached = later(self.reached, self.reaches)
        return ControlRecord(self.log_id, self.token, txid, retried, self.ready, reached=reached)

    def moved(self, move: Move) -> ControlRecord:
        """Return the record of the same state after another state has taken its place.

        Its token is above every begun attempt. So in a store of shards the move counts once every
        shard has it.
        """
        txid, attempt = self.token
        return replace(self, token=Token(txid, attempt + 1), move=move)

    def waiting(self) -> ControlRecord:
        """Return the record of a state that waits for its first batch, in the same log."""
        return replace(self, token=Token(0, 0))

    @property
    def is_unused(self) -> bool:
        """Whether no batch has begun: the log that begins the first one gets the state."""
        return self.token == (0, 0)

    def is_free_for(self, log_id: str) -> bool:
        """Whether the log `log_id` may replace this record: another log's, of no begun batch."""
        return self.is_unused and self.log_id != log_id

    @property
    def never_ready(self) -> bool:
        """Whether the log's first batch has begun, and no batch was ever ready."""
        return self.token.txid == 1 and self.committed == 0 and not self.ready

    def is_later_than(self, other: ControlRecord) -> bool:
        """Whether this log's attempt of its first batch is later than the attempt of `other`."""
        attempt = self.attempt_of(1) if self.committed else self.token.attempt
        return other.token < (1, attempt)

    def encode(self) -> bytes:
        """Return the canonical bytes: equal for equal records, and only for them."""
        # Cached: a batch sends each record several times, to be written and as the fence.
        if self._encoded is None:
            object.__setattr__(self, "_encoded", self._encode())
        return self._encoded  # type: ignore[return-value]

    def _encode(self) -> bytes:
        stored = {
            "format": _FORMAT if self.move is None else _MOVED_FORMAT,
            "lineage": self.log_id,
            "token": list(self.token),
            "committed": self.committed,
            "exceptions": sorted(self.retried.items()),
            "ready": self.ready,
        }
        if self.plan is not None:
            stored["plan"] = self.plan
        if self.move is not None:
            stored["move"] = [self.move.to, self.move.kind, self.move.once]
        if self.reached is not None:
            stored["reached"] = self.reached
        return orjson.dumps(stored, default=list)

    @staticmethod
    def decode(data: bytes) -> ControlRecord:
        """Return the record that `data` encodes.

        Raises
        ------
        CorruptStateError
            When `data` is not a control record of this format.
        """
        try:
            found = orjson.loads(data)
            known = _FORMAT if found.get("move") is None else _MOVED_FORMAT
            if found["format"] != known:
                raise ValueError(f"format {found['format']}, this version reads {known}")
            txid, attempt = found["token"]
            return ControlRecord(
                str(found["lineage"]),
                Token(int(txid), int(attempt)),
                int(found["committed"]),
                {int(txid): int(attempt) for txid, attempt in found["exceptions"]},
                bool(found["ready"]),
                plan=None if found.get("plan") is None else str(found["plan"]),
                move=None if found.get("move") is None else _decode_move(*found["move"]),
                reached=None if found.get("reached") is None else int(found["reached"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptStateError(
                "a state's control record",
                f"{bytes(data[:80])!r} ({error})",
                "Restore the store from a backup, or begin anew with an empty store and a new "
                "checkpoint.",
            ) from error


def _decode_move(to: str, kind: str, once: Sequence[str] | None) -> Move:
    if once is None:
        return Move(str(to), StateType(kind))
    prefix, target, of = once
    deciding = Deciding(str(prefix), str(target), StateType(of))
    return Move(str(to), StateType(kind), deciding)


class Control:
    """Reads and changes the control record of one state.

    Parameters
    ----------
    backing : IBackingMap
        The store. Only its control record and incarnation are used.
    name : str
        How errors name the state.

    Attributes
    ----------
    calls : int
        How often the record was read or written.

    Notes
    -----
    Used in every process that has the map: by the driver for batches, by tasks and serving
    processes for reading. A call that reads takes one round trip, one that changes the record two;
    none is repeated. The begin of a batch takes one if this control has announced the batch before:
    the store must still hold that announcement, and the server is compared with the one that
    confirmed that batch.
    """

    def __init__(self, backing: IBackingMap, name: str = "state") -> None:
        self.name = name
        self.calls = 0
        self._backing = backing
        self._decoded: tuple[bytes, ControlRecord] | None = None
        self._incarnation: str | None = None
        self._announced: ControlRecord | None = None

    @property
    def where(self) -> str:
        """How errors name the store; empty if it has no name."""
        return self._backing.where

    @property
    def lasts(self) -> bool:
        """Whether the store outlives the process."""
        return self._backing.lasts

    @property
    def place(self) -> str:
        """How errors name the state and its store."""
        return f"{self.name} in {self.where}" if self.where else self.name

    @property
    def prefix(self) -> str | None:
        """The state's prefix in the store; None if that is its name."""
        return None if self._backing.prefix == self.name else self._backing.prefix

    def read(self) -> ControlRecord | None:
        """Return the record that the store holds now; None if it holds none.

        Raises
        ------
        GivenBackError
            When the state was given back to Storm.
        UnfinishedCopyError
            When the place holds an unfinished copy of another state.
        MovedStateError
            When another state has taken its place.
        """
        return self._read()[1]

    def last(self) -> ControlRecord | None:
        """Return the record, even of a state that has moved or was given back to Storm."""
        return self._get()[1]

    def _read(self) -> tuple[bytes | None, ControlRecord | None]:
        stored, found = self._get()
        self._check_not_given_back(found)
        self.check_here(found)
        return stored, found

    def _check_not_given_back(self, found: ControlRecord | None) -> None:
        if found is not None and found.log_id == GIVEN_BACK:
            raise GivenBackError(self.place)

    def check_here(self, found: ControlRecord | None) -> None:
        """Raise MovedStateError for a record that says that another state takes its place."""
        if found is not None and found.move is not None:
            raise MovedStateError(self.place, found.move.to, decided=found.move.once is None)

    def _get(self) -> tuple[bytes | None, ControlRecord | None]:
        self.calls += 1
        stored = self._backing.getControl()
        return stored, self._decode(stored)

    def _put(self, new: bytes, expected: bytes | None) -> bool:
        self.calls += 1
        return self._backing.putControl(new, expected)

    def _decode(self, stored: bytes | None) -> ControlRecord | None:
        if stored is None:
            return None
        # Cached: readers ask before every query, and mostly get the same bytes again.
        if self._decoded is None or self._decoded[0] != stored:
            found = ControlRecord.decode(stored)
            if found.log_id.startswith(UNFINISHED):
                raise UnfinishedCopyError(self.place, found.log_id.removeprefix(UNFINISHED))
            self._decoded = stored, found
        return self._decoded[1]

    def unmerged(self, record: ControlRecord) -> list[str]:
        """Do as :meth:`IBackingMap.unmerged` does."""
        return self._backing.unmerged(record.encode())

    @property
    def removal(self) -> str:
        """What removes the state, where no command does."""
        return self._backing.removal

    def other_log(self, found: str, expected: str) -> OtherLogError:
        """Return the error for a state that belongs to the log `found`."""
        return OtherLogError(self.place, found, expected, self.prefix, self.removal)

    def expect(self) -> ControlRecord | None:
        """Return the record, for a reader; None for a state of this process that has not begun.

        Raises
        ------
        NoStateError
            When there is no record, so that there is no state to read.
        MovedStateError
            When another state has taken its place.
        """
        found = self.ask()()
        self.check_here(found)
        return found

    def ask(self) -> Wait[ControlRecord | None]:
        """Ask for the record, and return a function that waits for it.

        That function does as :meth:`expect`, but also returns the record of a state that has moved.
        """
        self.calls += 1
        wait = self._backing.askControl()
        return lambda: self._check_begun(self._decode(wait()))

    def _check_begun(self, found: ControlRecord | None) -> ControlRecord | None:
        """Return a record for a reader. Raise NoStateError for a missing one, unless the state is
        kept in this process: then it may begin later."""
        self._check_not_given_back(found)
        if found is not None:
            return found
        backing = self._backing
        others = [prefix for prefix in backing.prefixes() if prefix != backing.prefix]
        if not backing.lasts and not others:
            return None
        raise NoStateError(backing.where, backing.prefix, others)

    @property
    def can_look(self) -> bool:
        """Whether the store can tell that it holds entries."""
        return Ability.LOOK in abilities(self._backing)

    def occupant(self) -> str | None:
        """Return how errors name some entry; None if the store holds none, or can't look."""
        return self._backing.occupant()

    def check_vacant(self) -> None:
        """Raise if there are entries: a new state would go on from them, or overwrite them.

        Only for a state without a record.

        Raises
        ------
        UnownedStateError
            When there are entries.
        """
        found = self.occupant()
        if found is not None:
            raise UnownedStateError(self.place, found)

    def create(self, record: ControlRecord) -> None:
        """Give a state its first record, whatever entries it has.

        Raises
        ------
        OtherLogError
            When the state belongs to a log already.
        StateUnavailableError
            When the record changed after it was read.
        """
        stored, found = self._read()
        if found is not None and not found.is_unused:
            raise self.other_log(found.log_id, record.log_id)
        self._put_between_batches(record, stored)

    def _put_between_batches(self, record: ControlRecord, stored: bytes | None) -> None:
        """Replace `stored` by a record that begins no attempt."""
        # A store of shards also refuses it if one shard is ahead: the next begin mends that.
        if not self._put(record.encode(), stored) and self._backing.getControl() != stored:
            raise StateUnavailableError(
                self.place, "its control record changed while the run began", "Start again."
            )

    def replace(self, record: ControlRecord) -> None:
        """Replace the record, whoever owns the state; only while no topology runs it.

        Raises
        ------
        StaleBatchError
            When the record changed after it was read.
        """
        stored, found = self._get()
        if not self._put(record.encode(), stored):
            raise StaleBatchError(None, None if found is None else found.token)

    def move(self, move: Move) -> bool:
        """Record that another state takes the place of this one, whoever updates this one.

        Returns False if the record changed after it was read.

        Raises
        ------
        NoStateError
            When there is no record.
        MovedStateError
            When yet another state has taken the place.
        """
        stored, new = self.before_move(move)
        return stored == new or self._put(new, stored)

    def before_move(self, move: Move) -> tuple[bytes, bytes]:
        """Return the stored record and the one to replace it; raises as :meth:`move` does."""
        stored, found = self._get()
        if self._check_begun(found) is None or found is None or stored is None:
            raise NoStateError(self.where, self._backing.prefix)
        made = found.move
        if made is not None and made.once is None and made.to != move.to:
            self.check_here(found)
        if made in (move, replace(move, once=None)):
            return stored, stored
        return stored, found.moved(move).encode()

    def begin(self, record: ControlRecord, check: Check | None = None) -> None:
        """Make `record` the state's record, and so its token the only one that may write.

        Parameters
        ----------
        record : ControlRecord
            The attempt to begin: the log's id, the new token, what is committed.
        check : callable, optional
            Raises for a stored record that the log can't have left; see
            ``control_check.check_record``.

        Raises
        ------
        UnownedStateError
            When there is no record, but there are entries.
        StaleBatchError
            When the state has already begun a later attempt.
        StateError
            When the state has begun this very attempt: another state is kept in the same place, or
            another copy of the log has run.
        StateUnavailableError
            When the record changed after it was read.
        """
        announced, self._announced = self._announced, None
        if (
            announced is not None
            and announced.log_id == record.log_id
            and announced.token < record.token
            and self._put(record.encode(), announced.encode())
        ):
            return
        incarnation = self._backing.incarnation()
        stored, found = self._read()
        if found is not None and found.log_id == record.log_id and found.token == record.token:
            # An attempt begins a state once, so another state or another run wrote this record.
            raise StateError(
                f"state {self.place}: attempt {record.token.attempt} of batch "
                f"{record.token.txid} has begun there already. Either two states of this topology "
                "are kept in one place, perhaps under two names of one server: give one of them "
                "another prefix. Or another copy of this checkpoint has run: go on with the copy "
                "that ran last and delete the other."
            )
        if check is not None:
            check(found)
        if found is None or found.is_free_for(record.log_id):
            self.check_vacant()
        elif found.token > record.token:
            raise StaleBatchError(record.token, found.token)
        if not self._put(record.encode(), stored):
            raise StateUnavailableError(
                self.place, "its control record changed while the batch began", "It is retried."
            )
        self._incarnation = incarnation

    def ready(self, record: ControlRecord) -> ControlRecord:
        """Mark the record as ready, and confirm that all writes before the mark last.

        The mark is the attempt's last write. A store that loses the end of its acknowledged writes
        loses the mark first. So a record with the mark says that the batch is whole.

        Returns
        -------
        ControlRecord
            The record that the store holds now, to be announced after the commit.

        Raises
        ------
        StaleBatchError
            When a later attempt has begun.
        StateUnavailableError
            When the server restarted, another one took over, or the record is not the begun one:
            acknowledged writes may be lost, so the attempt fails.
        """
        ready = record.confirmed()
        marked = self._put(ready.encode(), record.encode())
        if not marked:
            found = self.read()
            if found is not None and found.log_id == record.log_id and found.token > record.token:
                raise StaleBatchError(record.token, found.token)
        else:
            self._backing.flush()
        # Compared after the mark: a server that took over without our writes would accept it too.
        if not marked or self._backing.incarnation() != self._incarnation:
            raise StateUnavailableError(
                self.place,
                "the store restarted or lost writes during the batch",
                "The batch is retried; check the store's log if this repeats.",
            )
        return ready

    def announce(self, record: ControlRecord) -> bool:
        """Tell readers that the attempt of `record` is committed, if the state still holds it.

        Parameters
        ----------
        record : ControlRecord
            The record that :meth:`ready` returned; for a state without a log the begun one.

        Returns
        -------
        bool
            Whether the state now has the announcement; False if a later attempt has begun, or one
            shard is ahead of the others: the next begin replaces all copies.

        Raises
        ------
        LostStateError, LostWritesError
            When the store holds an older record: it lost writes of the committed batch.
        """
        announced = record.announced()
        if self._put(announced.encode(), record.encode()):
            self._announced = announced
            return True
        found = self.read()
        if found is None:
            raise LostStateError(self.name, record.token, self.where, self.lasts)
        if found.log_id != record.log_id or found.token > record.token or found == record:
            return False
        # An earlier call may have stored it and got no answer.
        if found.token == record.token and found.committed >= record.token.txid:
            return True
        raise LostWritesError(self.name, record.token, self.where)

    def catch_up(self, committed: ControlRecord, check: Check) -> None:
        """Do as ``catch_up_all`` does, for this state alone."""
        catch_up_all([(self, check)], committed)

    def behind(self, committed: ControlRecord, check: Check) -> Change | None:
        """Return the change that brings the record up to `committed`; None if it needs none.

        The parameters and errors are those of ``catch_up_all``.
        """
        stored, found = self._read()
        check(found)
        if found is None or found.is_free_for(committed.log_id):
            self.check_vacant()
            return Change(self, stored, committed.waiting())
        if found.log_id != committed.log_id and found.never_ready:
            return None  # it stays until this log begins its first batch
        if found.log_id != committed.log_id or found.committed < committed.committed:
            caught_up = replace(committed, token=found.token, ready=found.ready, plan=found.plan)
            return Change(self, stored, caught_up)
        return None


@dataclass(frozen=True, slots=True)
class Change:
    """Replaces the record `expected` of a state by `new`."""

    control: Control
    expected: bytes | None
    new: ControlRecord


def announce_all(controls: Iterable[Control], record: ControlRecord) -> None:
    """Announce the ready `record` at states, those of one catalog in one step."""
    announced = record.announced()
    changes = [Change(control, record.encode(), announced) for control in controls]
    remaining = _put_together(changes)
    for change in changes:
        if change in remaining:
            change.control.announce(record)
        else:
            change.control._announced = announced


@dataclass(frozen=True)
class Prepared:
    """Announcements that need only their last step; see `IBackingMap.prepareControls`."""

    controls: Sequence[Control]
    record: ControlRecord
    finish: Callable[[], None]
    drop: Callable[[], None]

    def announce(self) -> None:
        """Make the last step. If it fails, the announcement has to be made anew."""
        self.finish()
        for control in self.controls:
            control._announced = self.record.announced()


def prepare_all(controls: Iterable[Control], record: ControlRecord) -> list[Prepared]:
    """Prepare the announcement of `record`, so that a store that refuses it does so before the
    commit."""
    catalogs: dict[Hashable, list[Control]] = {}
    for control in controls:
        if Ability.PREPARE in abilities(control._backing):
            catalogs.setdefault(control._backing.catalog, []).append(control)
    prepared: list[Prepared] = []
    try:
        for members in catalogs.values():
            before, after = record.encode(), record.announced().encode()
            changes = [(control._backing.prefix, after, before) for control in members]
            steps = members[0]._backing.prepareControls(changes)
            if steps is not None:
                prepared.append(Prepared(members, record, *steps))
    except BaseException:
        for each in prepared:
            each.drop()
        raise
    return prepared


def catch_up_all(controls: Iterable[tuple[Control, Check]], committed: ControlRecord) -> None:
    """Tell readers what the log has committed, once at start, before the first batch.

    Each state comes with a check as for :meth:`Control.begin`. A record that is not behind stays;
    a state without a record gets one. The token of `committed` doesn't matter.

    Raises UnownedStateError for a state with entries and no record, and StateUnavailableError if a
    record changed after it was read.
    """
    changes = [control.behind(committed, check) for control, check in controls]
    for change in _put_together([change for change in changes if change is not None]):
        change.control._put_between_batches(change.new, change.expected)


def _put_together(changes: Sequence[Change]) -> list[Change]:
    """Make the changes of each catalog in one step; return those that have to be made alone."""
    if len(changes) == 1:  # as in most batches
        return list(changes)
    remaining: list[Change] = []
    catalogs: dict[Hashable, list[Change]] = {}
    for change in changes:
        backing = change.control._backing
        together = change.expected is not None and Ability.TOGETHER in abilities(backing)
        catalogs.setdefault(backing.catalog if together else change.control, []).append(change)
    for members in catalogs.values():
        records: Any = [
            (change.control._backing.prefix, change.new.encode(), change.expected)
            for change in members
        ]
        if len(members) == 1 or not members[0].control._backing.putControls(records):
            remaining += members
    return remaining
