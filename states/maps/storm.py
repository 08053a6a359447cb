"""Storm's state: read as Storm itself reads it, and given back to Storm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn

from trident.states.backing_map import IBackingMap
from trident.states.control import GIVEN_BACK, Control, ControlRecord
from trident.states.cut import Cut
from trident.states.errors import NoStateError, StaleBatchError, StateError
from trident.states.kinds import KINDS
from trident.states.kinds.opaque import OpaqueEntries, OpaqueKind
from trident.states.map_state import GLOBAL_KEY, Key, MapState
from trident.states.maps.stored_map import StoredMap
from trident.states.schema import ValueSchema
from trident.states.serializers import Serializer
from trident.states.state import Batch
from trident.states.table.table import LayeredMap
from trident.states.values import OpaqueValue, StateType, Token, TransactionalValue

_AT_ONCE = 10_000


def give_back(
    state: MapState, txid: int, *, in_flight: Literal["committed", "burn"] | None = None
) -> int:
    """Rewrite a state so that Storm can go on with it; from then on no topology may write it.

    Storm reads the first three elements of ``[txid, curr, prev, attempt]`` as committed, and
    refuses a txid above its own. So every entry that Storm would read wrongly is rewritten as
    the committed value, of attempt 0 of `txid`; an entry without a value is removed. May be called
    again after a failure. Runs in the process that calls, with the whole state in its memory; the
    topology has to be stopped. Afterwards delete the control record, see "Storm's state" in
    ``docs/protocol.md``.

    Parameters
    ----------
    state : map state
        What its factory's ``makeState()`` returned, over a store that can list its entries.
    txid : int
        The last batch that Storm itself committed: the `base` that the state was taken over with.
    in_flight : str, optional
        If the last batch was begun and not announced: ``"committed"`` if the checkpoint's log has
        it, else ``"burn"``, for opaque state only.

    Returns
    -------
    int
        How many entries were rewritten or removed.

    Raises
    ------
    NoStateError
        When there is no control record.
    StateError
        When the store can't list its entries, the state has no backing map, or `in_flight` is
        missing or impossible.
    StaleBatchError
        When somebody else has written the control record meanwhile.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> counts = MemoryMapState.Factory("given back").makeState()
    >>> for txid in 1, 2:
    ...     counts.beginCommit(txid)
    ...     counts.multiPut([(f"dog {txid}",)], [txid])
    ...     counts.commit(txid)
    >>> give_back(counts, 1)
    1
    >>> counts.backing.multiGet([b"dog 2"])
    [OpaqueValue(txid=1, attempt=0, curr=2, prev=2)]
    """
    if not isinstance(state, StoredMap):
        raise StateError(f"give_back: {type(state).__name__} is no map over a store")
    control = state.control
    if not state.lists:
        raise StateError(
            f"state {control.place} can't be given back: its store lists no entries, so those of "
            "failed attempts can't be found. Copy what you know the keys of, or count anew."
        )
    found = control.last() or control.expect()
    control.check_here(found)
    if found is None:
        return 0
    record = _record_of_storm(state, found, in_flight)
    control.replace(record)
    table = state.tables.writing
    table.begin(record)
    entries = table.entries()
    cut = Cut.after(record.committed, record.token.txid, record.retried).endless()
    values = state.kept_as.read([entry for _, entry in entries], cut)
    changed = [
        (key, value)
        for (key, entry), value in zip(entries, values, strict=True)
        if not _is_storms(entry, value, txid, record)
    ]
    for start in range(0, len(changed), _AT_ONCE):
        _rewrite(state, changed[start : start + _AT_ONCE], txid, record)
    state.backing.flush()
    return len(changed)


def _record_of_storm(
    state: StoredMap, found: ControlRecord, in_flight: str | None
) -> ControlRecord:
    """Return the record under which the state is rewritten: a further attempt of the last batch."""
    (begun, attempt), committed, retried = found.token, found.committed, dict(found.retried)
    if begun > committed:
        if in_flight not in ("committed", "burn"):
            raise StateError(
                f"state {state.control.place}: attempt {attempt} of batch {begun} has begun, and "
                "the state doesn't know whether it was committed. Start the topology and stop it "
                "after a batch; or give in_flight='committed' if the checkpoint's log has that "
                "batch as committed, else 'burn'."
            )
        if in_flight == "committed" and not found.ready:
            raise StateError(
                f"state {state.control.place}: attempt {attempt} of batch {begun} has not written "
                "everything, so it can't have been committed. Give in_flight='burn'; or restore "
                "the store, if it may have lost writes."
            )
        if in_flight == "committed":
            committed = begun
            retried.update({begun: attempt} if attempt else {})
        elif state.kind is not StateType.OPAQUE:
            raise StateError(
                f"state {state.control.place}: what a batch left in {state.kind.value} state can't "
                "be undone. Give in_flight='committed'."
            )
    return ControlRecord(GIVEN_BACK, Token(begun, attempt + 1), committed, retried)


def _is_storms(entry: Any, value: Any, txid: int, record: ControlRecord) -> bool:
    """Return whether Storm, after its batch `txid`, reads `value` from `entry` unchanged."""
    match entry:
        case OpaqueValue():
            old = entry.txid <= txid and record.is_committed(entry.txid, entry.attempt)
            return old and entry.attempt == 0 and value is not None
        case TransactionalValue():
            return entry.txid <= txid and value is not None
        case _:
            return value is not None


def _rewrite(
    state: StoredMap, changed: Sequence[tuple[bytes, Any]], txid: int, record: ControlRecord
) -> None:
    table = state.tables.writing
    dead = [key for key, value in changed if value is None] if table.removes else []
    kept = [(key, value) for key, value in changed if value is not None or not dead]
    opaque = state.kind is StateType.OPAQUE
    keys = [key for key, _ in kept]
    # Both values are the committed one: so the entry means the same under any control record.
    entries = [
        OpaqueValue(txid, 0, value, value) if opaque else TransactionalValue(txid, value)
        for _, value in kept
    ]
    if dead:
        table.remove(dead)
    if table.refuses:
        table.read(keys)  # a write is compared with what was read
    if table.write(keys, entries):
        raise StaleBatchError(record.token)


class StormControl(Control):
    """The control of a state without a record: readers see every entry, and no batch may begin."""

    _has_entries = False

    def _check_begun(self, found: ControlRecord | None) -> None:
        """Return None, which has readers take every entry as it is.

        Raises StateError if a topology has taken the state over: some entries may belong to a
        running batch. Raises NoStateError if the store can look for entries, and has none.
        """
        self._check_not_given_back(found)
        if found is not None:
            raise StateError(
                f"state {self.place} has been taken over from Storm: its log id is "
                f"{found.log_id}. Read it without written_by=storm."
            )
        if not self._has_entries and self.can_look:
            if self.occupant() is None:
                raise NoStateError(self.where, self._backing.prefix, self._backing.prefixes())
            self._has_entries = True

    def begin(self, *_: Any, **__: Any) -> NoReturn:
        raise self._read_only()

    def create(self, record: ControlRecord) -> NoReturn:
        raise self._read_only()

    def behind(self, *_: Any, **__: Any) -> NoReturn:
        raise self._read_only()

    def check_vacant(self) -> NoReturn:
        raise self._read_only()

    def _read_only(self) -> StateError:
        return StateError(
            f"state {self.place} was opened with written_by=storm, which is for reading. Leave it "
            "out, and start with a new checkpoint and adopt=Adopt.from_storm(<Storm's last txid>)."
        )


class StormMap(StoredMap):
    """Reads what Storm wrote, and may still write: each entry as it was written last."""

    def __init__(
        self,
        kind: StateType,
        backing: IBackingMap | LayeredMap,
        serializer: Serializer | None = None,
        key: Key = GLOBAL_KEY,
        schema: ValueSchema | None = None,
    ) -> None:
        self.kept_as = _LAST_WRITTEN if kind is StateType.OPAQUE else KINDS[kind]
        super().__init__(backing, serializer, key, schema)
        self.control: StormControl = StormControl(self.backing)

    def beginCommit(self, batch: Batch) -> NoReturn:
        self.control.check_vacant()


class _LastWritten(OpaqueKind):
    """Every entry counts, with its last value."""

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        if isinstance(entries, OpaqueEntries):
            return list(entries.currs)
        return [None if entry is None else entry.curr for entry in entries]


_LAST_WRITTEN = _LastWritten()
