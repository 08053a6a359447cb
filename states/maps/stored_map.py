"""The map state over a backing map: the updates of a batch, their commit, and reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from copy import copy
from dataclasses import replace
from time import time_ns
from typing import Any, Self, TypeVar

from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.control import BURNT, Control, ControlRecord
from trident.states.cut import Cut
from trident.states.errors import StaleBatchError, StateError
from trident.states.keys import decode_key, encode_key, encode_keys
from trident.states.kinds import KINDS
from trident.states.kinds.kind import Kind
from trident.states.map_state import GLOBAL_KEY, Key, SnapshottableMap
from trident.states.maps.attempt import MapAttempt
from trident.states.maps.key_types import KeyTypes
from trident.states.maps.reading import CommittedMap, CommittedReads, read_committed
from trident.states.schema import ValueSchema
from trident.states.serializers import JSONSerializer, Serializer
from trident.states.state import Batch, State
from trident.states.table.build import build, layers
from trident.states.table.cache import CachedMap
from trident.states.table.table import Counts, LayeredMap
from trident.states.tracebacks import Briefly
from trident.states.updaters import Combiner, PutUpdater, ValueUpdater
from trident.states.values import StateType, Token

T = TypeVar("T")

STAND_ALONE = "stand-alone"
"""The log id of a state without a log."""


def begin_without_log(control: Control, txid: int) -> ControlRecord:
    """Begin the next attempt of `txid`, and return the record.

    A repeated txid is a replay, even of a committed batch: it starts from the batch before. The
    writes of a batch that was never committed don't count.

    Raises StaleBatchError if a later txid has begun, OtherLogError for a state of a topology.
    """
    found = control.read()
    if found is not None and found.is_free_for(STAND_ALONE):
        found = None
    if found is not None and found.log_id != STAND_ALONE:
        raise control.other_log(found.log_id, STAND_ALONE)
    attempt = 0
    retried: dict[int, int] = {}
    if found is not None:
        retried.update(found.retried)
        if found.token.txid == txid:
            attempt = found.token.attempt + 1
            if found.committed == txid:  # counts unless the replay is committed
                retried[txid] = found.attempt_of(txid)
        elif found.committed < found.token.txid:
            retried.setdefault(found.token.txid, BURNT)
    record = ControlRecord(STAND_ALONE, Token(txid, attempt), txid - 1, retried)
    control.begin(record)
    return record


class StoredMap(CommittedReads, SnapshottableMap):
    """A map state over a backing map. Updates are remembered and written once, by ``commit``.

    Lives in the process that updates or queries it, and is used by one thread at a time. Inside a
    batch ``multiGet`` sees the pending updates; outside, the last committed batch.

    Parameters
    ----------
    backing : IBackingMap or LayeredMap
        The store, perhaps under layers.
    serializer : Serializer
        Makes bytes of values, for stores of bytes.
    key : sequence
        The key of the single value.
    schema : ValueSchema, optional
        The present form of values, if that has changed.
    """

    kept_as: Kind
    """How values are kept."""

    late: int
    """How many tuples came too late for windows in this state, since it was made."""

    def __init__(
        self,
        backing: IBackingMap | LayeredMap,
        serializer: Serializer | None = None,
        key: Key = GLOBAL_KEY,
        schema: ValueSchema | None = None,
    ) -> None:
        self.key = key
        self.serializer = serializer or JSONSerializer()
        self.schema = schema
        self.elsewhere: Callable[[str, StateType], IBackingMap | LayeredMap] | None = None
        """Opens the map of another prefix and kind in the same store; None if unknown."""
        self._attempt: MapAttempt | None = None
        self._without_log = False
        self._removed_keys: set[bytes] = set()
        self._open_tables(backing)
        self.late = 0
        self._reached: tuple[Token, int] | None = None

    def _open_tables(self, backing: IBackingMap | LayeredMap) -> None:
        self._layered = backing
        wrapping, self.backing = layers(backing)
        self.caches = [layer for layer in wrapping if isinstance(layer, CachedMap)]
        self.control = Control(self.backing)
        able = abilities(self.backing)
        self.snapshots = Ability.SNAPSHOT in able
        self.removes = Ability.REMOVE in able
        self.tables = build(backing, self.kept_as, self.serializer, self.schema)
        self.lists = self.tables.reading.lists
        self._key_types: KeyTypes | None = None

    def has_moved(self, record: ControlRecord) -> bool:
        if record.move is None or self.elsewhere is None:
            self.control.check_here(record)
            return False
        once = record.move.once
        if once is None:
            return True
        deciding = layers(self.elsewhere(once.prefix, once.kind))[1]
        with closing(deciding):
            decided = Control(deciding).last()
        move = None if decided is None else decided.move
        return move is not None and (move.to, move.once) == (once.to, None)

    def follow(self, record: ControlRecord) -> None:
        assert record.move is not None
        assert self.elsewhere is not None
        old, name = self.backing, self.control.name
        self.kept_as = KINDS[record.move.kind]
        self._open_tables(self.elsewhere(record.move.to, record.move.kind))
        self.control.name = name
        old.close()

    def locate(self) -> None:
        """Go to the state that has taken the place of this one, if there is one."""
        while (found := self.control.last()) is not None and self.has_moved(found):
            self.follow(found)

    @property
    def kind(self) -> StateType:  # type: ignore[override]
        return self.kept_as.type

    @property
    def counts(self) -> Counts:
        """How often this state has called its store."""
        return replace(self.tables.counts)

    def beginCommit(self, batch: Batch) -> None:
        """Begin the updates of one attempt; older pending updates are dropped.

        Parameters
        ----------
        batch : int, Token or ControlRecord
            An int if this state writes its control record; repeated, it is the next attempt. The
            token of an attempt that has begun, or its record, which saves a read.

        Raises
        ------
        StaleBatchError
            When the state has begun a later attempt.
        OtherLogError
            When an int is given, but the state belongs to a topology.
        """
        self._attempt = None
        self._without_log = type(batch) is int
        self._attempt = MapAttempt(self._record_of(batch), self.tables.writing, self.kept_as)

    def _record_of(self, batch: Batch) -> ControlRecord:
        if isinstance(batch, ControlRecord):
            return batch
        if type(batch) is int:
            return begin_without_log(self.control, batch)
        if not isinstance(batch, Token):
            raise StateError(
                f"a batch is begun with an int, a Token or a ControlRecord, not with {batch!r}"
            )
        found = self.control.read()
        if found is None or found.token != batch:
            raise StaleBatchError(batch, None if found is None else found.token)
        return found

    @property
    def begun(self) -> ControlRecord:
        """The record of the running attempt."""
        return self._running("begun").record

    def commit(self, batch: Batch) -> None:
        """Write the pending updates, each key once; with an int, that commits the batch.

        After an error no updates are pending, and the batch has to begin again.

        Raises
        ------
        StaleBatchError
            When this attempt was overtaken.
        StateError
            When another batch was begun, or none.
        """
        attempt = self._running("commit")
        record = attempt.record
        if batch not in (record, record.token, record.token.txid):
            raise StateError(
                f"commit of {batch!r}, but {record.token} was begun; commit what was begun"
            )
        self._attempt = None
        self._removed_keys = attempt.flush(self._removed_keys)
        if self._without_log:
            if not self.control.announce(record):
                raise StaleBatchError(record.token)
            self.backing.flush()  # no log can announce it again

    def _running(self, call: str) -> MapAttempt:
        if self._attempt is None:
            raise StateError(
                f"{call} outside a batch: call beginCommit first, and again after a failed commit"
            )
        return self._attempt

    def multiUpdate(self, keys: Iterable[Key], updaters: Iterable[ValueUpdater]) -> list[Any]:
        """Update each key by its updater, remember the new values, and return them."""
        attempt = self._running("multiUpdate")
        return attempt.update(encode_keys(keys), [updater.update for updater in updaters])

    def multiPut(self, keys: Iterable[Key], values: Iterable[Any]) -> None:
        """Remember `values` for `keys`; None removes."""
        attempt = self._running("multiPut")
        attempt.put(encode_keys(keys), [PutUpdater(value).update for value in values])

    def multiRemove(self, keys: Iterable[Key]) -> None:
        """Remember to remove `keys`."""
        keys = list(keys)
        self.multiPut(keys, [None] * len(keys))

    def expire(self, after: int, times: Mapping[bytes, int] | int | None = None) -> None:
        """Let the values of this batch expire `after` milliseconds from a time.

        `times` gives one time for each encoded key, or one for all; a time in the future counts as
        now. Without it the time is the one that batches have reached.
        """
        attempt = self._running("expire")
        now, record = time_ns() // 1_000_000, attempt.record
        if times is None:
            attempt.expire({None: now if record.reached is None else record.reached}, after)
            return
        each: Mapping[Any, int] = times if isinstance(times, Mapping) else {None: times}
        latest = now if record.reaches is None else record.reaches
        each = {key: min(time, latest) for key, time in each.items()}
        attempt.expire(each, after)
        token, reached = record.token, max(each.values())
        if self._reached is not None and self._reached[0] == token:
            reached = max(reached, self._reached[1])
        self._reached = token, reached

    def reached(self, token: Token) -> int | None:
        """Return the latest time that `expire` was given in an attempt."""
        return self._reached[1] if self._reached and self._reached[0] == token else None

    def multiCombine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        """Combine a partial result into each encoded key; remember and return the new values."""
        return self._running("multiCombine").combine(keys, partials, combiner)

    def multiFold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Combine a partial result into each encoded key; a store that can add does it itself."""
        self._running("multiFold").fold(keys, partials, combiner)

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        """Return the values of `keys`: with pending updates inside a batch, else committed.

        Raises
        ------
        KeyTypeError
            Outside a batch, when all keys are absent and one has other types than the keys of this
            topology's state, so that it can never be found. Only if the store lists its entries.
        """
        if self._attempt is not None:
            return self._attempt.get(encode_keys(keys))
        keys = list(keys)
        with Briefly():
            found: list[Any] = read_committed([("", self)], lambda views: views[0].multiGet(keys))
            if keys and found.count(None) == len(found):
                self._check_types(keys)
        return found

    def _check_types(self, absent: Sequence[Key]) -> None:
        """Raise KeyTypeError for absent keys of types that no key in the state has."""
        record = self.control.last() if self.lists else None
        if record is None or record.log_id == STAND_ALONE:
            return
        if self._key_types is None:
            self._key_types = KeyTypes.find(self.tables.reading, self.key)
        if self._key_types is not None:
            others = [key for key in absent if tuple(key) != tuple(self.key)]
            self._key_types.check(self.control.place, others)

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        """Return ``(*key fields, value)`` of every key.

        Raises
        ------
        StateError
            When the store can't list its entries.
        """
        for key, value in self.entries():
            if value is not None:
                yield *decode_key(key), value

    def check_single(self) -> None:
        """Raise if the store holds entries without the single value.

        Called once, when Storm's state is taken over: counting would begin anew.
        """
        found = self.backing.occupant()
        if found is None or self.tables.reading.read([encode_key(self.key)])[0] is not None:
            return
        raise StateError(
            f"state {self.control.place}: an aggregate without groups needs the entry "
            f"{self.key[0]!r}, which is missing, while there is {found}. Give the key that Storm's "
            "globalKey named: snapshot_key="
        )

    def check_key(self) -> None:
        """Raise if the single value is under the key of most stores, and not under this state's
        key: counting would begin anew."""
        if self.key == GLOBAL_KEY:
            return
        own, usual = self.tables.reading.read([encode_key(self.key), encode_key(GLOBAL_KEY)])
        if own is None and usual is not None:
            raise StateError(
                f"state {self.control.place}: its single value is under {GLOBAL_KEY[0]!r}, where "
                f"earlier versions began it, not under {self.key[0]!r}, Storm's key in this store. "
                f"Leave it there: snapshot_key={GLOBAL_KEY[0]}"
            )

    def committed(self, cut: Cut) -> CommittedMap:
        """Return a view as of `cut`; :func:`~trident.states.read_committed` makes the cut."""
        return CommittedMap(self.tables.reading, self.kept_as, self.key, cut)

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and values, with pending updates inside a batch."""
        if self._attempt is None:
            return read_committed([("", self)], lambda views: views[0].entries())
        stored = [key for key, _ in self.tables.reading.entries()]
        keys = list(dict.fromkeys([*stored, *self._attempt.keys()]))
        return list(zip(keys, self._attempt.get(keys), strict=True))

    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which all reads are of one moment, if the store can do that."""
        return self.backing.snapshot()

    def as_kept(self) -> Self:
        """Return the state with values in the form in which they are stored, not upgraded."""
        made = copy(self)
        made.tables = build(self._layered, self.kept_as, self.serializer)
        return made

    def close(self) -> None:
        self._attempt = None
        self.backing.close()


def read_each(states: Sequence[State], query: Callable[[list[Any]], T]) -> T:
    """Run `query` on views of states, each as of its own last batch, so that all are asked at once.

    A state without such a view is given as it is: a view, a state of the user's own, and a map that
    is inside a batch or has its own `multiGet`. The query may run several times.
    """
    viewed = [number for number, state in enumerate(states) if _has_view(state)]

    def query_all(views: list[Any]) -> T:
        given = list(states)
        for number, view in zip(viewed, views, strict=True):
            given[number] = view
        return query(given)

    return read_committed([(str(number), states[number]) for number in viewed], query_all)


def _has_view(state: State) -> bool:
    return (
        isinstance(state, StoredMap)
        and state._attempt is None
        and type(state).multiGet is StoredMap.multiGet
    )
