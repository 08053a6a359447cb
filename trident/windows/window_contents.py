"""What a state keeps of the tuples in open windows: an aggregate a pane, or the tuples in chunks.

A *pane* is a part of a key's tuples; a window has several. Its name is the encoded key and a
number. The state keeps its content under that name, as any other entry, so it survives a replay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from trident.operations.emitted import Row, check_row
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    Operation,
    ReducerAggregator,
    TridentCollector,
)
from trident.states.errors import CorruptStateError
from trident.states.keys import decode_key
from trident.states.maps.stored_map import StoredMap
from trident.states.schema import ValueSchema
from trident.states.updaters import ValueUpdater
from trident.states.values import own_copy
from trident.tuples import tuple_type
from trident.tuples.fields import Fields

CHUNK = 256
"""How many tuples, or keys, one entry of a state holds at most."""
_AT_ONCE = 256
"""How many chunks are read at once, so that memory does not grow with a window."""
Pane = Row
Fresh = Mapping[Pane, Any]
"""What a batch brings to panes: the aggregate of its tuples for a combiner, else the tuples."""


class Window(NamedTuple):
    """A window to be emitted.

    The key's fields come before the values of the aggregator, `tail` after them. `numbers` of panes
    are a range if windows of the key slide over them; then all of these panes exist. The window
    skips the first `skip` tuples and has the next `size` ones, or all if that is None.
    """

    key: Row
    numbers: Sequence[int]
    tail: Row = ()
    skip: int = 0
    size: int | None = None


class WindowCollector(TridentCollector):
    """Takes what an aggregator emits of a window, and puts the window's own values around it."""

    def __init__(self, operation: str, width: int, collector: TridentCollector) -> None:
        self.window = Window((), ())
        self._operation = operation
        self._width = width
        self._collector = collector

    def emit(self, values: Sequence[Any]) -> None:
        row = check_row(self._operation, values, self._width)
        self._collector.emit((*_fields(self.window.key), *row, *self.window.tail))


def pane_key(encoded: bytes) -> Row:
    """The key by which panes are named. It is encoded: fields may be lists, and ``1 == True``."""
    return (encoded.decode(),)


def _fields(key: Row) -> Row:
    return decode_key(key[0].encode()) if key else ()


class Contents(ABC):
    """How panes are kept, and how windows are made of them."""

    @abstractmethod
    def add(self, state: StoredMap, fresh: Fresh) -> list[Pane]:
        """Add to panes in the state; return the new ones."""

    @abstractmethod
    def emit(
        self, state: StoredMap, windows: Sequence[Window], passing: Fresh, to: WindowCollector
    ) -> None:
        """Emit the windows that have tuples, in order; the state doesn't have the panes that are
        `passing`."""

    @abstractmethod
    def remove(self, state: StoredMap, panes: Sequence[Pane]) -> None:
        """Remove panes from the state."""

    @abstractmethod
    def upgraded(self, key: Row, value: Any, upgrade: Callable[[Any], Any]) -> Any:
        """Return an entry in which what belongs to the aggregator is upgraded."""


@dataclass(frozen=True)
class Aggregates(Contents):
    """An aggregate for each pane; only combiners join panes, whose keys begin with `name`."""

    aggregator: CombinerAggregator[Any] | ReducerAggregator[Any]
    inputs: Fields
    name: str = "pane"

    def add(self, state: StoredMap, fresh: Fresh) -> list[Pane]:
        updaters = [_MergePane(self._merge, brought) for brought in fresh.values()]
        state.multiUpdate(self._keys(fresh), updaters)
        return [pane for pane, updater in zip(fresh, updaters, strict=True) if updater.began]

    def emit(
        self, state: StoredMap, windows: Sequence[Window], passing: Fresh, to: WindowCollector
    ) -> None:
        wanted = _stored_panes(windows, passing)
        found = dict(zip(wanted, state.multiGet(self._keys(wanted)), strict=True))
        if windows and isinstance(windows[0].numbers, range) and None in found.values():
            raise missing_entry(self._keys(pane for pane in wanted if found[pane] is None)[0])
        found.update((pane, self._merge(None, brought)) for pane, brought in passing.items())
        sliding: dict[Row, SlidingAggregate] = {}
        for window in windows:
            key, numbers = window.key, window.numbers
            if isinstance(numbers, range) and len(numbers) > 2:
                if key not in sliding:
                    value = partial(_value, found, key)
                    sliding[key] = SlidingAggregate(self._combine, value)
                total = sliding[key].over(numbers)
            else:
                kept = [found[*key, number] for number in numbers]
                values = [one[0] for one in kept if one is not None]
                if not values:
                    continue
                first, *others = values
                total = reduce(self._combine, others, own_copy(first)) if others else first
            to.window = window
            to.emit((total,))

    def remove(self, state: StoredMap, panes: Sequence[Pane]) -> None:
        state.multiRemove(self._keys(panes))

    def upgraded(self, key: Row, value: Any, upgrade: Callable[[Any], Any]) -> Any:
        return [upgrade(value[0])] if key[0] == self.name and value[0] is not None else value

    def _keys(self, panes: Iterable[Pane]) -> list[Row]:
        return [(self.name, *pane) for pane in panes]

    def _merge(self, stored: Any, brought: Any) -> list[Any]:
        """The new content of a pane: its aggregate in a list, as that may be null."""
        aggregator = self.aggregator
        if isinstance(aggregator, CombinerAggregator):
            return [brought if stored is None else aggregator.combine(stored[0], brought)]
        value = aggregator.init() if stored is None else stored[0]
        for row in _as_tuples(aggregator, self.inputs, brought):
            value = aggregator.reduce(value, row)
        return [value]

    def _combine(self, one: Any, other: Any) -> Any:
        assert isinstance(self.aggregator, CombinerAggregator)
        return self.aggregator.combine(one, other)


