"""The control record: which attempt of which batch a state belongs to right now. Its bytes are the
*fence* of an attempt's writes; docs/protocol.md, "The states follow", says how."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
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
"""Raises where a control record, or its absence, can't be what the log left."""

_FORMAT = 1
_MOVED_FORMAT = 2
"""Of a record with a move: a version that knows none would read the old state for ever."""
GIVEN_BACK = "given-back-to-storm"
"""The log id of a state that Storm has again, and no topology may write."""

UNFINISHED = "unfinished-copy:"
"""What the log id of a copy begins with, before that of its state, until all of it is there."""


class Deciding(NamedTuple):
    """The state whose move decides for others: its prefix, the one it moves to, and its kind."""

    prefix: str
    to: str
    kind: StateType


@dataclass(frozen=True, slots=True)
class Move:
    """What a control record says of a state that was built anew under another prefix.

    It is at the prefix `to` of the same store, which keeps values of `kind`. Where `once` is given,
    it is there only when the record of that state says that it has made that very move: so several
    states move by the change of one record.
    """

    to: str
    kind: StateType
    once: Deciding | None = None


BURNT = -1
"""Stands for the committed attempt of a batch of which none counts; no attempt has this number."""


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """What a state is told about its batch; immutable, picklable, shipped to every task.

    Parameters
    ----------
    log_id : str
        The log's id, made once.
    token : Token
        The attempt that may write now.
    committed : int
        The last committed txid; 0 before the first.
    retried : mapping of int to int
        The txids whose committed attempt was not 0, and that attempt.
    ready : bool
        Whether the attempt has confirmed that everything it wrote is there.
    moment : int or None
        The batch's time, in milliseconds since 1970, where a step asks for it: the log has it, and
        the stored record has not.
    plan : str or None
        A digest of what the log has planned of the batch, until that is committed; for groups with
        a transactional state and a spout that plans.
    active : mapping of str to sequence of str
        Where a window asks for it, the partitions of each stream that its watermark waits for, by
        the stream's id: the stored record has not got them either.
    move : Move or None
        Where the state is now, if another one has taken its place; nothing begins under it.
    reached : int or None
        The time, in milliseconds since 1970, that the group's batches have reached, where it lets
        entries expire: by that the attempt and readers judge them.
    reaches : int or None
        The latest time in the batch of the record, and until it is written the latest that there
        may be, for all of its tasks; the stored record has not got it.

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
    retried: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    ready: bool = False
    moment: int | None = field(default=None, compare=False)
    plan: str | None = None
    active: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: MappingProxyType({}), compare=False
    )
    move: Move | None = None
    reached: int | None = None
    reaches: int | None = field(default=None, compare=False)
    _encoded: bytes | None = field(default=None, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        retried = dict(self.retried)
        fields = self.log_id, self.token, self.committed, retried, self.ready, self.moment
        others = self.plan, dict(self.active), self.move, self.reached, self.reaches
        return ControlRecord, (*fields, *others)

    def __hash__(self) -> int:
        return hash((self.log_id, self.token, self.committed))

    def attempt_of(self, txid: int) -> int:
        """Return which attempt of a committed `txid` counts."""
        return self.retried.get(txid, 0)

    def is_committed(self, txid: int, attempt: int) -> bool:
        """Return whether what `attempt` of `txid` wrote counts."""
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
        """Return the record of the same state after another one has taken its place.

        Its token is above all that has begun, so in a store of shards it counts once all have it.
        """
        txid, attempt = self.token
        return replace(self, token=Token(txid, attempt + 1), move=move)

    def waiting(self) -> ControlRecord:
        """Return the record of a state that waits for its first batch, in the same log."""
        return replace(self, token=Token(0, 0))

    @property
    def is_unused(self) -> bool:
        """Whether no batch has begun yet: whichever log begins one first owns the state."""
        return self.token == (0, 0)

    def is_free_for(self, log_id: str) -> bool:
        """Whether it is another log's and has begun no batch, so that `log_id` may replace it."""
        return self.is_unused and self.log_id != log_id

    @property
    def never_ready(self) -> bool:
        """Whether the log's first batch has begun, and nothing of any batch was ever made ready."""
        return self.token.txid == 1 and self.committed == 0 and not self.ready

    def is_later_than(self, other: ControlRecord) -> bool:
        """Whether it is of the first batch, of a later attempt than the one that `other` begins."""
        attempt = self.attempt_of(1) if self.committed else self.token.attempt
        return other.token < (1, attempt)

    def encode(self) -> bytes:
        """Return the canonical bytes: equal for equal records, and only for them."""
        # A batch sends each of its records several times, as what is written and as the fence.
        if self._encoded is None:
            object.__setattr__(self, "_encoded", self._encode())
        return self._encoded  # type: ignore[return-value]

    def _encode(self) -> bytes:
        told = {
            "format": _FORMAT if self.move is None else _MOVED_FORMAT,
            "lineage": self.log_id,
            "token": list(self.token),
            "committed": self.committed,
            "exceptions": sorted(self.retried.items()),
            "ready": self.ready,
        }
        if self.plan is not None:
            told["plan"] = self.plan
        if self.move is not None:
            once = self.move.once
            told["move"] = [
                *(self.move.to, self.move.kind.value),
                None if once is None else [*once[:2], once.kind.value],
            ]
        if self.reached is not None:
            told["reached"] = self.reached
        return orjson.dumps(told)

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
                move=None if found.get("move") is None else _move(*found["move"]),
                reached=None if found.get("reached") is None else int(found["reached"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptStateError(
                "a state's control record",
                f"{bytes(data[:80])!r} ({error})",
                "Restore the store from a backup, or begin anew with an empty store and a new "
                "checkpoint.",
            ) from error


def _move(to: str, kind: str, once: Sequence[str] | None) -> Move:
    if once is None:
        return Move(str(to), StateType(kind))
    prefix, target, of = once
    deciding = Deciding(str(prefix), str(target), StateType(of))
    return Move(str(to), StateType(kind), deciding)


class Control:
    """One state's control record, as the driver and readers use it.

    Parameters
    ----------
    backing : IBackingMap
        The store; only its control record and incarnation are touched.
    name : str
        How errors name the state.

    Attributes
    ----------
    calls : int
        How often the store was asked for the record, or given one.

    Notes
    -----
    Used wherever the map is: on the driver for batches, in tasks and serving processes for reading.
    A call that reads takes one round trip, one that changes the record two; none is repeated. A
    batch that begins after this control has announced the one before takes one: only what was
    announced can be there, and the server is compared with the one that confirmed that batch.
    """

    def __init__(self, backing: IBackingMap, name: str = "state") -> None:
        self.name = name
        self.calls = 0
        self._backing = backing
        self._seen: tuple[bytes, ControlRecord] | None = None
        self._incarnation: str | None = None
        self._left: ControlRecord | None = None

    @property
    def where(self) -> str:
        """Where the state is, if the store says that."""
        return self._backing.where

    @property
    def lasts(self) -> bool:
        """Whether the store outlives the process."""
        return self._backing.lasts

    @property
    def place(self) -> str:
        """How errors name the state: with where it is."""
        return f"{self.name} in {self.where}" if self.where else self.name

    @property
    def prefix(self) -> str | None:
        """What the state is kept under, where that isn't its name."""
        return None if self._backing.prefix == self.name else self._backing.prefix

    def read(self) -> ControlRecord | None:
        """Return the record as the store holds it now, None where there is none.

        Raises
        ------
        GivenBackError
            When the state was given back to Storm.
        UnfinishedCopyError
            When a copy of another state has begun there, and is not whole.
        MovedStateError
            When another state has taken its place.
        """
        return self._read()[1]

    def last(self) -> ControlRecord | None:
        """Return the record, even if it says that the state has moved, or is Storm's again."""
        return self._look()[1]

    def _read(self) -> tuple[bytes | None, ControlRecord | None]:
        stored, found = self._look()
        self.check_here(self._own(found))
        return stored, found

    def _own(self, found: ControlRecord | None) -> ControlRecord | None:
        if found is not None and found.log_id == GIVEN_BACK:
            raise GivenBackError(self.place)
        return found

    def check_here(self, found: ControlRecord | None) -> None:
        """Raise MovedStateError where a record says that another state has taken its place."""
        if found is not None and found.move is not None:
            raise MovedStateError(self.place, found.move.to, decided=found.move.once is None)

    def _look(self) -> tuple[bytes | None, ControlRecord | None]:
        self.calls += 1
        return self._decoded(self._backing.getControl())

    def _put(self, new: bytes, expected: bytes | None) -> bool:
        self.calls += 1
        return self._backing.putControl(new, expected)

    def _decoded(self, data: bytes | None) -> tuple[bytes | None, ControlRecord | None]:
        if data is None:
            return None, None
        # Readers ask before every query and mostly find what they found before.
        seen = self._seen
        if seen is None or seen[0] != data:
            found = ControlRecord.decode(data)
            if found.log_id.startswith(UNFINISHED):
                raise UnfinishedCopyError(self.place, found.log_id.removeprefix(UNFINISHED))
            seen = self._seen = data, found
        return seen

    def expect(self) -> ControlRecord | None:
        """Return the record, for a reader; None where a state of this process has not begun yet.

        Raises
        ------
        NoStateError
            When there is none: no state is there, so nothing that is read would mean anything.
        MovedStateError
            When another state has taken its place.
        """
        found = self.ask()()
        self.check_here(found)
        return found

    def ask(self) -> Wait[ControlRecord | None]:
        """Ask for what :meth:`expect` returns, or a record that says that the state has moved.

        Returns a function that waits for it.
        """
        self.calls += 1
        wait = self._backing.askControl()
        return lambda: self._begun(self._own(self._decoded(wait())[1]))

    def _begun(self, found: ControlRecord | None) -> ControlRecord | None:
        """Return what was found; raise where that is nothing, unless the state is of this process
        and may not have begun yet."""
        if found is not None:
            return found
        backing = self._backing
        others = [prefix for prefix in backing.prefixes() if prefix != backing.prefix]
        if not backing.lasts and not others:
            return None
        raise NoStateError(backing.where, backing.prefix, others)

    @property
    def can_look(self) -> bool:
        """Whether the store can tell that entries are there."""
        return Ability.LOOK in abilities(self._backing)

    def occupant(self) -> str | None:
        """Return how errors name some entry; None where there is none, or the store can't look."""
        return self._backing.occupant()

    def check_vacant(self) -> None:
        """Raise where entries are without a record: they would be counted from, or over.

        Raises
        ------
        UnownedStateError
            When there are entries; of a state that has a record it is not to be asked.
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
            raise OtherLogError(self.place, found.log_id, record.log_id, self.prefix)
        self._tell(record, stored)

    def _tell(self, record: ControlRecord, stored: bytes | None) -> None:
        """Replace `stored` by a record that begins no attempt. Where a sharded store refuses it, as
        one shard is further than the others, the next begin replaces every copy."""
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
        stored, found = self._look()
        if not self._put(record.encode(), stored):
            raise StaleBatchError(None, None if found is None else found.token)

    def move(self, move: Move) -> bool:
        """Say where the state that takes the place of this one is, whatever updates this one.

        Returns False where the record changed after it was read.

        Raises
        ------
        NoStateError
            When there is none.
        MovedStateError
            When yet another state has taken the place.
        """
        stored, new = self.before_move(move)
        return stored == new or self._put(new, stored)

    def before_move(self, move: Move) -> tuple[bytes, bytes]:
        """Return what the record is and what it is to become; raises as :meth:`move` does."""
        stored, found = self._look()
        if self._begun(self._own(found)) is None or found is None or stored is None:
            raise NoStateError(self.where, self._backing.prefix)
        there = found.move
        if there is not None and there.once is None and there.to != move.to:
            self.check_here(found)
        if there in (move, replace(move, once=None)):
            return stored, stored
        return stored, found.moved(move).encode()

    def begin(self, record: ControlRecord, check: Check | None = None) -> None:
        """Make `record` the state's record, and so its token the only one that may write.

        Parameters
        ----------
        record : ControlRecord
            What is begun: the id of the log, the new token, what is committed.
        check : callable, optional
            Raises where the record that is there can't be what the log left; see
            ``control_check.check_record``.

        Raises
        ------
        UnownedStateError
            When there is no record, but something that would be taken for this state's.
        StaleBatchError
            When the state has already begun a later attempt.
        StateError
            When this very attempt has begun there: another state is kept in the same place, or
            another copy of the log has run.
        StateUnavailableError
            When the record changed after it was read.
        """
        left, self._left = self._left, None
        if left is not None and left.log_id == record.log_id and left.token < record.token:
            left_as_it_is = self._put(record.encode(), left.encode())
            if left_as_it_is:
                return
        incarnation = self._backing.incarnation()
        stored, found = self._read()
        if found is not None and found.log_id == record.log_id and found.token == record.token:
            # An attempt begins a state once, so this record is another state's or another run's.
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
        """Mark the record as ready, and confirm that everything written before it lasts.

        The mark is the attempt's last write. A store that later loses the end of what it has
        acknowledged loses the mark before any of the batch's values, so whoever finds the mark
        knows that the batch is whole.

        Returns
        -------
        ControlRecord
            What the store holds now, to be announced after the commit.

        Raises
        ------
        StaleBatchError
            When a later attempt has begun.
        StateUnavailableError
            When the server restarted or another took over, or the record is not the begun one:
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
        # Asked after the mark: a server that took over without our writes would have accepted it.
        if not marked or self._backing.incarnation() != self._incarnation:
            raise StateUnavailableError(
                self.place,
                "the store restarted or lost writes during the batch",
                "The batch is retried; check the store's log if this repeats.",
            )
        return ready

    def announce(self, record: ControlRecord) -> bool:
        """Tell readers that the attempt of `record` is committed, where it is still ours.

        Parameters
        ----------
        record : ControlRecord
            As :meth:`ready` returned it; as begun for a state that no log updates.

        Returns
        -------
        bool
            Whether the state now knows; False where a later attempt has begun already, or one
            shard is further than the others, whose copy the next begin replaces.

        Raises
        ------
        LostStateError, LostWritesError
            When the store holds less than `record`: writes of the committed batch are lost.
        """
        announced = record.announced()
        if self._put(announced.encode(), record.encode()):
            self._left = announced
            return True
        found = self.read()
        if found is None:
            raise LostStateError(self.name, record.token, self.where, self.lasts)
        if found.log_id != record.log_id or found.token > record.token or found == record:
            return False
        # An earlier call may have been stored without an answer.
        if found.token == record.token and found.committed >= record.token.txid:
            return True
        raise LostWritesError(self.name, record.token, self.where)

    def catch_up(self, committed: ControlRecord, check: Check) -> None:
        """Do as ``catch_up_all`` does, for this state alone."""
        catch_up_all([(self, check)], committed)

    def behind(self, committed: ControlRecord, check: Check) -> Change | None:
        """Return how the record has to change for readers to know what is committed, if at all.

        The parameters and errors are those of ``catch_up_all``.
        """
        stored, found = self._read()
        check(found)
        if found is None or found.is_free_for(committed.log_id):
            self.check_vacant()
            return Change(self, stored, committed.waiting())
        if found.log_id != committed.log_id and found.never_ready:
            return None  # until this log begins its first batch behind it
        if found.log_id != committed.log_id or found.committed < committed.committed:
            caught_up = replace(committed, token=found.token, ready=found.ready, plan=found.plan)
            return Change(self, stored, caught_up)
        return None


@dataclass(frozen=True, slots=True)
class Change:
    """What the record of a state is to become, and what it has to be before."""

    control: Control
    expected: bytes | None
    new: ControlRecord


def announce_all(controls: Iterable[Control], record: ControlRecord) -> None:
    """Announce a record that is :meth:`Control.ready` at its states, in one step for each
    catalog."""
    announced = record.announced()
    changes = [Change(control, record.encode(), announced) for control in controls]
    alone = _put_together(changes)
    for change in changes:
        if change in alone:
            change.control.announce(record)
        else:
            change.control._left = announced


@dataclass(frozen=True)
class Prepared:
    """Announcements that are made but for their last step; see `IBackingMap.prepareControls`."""

    controls: Sequence[Control]
    record: ControlRecord
    finish: Callable[[], None]
    drop: Callable[[], None]

    def announce(self) -> None:
        """Make the last step; an announcement of which that fails is made anew."""
        self.finish()
        for control in self.controls:
            control._left = self.record.announced()


def prepare_all(controls: Iterable[Control], record: ControlRecord) -> list[Prepared]:
    """Make all that an announcement needs but its last step, so that a store refuses it now if at
    all."""
    catalogs: dict[Hashable, list[Control]] = {}
    for control in controls:
        if Ability.PREPARE in abilities(control._backing):
            catalogs.setdefault(control._backing.catalog, []).append(control)
    prepared: list[Prepared] = []
    try:
        for members in catalogs.values():
            before, after = record.encode(), record.announced().encode()
            told = [(control._backing.prefix, after, before) for control in members]
            held = members[0]._backing.prepareControls(told)
            if held is not None:
                prepared.append(Prepared(members, record, *held))
    except BaseException:
        for each in prepared:
            each.drop()
        raise
    return prepared


def catch_up_all(controls: Iterable[tuple[Control, Check]], committed: ControlRecord) -> None:
    """Tell readers what the log has committed, once at start, before the first batch.

    A record that is not behind stays as it is; a state that has none gets one. Each state comes
    with a check as for :meth:`Control.begin`; the token of `committed` doesn't matter. Raises
    UnownedStateError where there is no record, but something that would be taken for this state's,
    and StateUnavailableError where a record changed after it was read.
    """
    behind = [control.behind(committed, check) for control, check in controls]
    for change in _put_together([change for change in behind if change is not None]):
        change.control._tell(change.new, change.expected)


def _put_together(changes: Sequence[Change]) -> list[Change]:
    """Replace what is kept in one catalog in one step; return what has to be changed alone."""
    if len(changes) == 1:  # as in most batches
        return list(changes)
    left: list[Change] = []
    catalogs: dict[Hashable, list[Change]] = {}
    for change in changes:
        backing = change.control._backing
        together = change.expected is not None and Ability.TOGETHER in abilities(backing)
        catalogs.setdefault(backing.catalog if together else change.control, []).append(change)
    for members in catalogs.values():
        told = [
            (change.control._backing.prefix, change.new.encode(), change.expected)
            for change in members
        ]
        if len(members) == 1 or not members[0].control._backing.putControls(told):  # type: ignore[arg-type]
            left += members
    return left
