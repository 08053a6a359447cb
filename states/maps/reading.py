"""Reads committed state, from outside the batch that updates it.

:func:`read_committed` runs a query on views of one or several states, all of which show the same
committed batch. :func:`read_latest` runs it on views of the last writes. The view of a map state is
a :class:`CommittedMap`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, TypeVar

from trident.states.asking import Wait, wait_for
from trident.states.control import Control, ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.errors import StateUnavailableError
from trident.states.expiry import alive
from trident.states.keys import decode_key, encode_keys
from trident.states.kinds.kind import Kind
from trident.states.map_state import ITupleCollection, Key, ReadOnlyMapState, ReadOnlySnapshottable
from trident.states.state import ReadOnlyState, State
from trident.states.table.adapters import SerializedTable
from trident.states.table.table import Table
from trident.states.values import StateType, own_copies

T = TypeVar("T")

RESTARTS = 50
"""How often a query takes a new cut before it gives up."""

EMPTY = Cut.after(0, 1, {})
"""The cut of states that have not begun."""


class CommittedReads(State):
    """A state with views of committed batches; if it `removes` entries, a reader may miss some."""

    control: Control
    removes: bool

    @abstractmethod
    def has_moved(self, record: ControlRecord) -> bool:
        """Return whether the move in the state's record counts."""

    @abstractmethod
    def follow(self, record: ControlRecord) -> None:
        """Go to the place that the move in the state's record names."""

    @abstractmethod
    def committed(self, cut: Cut) -> ReadOnlyState:
        """Return a view of the state as of `cut`, without the cache and pending updates."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which all reads are of one moment, if the store can do that."""


def read_committed(
    states: Sequence[tuple[str, State]],
    query: Callable[[list[Any]], T],
    *,
    restarts: int = RESTARTS,
) -> T:
    """Run `query` on views of `states`. States of one batch group show one committed batch.

    Runs in the process that asks, at any moment, without disturbing the batch. An opaque state
    shows exactly what some committed batch left, and all opaque states of a group show the same
    batch. After a crash between a commit and its announcement that is the batch before, until the
    restart. Transactional and non-transactional states may show a running batch.

    Parameters
    ----------
    states : sequence of (str, State)
        The id of the batch group that updates the state, and the state. A state that keeps no
        batches (of the user's own making) is given to `query` as it is.
    query : callable
        Takes the list of views, in the order of `states`; each is a ReadOnlyMapState, and a
        ReadOnlySnapshottable and ITupleCollection if its state is. May be called several
        times; must not return anything lazy.
    restarts : int
        How often to begin again because a batch moved on meanwhile.

    Raises
    ------
    StateUnavailableError
        When batches moved on during every try.
    NoStateError
        When a state is missing, or has not begun.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> counts = MemoryMapState.Factory().makeState()
    >>> counts.beginCommit(1)
    >>> counts.multiPut([("dog",)], [2])
    >>> counts.commit(1)
    >>> read_committed([("g", counts)], lambda views: views[0].multiGet([("dog",), ("cat",)]))
    [2, None]

    Notes
    -----
    Control records are read before the keys. Let c be the least committed batch of a group's
    states, and k their least begun one. Entries of batches up to c count if their attempt is the
    committed one, entries of the next batch give their previous values, and any entry beyond
    max(k, c + 1) has the query begin again.
    """
    return _repeat(lambda: _query_committed(states, query), restarts)


def read_latest(states: Sequence[State], query: Callable[[list[Any]], T]) -> T:
    """Run `query` on views of `states` that show what running batches have written so far.

    Each opaque state is shown as if its last begun attempt were committed now, with what that
    attempt has written so far. So two keys, or two states, may be of different batches. What is
    shown may never be committed, and the next attempt may undo it. Nothing is read again, and
    batches that move on meanwhile are no error. Pending updates and caches, which only the process
    of the run has, don't show.

    Parameters
    ----------
    states : sequence of State
        The states. One that keeps no batches (of the user's own making) is given to `query` as it
        is.
    query : callable
        Takes the list of views, as that of :func:`read_committed` does; is called once.

    Raises
    ------
    NoStateError
        When a state is missing, or has not begun.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMapState
    >>> from trident.states.control import ControlRecord
    >>> from trident.states.values import Token
    >>> counts = MemoryMapState.Factory().makeState()
    >>> begun = ControlRecord("a log", Token(1, 0))
    >>> counts.control.begin(begun)
    >>> counts.beginCommit(begun)
    >>> counts.multiPut([("dog",)], [2])
    >>> counts.commit(begun)   # the log hasn't committed the batch yet
    >>> read_latest([counts], lambda views: views[0].multiGet([("dog",)]))
    [2]
    >>> read_committed([("g", counts)], lambda views: views[0].multiGet([("dog",)]))
    [None]
    """
    return _repeat(lambda: _query_latest(states, query), RESTARTS)


def _repeat(read: Callable[[], T], restarts: int) -> T:
    """Read until no batch and no state moves on meanwhile."""
    for _ in range(restarts + 1):
        try:
            return read()
        except BatchMovedOn:
            continue
        except _StatesMoved as moved:
            moved.follow()
    raise StateUnavailableError(
        "the states of a query",
        f"batches moved on during all {restarts + 1} tries",
        "Ask again; if it persists, the query takes longer than a batch.",
    )