def _value(found: Mapping[Pane, Any], key: Row, number: int) -> Any:
    return found[*key, number][0]


@dataclass(frozen=True)
class PaneTuples(Contents):
    """The tuples of each pane, in chunks; the aggregator runs when a window is emitted."""

    aggregator: ReducerAggregator[Any] | Aggregator[Any]
    inputs: Fields

    def add(self, state: StoredMap, fresh: Fresh) -> list[Pane]:
        counts = [len(rows) for rows in fresh.values()]
        totals = state.multiUpdate(_count_keys(fresh), list(map(Plus, counts)))
        befores = [total - count for total, count in zip(totals, counts, strict=True)]
        append(
            state,
            [
                (("tuples", *pane), before, [list(row) for row in rows])
                for (pane, rows), before in zip(fresh.items(), befores, strict=True)
            ],
        )
        return [pane for pane, before in zip(fresh, befores, strict=True) if not before]

    def emit(
        self, state: StoredMap, windows: Sequence[Window], passing: Fresh, to: WindowCollector
    ) -> None:
        batch = state.begun.token.txid
        for place, chunks in groupby(self._read_chunks(state, windows, passing), itemgetter(0)):
            window = to.window = windows[place]
            end = None if window.size is None else window.skip + window.size
            rows = islice(chain.from_iterable(map(itemgetter(1), chunks)), window.skip, end)
            self._run(_as_tuples(self.aggregator, self.inputs, rows), batch, to)

    def remove(self, state: StoredMap, panes: Sequence[Pane]) -> None:
        counts = self._counts(state, panes)
        chunks = [key for pane, n in counts.items() for key in chunk_keys(("tuples", *pane), n)]
        state.multiRemove([*_count_keys(counts), *chunks])

    def upgraded(self, key: Row, value: Any, upgrade: Callable[[Any], Any]) -> Any:
        return [upgrade(row) for row in value] if key[0] == "tuples" else value

    def _run(self, rows: Iterable[Any], batch: int, to: WindowCollector) -> None:
        aggregator = self.aggregator
        if isinstance(aggregator, ReducerAggregator):
            value = aggregator.init()
            for row in rows:
                value = aggregator.reduce(value, row)
            to.emit((value,))
            return
        value = aggregator.init(batch, to)
        for row in rows:
            following = aggregator.aggregate(value, row, to)
            value = value if following is None else following
        aggregator.complete(value, to)

    def _read_chunks(
        self, state: StoredMap, windows: Sequence[Window], passing: Fresh
    ) -> Iterator[tuple[int, Sequence[Any]]]:
        """The tuples of all windows in chunks, each with the position of its window."""
        wanted = _stored_panes(windows, passing)
        counts = self._counts(state, wanted)
        if windows and isinstance(windows[0].numbers, range) and len(counts) < len(wanted):
            raise missing_entry(_count_keys(pane for pane in wanted if pane not in counts)[0])
        parts = (
            (place, key)
            for place, window in enumerate(windows)
            for number in window.numbers
            for key in self._parts((*window.key, number), counts, passing)
        )
        while some := list(islice(parts, _AT_ONCE)):
            found = iter(read_existing(state, [part for _, part in some if type(part) is tuple]))
            for place, part in some:
                yield place, next(found) if type(part) is tuple else part

    def _parts(self, pane: Pane, counts: Mapping[Pane, int], passing: Fresh) -> Iterable[Any]:
        """The keys of a pane's chunks; if the pane is passing, its tuples in a list."""
        if pane in passing:
            return [list(passing[pane])]
        return chunk_keys(("tuples", *pane), counts.get(pane, 0))

    def _counts(self, state: StoredMap, panes: Sequence[Pane]) -> dict[Pane, int]:
        found = state.multiGet(_count_keys(panes))
        return {pane: count for pane, count in zip(panes, found, strict=True) if count}


