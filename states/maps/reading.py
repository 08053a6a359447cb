"""How committed state is read, from outside the batch that updates it.

:func:`read_committed` runs a query on views of one or several states, all of which show the same
committed batch; :func:`read_latest` on views of what was written last. A view of a map state is a
:class:`CommittedMap`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from operator import attrgetter
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
from trident.states.values import StateType, own_all

T = TypeVar("T")

RESTARTS = 50
"""How often a query takes a new cut before it gives up."""

_COMMITTED = attrgetter("committed")
_NOTHING = Cut.after(0, 1, {})


class CommittedReads(State):
    """A state that can show what batches committed; if `removes`, a reader may miss an entry."""

    control: Control
    snapshots: bool
    removes: bool

    @abstractmethod
    def has_moved(self, record: ControlRecord) -> bool:
        """Return whether the state is where its record says that it moves to."""

    @abstractmethod
    def follow(self, record: ControlRecord) -> None:
        """Read the state where its record says that it is."""

    @property
    @abstractmethod
    def kind(self) -> StateType:  # type: ignore[override]
        """How values are kept."""

    @abstractmethod
    def committed(self, cut: Cut) -> ReadOnlyState:
        """Return a view of the state as of `cut`, past any cache and without pending updates."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which everything that readers read is of one moment."""


def read_committed(
    states: Sequence[tuple[str, State]],
    query: Callable[[list[Any]], T],
    *,
    restarts: int = RESTARTS,
) -> T:
    """Run `query` on views of `states` that show one committed batch a batch group.

    Runs in whatever process asks, at any moment, without disturbing the batch. An opaque state
    shows exactly what some committed batch left, and all opaque states of a group the same batch;
    after a crash between a commit and its announcement that is the batch before, until the
    restart. Transactional and non-transactional states may show a batch that is under way.

    Parameters
    ----------
    states : sequence of (str, State)
        Each state and the id of the batch group that updates it. A state that keeps no batches
        (of the user's own making) is handed to `query` as it is.
    query : callable
        Takes the list of views, in the order of `states`; each is a ReadOnlyMapState, and a
        ReadOnlySnapshottable and ITupleCollection where its state is. May be called several
        times; what it returns must not be lazy.
    restarts : int
        How often to begin again because a batch moved on meanwhile.

    Raises
    ------
    StateUnavailableError
        When batches moved on during every try.
    NoStateError
        When a state is not there, or has not begun.

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
    Control records are read before the keys. With c the least committed batch of a group's
    states and k the least begun one: what batches up to c wrote counts as their committed attempts
    say, the next batch's values give their previous ones, and anything beyond max(k, c + 1) starts
    over.
    """
    for _ in range(restarts + 1):
        try:
            return _try(states, query)
        except BatchMovedOn:
            continue
        except _Moved as moved:
            moved.follow()
    raise _moved_on(restarts + 1)