def _query_committed(states: Sequence[tuple[str, State]], query: Callable[[list[Any]], T]) -> T:
    reads = [(group, state) for group, state in states if isinstance(state, CommittedReads)]
    with ExitStack() as snapshots:
        for _, state in reads:
            snapshots.enter_context(state.snapshot())
        records = _read_records([state for _, state in reads])
        cuts = _cuts(reads, records)
        views: dict[int, State] = {
            id(state): _view_committed(state, record, cuts.get(group, EMPTY))
            for (group, state), record in zip(reads, records, strict=True)
        }
        answer = query([views.get(id(state), state) for _, state in states])
        loses_entries = [
            each
            for each, record in zip(reads, records, strict=True)
            if each[1].kind is StateType.OPAQUE
            if each[1].removes or (record is not None and record.reached is not None)
        ]
        records = _read_records([state for _, state in loses_entries])
        for (group, _), record in zip(loses_entries, records, strict=True):
            cuts.get(group, EMPTY).check_nothing_removed(record)
    return answer


def _query_latest(states: Sequence[State], query: Callable[[list[Any]], T]) -> T:
    with ExitStack() as snapshots:
        for state in states:
            if isinstance(state, CommittedReads):
                snapshots.enter_context(state.snapshot())
        return query([_view_latest(state) for state in states])


def _view_latest(state: State) -> State:
    if not isinstance(state, CommittedReads):
        return state
    [record] = _read_records([state])
    if record is None:
        return state.committed(EMPTY.endless())
    if record.move is None:  # no attempt runs in a state that moves
        record = record.announced()
    cut = Cut(record.committed, record.token, record.retried, record.reached)
    return state.committed(cut.endless())


def _read_records(states: Sequence[CommittedReads]) -> list[ControlRecord | None]:
    """Return the record of each opaque state, and None for others; raise for a missing state.

    All records are asked for before any is waited for.
    """
    found = wait_for([state.control.ask() for state in states])
    moved = [
        (state, record)
        for state, record in zip(states, found, strict=True)
        if record is not None and record.move is not None and state.has_moved(record)
    ]
    if moved:
        raise _StatesMoved(moved)
    # Only in an opaque state does the record tell which entries count.
    return [
        record if state.kind is StateType.OPAQUE else None
        for state, record in zip(states, found, strict=True)
    ]


class _StatesMoved(Exception):
    """Some states have moved: the query begins anew, and reads all records once more.

    So no reader finds one of several states that move together in its old place, and another one in
    its new place.
    """

    def __init__(self, states: Sequence[tuple[CommittedReads, ControlRecord]]) -> None:
        self._states = states

    def follow(self) -> None:
        for state, record in self._states:
            state.follow(record)


def _cuts(
    reads: Sequence[tuple[str, CommittedReads]], records: Sequence[ControlRecord | None]
) -> Mapping[str, Cut]:
    """Return the cut of each group, from the records of its states."""
    begun: dict[str, list[ControlRecord]] = {}
    for (group, _), record in zip(reads, records, strict=True):
        if record is not None:
            begun.setdefault(group, []).append(record)
    return {group: Cut.common(found) for group, found in begun.items()}


def _view_committed(state: CommittedReads, record: ControlRecord | None, cut: Cut) -> ReadOnlyState:
    if state.kind is not StateType.OPAQUE:
        return state.committed(cut.endless())  # no cut can tell their entries apart
    if record is None:
        return state.committed(cut)
    return state.committed(cut._replace(retried=record.retried))


def view_before(state: State, record: ControlRecord) -> Any:
    """Return what queries in the batch of `record` read of a state that the batch updates: an
    opaque map as of the batch before."""
    if isinstance(state, CommittedReads):
        # An overtaken attempt can't commit, whatever it reads. So no read is refused.
        return state.committed(Cut.before(record).endless())
    return state


class CommittedMap(ReadOnlyState, ReadOnlyMapState, ReadOnlySnapshottable, ITupleCollection):
    """A map state as of one committed batch, without the cache; valid only inside its query."""

    def __init__(self, table: Table, kind: Kind, key: Key, cut: Cut) -> None:
        self._table = table
        self._kind = kind
        self._key = key
        self._cut = cut
        self._moment = cut.moment
        self._makes_values = isinstance(table, SerializedTable)

    @property
    def txid(self) -> int:
        """The batch that shows; meaningless for a map that isn't opaque."""
        return self._cut.committed

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        return self._ask(keys)()

    def ask(self, keys: Iterable[Key]) -> Wait[list[Any]]:
        return self._ask(keys)

    def _ask(self, keys: Iterable[Key]) -> Wait[list[Any]]:
        encoded = encode_keys(keys)
        if not encoded:
            return list
        distinct = list(dict.fromkeys(encoded))  # many tuples have the same key
        wait = self._table.ask(distinct)
        return lambda: self._each(encoded, distinct, self._values(wait()))

    def _each(
        self, keys: Sequence[bytes], distinct: Sequence[bytes], values: list[Any]
    ) -> list[Any]:
        """Return a value for each key, from those of the distinct keys."""
        if len(distinct) == len(keys):
            return values
        found = dict(zip(distinct, values, strict=True))
        return [*own_copies([*map(found.__getitem__, keys)])]

    def _values(self, entries: Sequence[Any]) -> list[Any]:
        """Return the values of entries, which the caller may change."""
        values = list(alive(self._kind.read(entries, self._cut), self._moment))
        # A store of bytes makes new objects; any other one may return its own.
        return values if self._makes_values else [*own_copies(values)]

    def get(self) -> Any:
        [value] = self.multiGet([self._key])
        return value

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        for key, value in self.entries():
            if value is not None:
                yield *decode_key(key), value

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and their values, if the store can list them."""
        return self._with_values(self._table.entries())

    def pages(self, part: Any) -> Iterator[list[tuple[bytes, Any]]]:
        """Yield those of a part, page by page; a key may come twice."""
        return map(self._with_values, self._table.pages(part))

    def _with_values(self, found: Sequence[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
        values = self._values([entry for _, entry in found])
        return [(key, value) for (key, _), value in zip(found, values, strict=True)]