@dataclass(frozen=True)
class WindowSchema(ValueSchema):
    """The form that aggregates, or tuples, in open windows have now."""

    contents: Contents

    def upgraded(self, key: bytes, value: Any, version: int) -> Any:
        def upgrade(one: Any) -> Any:
            return self.upgrade(one, version)

        return self.contents.upgraded(decode_key(key), value, upgrade)


@dataclass(frozen=True)
class Plus(ValueUpdater):
    """Adds to a number, which is 0 where none is stored."""

    number: int

    def update(self, stored: Any) -> Any:
        return (stored or 0) + self.number


class _MergePane(ValueUpdater):
    """Adds to a pane, and notes whether it is new."""

    def __init__(self, merge: Callable[[Any, Any], Any], brought: Any) -> None:
        self.began = False
        self._merge = merge
        self._brought = brought

    def update(self, stored: Any) -> Any:
        self.began = stored is None
        return self._merge(stored, self._brought)


@dataclass(frozen=True)
class _ExtendList(ValueUpdater):
    """Adds to the end of a list."""

    items: Sequence[Any]

    def update(self, stored: Any) -> Any:
        return [*(stored or ()), *self.items]


def append(state: StoredMap, lists: Iterable[tuple[Row, int, Sequence[Any]]]) -> None:
    """Append to lists that are kept in chunks, each given by its name, its length and new items."""
    keys, updaters = [], []
    for name, length, items in lists:
        done = 0
        while done < len(items):
            place, filled = divmod(length + done, CHUNK)
            some = items[done : done + CHUNK - filled]
            keys.append((*name, place))
            updaters.append(_ExtendList(some))
            done += len(some)
    state.multiUpdate(keys, updaters)


def chunk_keys(name: Row, length: int) -> list[Row]:
    return [(*name, place) for place in range(-(-length // CHUNK))]


def read_existing(state: StoredMap, keys: Sequence[Row]) -> list[Any]:
    """Read the values of keys, all of which have to exist."""
    found = state.multiGet(keys)
    if None in found:
        raise missing_entry(keys[found.index(None)])
    return found


def missing_entry(key: Row) -> CorruptStateError:
    """The error for a missing entry of open windows."""
    advice = (
        "Was the window declared otherwise, or does the store forget entries? Declare it as it "
        "was, or begin anew in a state of another name."
    )
    return CorruptStateError("an open window", f"there is no entry {key!r}", advice)


def _count_keys(panes: Iterable[Pane]) -> list[Row]:
    return [("pane", *pane) for pane in panes]


def _stored_panes(windows: Sequence[Window], passing: Fresh) -> list[Pane]:
    """The panes of windows that the state may have, each once."""
    wanted: dict[Pane, None] = {}
    slid: dict[Row, int] = {}
    for key, numbers, *_ in windows:
        if isinstance(numbers, range):  # the window before has added its own panes already
            numbers = range(max(numbers.start, slid.get(key, numbers.start)), numbers.stop)
            slid[key] = numbers.stop
        wanted.update(((*key, number), None) for number in numbers)
    return [pane for pane in wanted if pane not in passing]


def _as_tuples(operation: Operation, inputs: Fields, rows: Iterable[Any]) -> Iterable[Any]:
    """Stored values as the tuples that an operation takes."""
    return map(tuple if operation.positional else tuple_type(inputs), rows)


class SlidingAggregate:
    """Combines a sequence of panes that loses its first ones and gets new ones.

    The panes are in two stacks. For each older pane it keeps the aggregate of that pane and all
    after it, so that the first one can go at no cost. For the newer panes it keeps one aggregate of
    all. When there is no older pane, the newer ones become the older ones. `combine` is
    associative, and may change its first argument in place.
    """

    def __init__(self, combine: Callable[[Any, Any], Any], value: Callable[[int], Any]) -> None:
        self._combine = combine
        self._value = value
        self._older: list[Any] = []  # each with all after it; that of the first pane is the last
        self._newer: list[Any] = []
        self._total: Any = None  # of the newer ones
        self._panes = range(0)

    def over(self, panes: range) -> Any:
        """The aggregate of some panes; no end may be before that of the last call."""
        if panes.start >= self._panes.stop:
            self._older, self._newer = [], []
            self._panes = range(panes.start, panes.start)
        for _ in range(self._panes.start, panes.start):
            self._drop()
        for number in range(self._panes.stop, panes.stop):
            value = self._value(number)
            self._total = self._combine(self._total, value) if self._newer else own_copy(value)
            self._newer.append(value)
        self._panes = panes
        if not self._older:
            return own_copy(self._total)
        oldest = self._older[-1]
        return self._combine(own_copy(oldest), self._total) if self._newer else own_copy(oldest)

    def _drop(self) -> None:
        if not self._older:
            while self._newer:
                value = own_copy(self._newer.pop())
                behind = self._older[-1] if self._older else None
                self._older.append(self._combine(value, behind) if self._older else value)
        self._older.pop()