def read_latest(states: Sequence[State], query: Callable[[list[Any]], T]) -> T:
    """Run `query` on views of `states` that show what batches under way have written so far.

    Each opaque state is shown as if the attempt that began it last were committed now, with what
    that has written by then. So two keys, or two states, may be of different batches; what is shown
    may never be committed, and be taken back by the next attempt. Nothing is read again, and
    batches that move on meanwhile are no error. What only the process of the run has, pending
    updates and caches, doesn't show.

    Parameters
    ----------
    states : sequence of State
        The states. One that keeps no batches (of the user's own making) is handed to `query` as it
        is.
    query : callable
        Takes the list of views, as that of :func:`read_committed` does; is called once.

    Raises
    ------
    NoStateError
        When a state is not there, or has not begun.

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
    for _ in range(RESTARTS + 1):
        try:
            return _try_latest(states, query)
        except _Moved as moved:
            moved.follow()
    raise _moved_on(RESTARTS + 1)


def _try_latest(states: Sequence[State], query: Callable[[list[Any]], T]) -> T:
    with ExitStack() as moment:
        for state in states:
            if isinstance(state, CommittedReads) and state.snapshots:
                moment.enter_context(state.snapshot())
        return query([_latest(state) for state in states])


def _latest(state: State) -> State:
    if not isinstance(state, CommittedReads):
        return state
    [record] = _records([state])
    begun = record
    if record is not None and record.move is None:  # else no attempt is under way
        begun = record.announced()
    cut = _NOTHING
    if begun is not None:
        cut = Cut(begun.committed, begun.token, begun.retried, begun.reached)
    return state.committed(cut.endless())


def _moved_on(tries: int) -> StateUnavailableError:
    return StateUnavailableError(
        "the states of a query",
        f"batches moved on during all {tries} tries",
        "Ask again; if it persists, the query takes longer than a batch.",
    )


def _try(states: Sequence[tuple[str, State]], query: Callable[[list[Any]], T]) -> T:
    reads = [(group, state) for group, state in states if isinstance(state, CommittedReads)]
    with ExitStack() as moment:
        for _, state in reads:
            if state.snapshots:
                moment.enter_context(state.snapshot())
        records = _records([state for _, state in reads])
        cuts = _cuts(reads, records)
        views: dict[int, State] = {
            id(state): _view(state, record, cuts.get(group, _NOTHING))
            for (group, state), record in zip(reads, records, strict=True)
        }
        answer = query([views.get(id(state), state) for _, state in states])
        again = [
            each
            for each, record in zip(reads, records, strict=True)
            if each[1].kind is StateType.OPAQUE
            if each[1].removes or (record is not None and record.reached is not None)
        ]
        records = _records([state for _, state in again])
        for (group, _), record in zip(again, records, strict=True):
            _check_nothing_removed(record, cuts.get(group, _NOTHING))
    return answer


def _records(states: Sequence[CommittedReads]) -> list[ControlRecord | None]:
    """Return the record of each state; all are asked before any is waited for.

    Of a state whose entries can't be told apart by it, it only says that the state is there.
    """
    found = wait_for([state.control.ask() for state in states])
    moved = [
        (state, record)
        for state, record in zip(states, found, strict=True)
        if record is not None and record.move is not None and state.has_moved(record)
    ]
    if moved:
        raise _Moved(moved)
    return [
        record if state.kind is StateType.OPAQUE else None
        for state, record in zip(states, found, strict=True)
    ]


class _Moved(Exception):
    """Some states have moved: whoever reads them begins anew, and reads all records once more.

    So of states that move together none is read here and another one there.
    """

    def __init__(self, states: Sequence[tuple[CommittedReads, ControlRecord]]) -> None:
        self._states = states

    def follow(self) -> None:
        for state, record in self._states:
            state.follow(record)


def _cuts(
    reads: Sequence[tuple[str, CommittedReads]], records: Sequence[ControlRecord | None]
) -> Mapping[str, Cut]:
    """Return the cut of each group from the records of its states, as far as they have one."""
    begun: dict[str, list[ControlRecord]] = {}
    for (group, _), record in zip(reads, records, strict=True):
        if record is not None:
            begun.setdefault(group, []).append(record)
    cuts: dict[str, Cut] = {}
    for group, found in begun.items():
        least = min(found, key=_COMMITTED)
        under_way = min([record.token.txid for record in found])
        horizon = max(least.committed + 1, under_way)
        cuts[group] = Cut.after(least.committed, horizon, least.retried, least.reached)
    return cuts


def _view(state: CommittedReads, record: ControlRecord | None, cut: Cut) -> ReadOnlyState:
    if state.kind is not StateType.OPAQUE:
        return state.committed(cut.endless())  # their entries can't be told apart by a cut
    if record is None:
        return state.committed(cut)
    return state.committed(cut._replace(retried=record.retried))


def _check_nothing_removed(record: ControlRecord | None, cut: Cut) -> None:
    """Raise where tombstones of a later batch than the cut's may have been removed.

    A batch removes the tombstones of the batches committed before it; a reader that is still
    before one of those needed the values they kept. `record` was read after the entries.
    """
    if record is not None and min(record.committed, record.token.txid - 1) > cut.committed:
        raise BatchMovedOn(record.token)


class CommittedMap(ReadOnlyState, ReadOnlyMapState, ReadOnlySnapshottable, ITupleCollection):
    """A map state as of one committed batch, past any cache; good only inside its query."""

    def __init__(self, table: Table, kind: Kind, key: Key, cut: Cut) -> None:
        self._table = table
        self._kind = kind
        self._key = key
        self._cut = cut
        self._moment = cut.moment
        self._fresh = isinstance(table, SerializedTable)

    @property
    def txid(self) -> int:
        """The batch whose values show: the cut's; of a map that isn't opaque it says nothing."""
        return self._cut.committed

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        return self._ask(keys)()

    def ask(self, keys: Iterable[Key]) -> Wait[list[Any]]:
        return self._ask(keys)

    def _ask(self, keys: Iterable[Key]) -> Wait[list[Any]]:
        encoded = encode_keys(keys)
        if not encoded:
            return list
        asked = list(dict.fromkeys(encoded))  # many tuples have the same key
        wait = self._table.ask(asked)
        return lambda: self._values(encoded, asked, wait())

    def _values(
        self, encoded: Sequence[bytes], asked: Sequence[bytes], entries: Sequence[Any]
    ) -> list[Any]:
        """The values of keys, of the entries of those that were asked for, each once."""
        values = self._alive(entries)
        if len(asked) == len(encoded):
            return values
        found = dict(zip(asked, values, strict=True))
        return [*own_all([*map(found.__getitem__, encoded)])]

    def _alive(self, entries: Sequence[Any]) -> list[Any]:
        """The values of entries. Whoever asked may change them: they are made of bytes, or copied,
        as what is read of a store of objects is the store's."""
        values = list(alive(self._kind.read(entries, self._cut), self._moment))
        return values if self._fresh else [*own_all(values)]

    def get(self) -> Any:
        [value] = self.multiGet([self._key])
        return value

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        for key, value in self.entries():
            if value is not None:
                yield *decode_key(key), value

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and their values, of a store that can list them."""
        return self._valued(self._table.entries())

    def pages(self, part: Any) -> Iterator[list[tuple[bytes, Any]]]:
        """Yield those of a part, some at a time; a key may come twice."""
        return map(self._valued, self._table.pages(part))

    def _valued(self, found: Sequence[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
        values = self._alive([entry for _, entry in found])
        return [(key, value) for (key, _), value in zip(found, values, strict=True)]


def as_before(state: State, record: ControlRecord) -> Any:
    """What a query in a batch reads of a state that it updates: an opaque map as of the batch
    before."""
    if isinstance(state, CommittedReads):
        # Whatever an attempt reads after it was overtaken, it can't commit. So no read is refused.
        return state.committed(Cut.before(record).endless())
    return state
