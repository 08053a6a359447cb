"""The updaters of windows: each takes a batch into open windows, and emits those that end.

Of its windows a state keeps what `trident.operations.window_contents` says, and what tells which
of them are open: where each key has come to for windows by count, the watermark and an agenda for
those by time. Which windows a batch ends follows from that and from the batch, so that an attempt
which is replayed ends the same ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from math import gcd
from typing import Any, NamedTuple

from trident.operations.emitted import Row
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    StateUpdater,
    TridentCollector,
    TridentOperationContext,
    operation_name,
)
from trident.operations.window_contents import (
    CHUNK,
    Aggregates,
    Contents,
    Plus,
    Tuples,
    Window,
    WindowCollector,
)
from trident.operations.windows import CountWindow
from trident.states.keys import decode_key, encode_key
from trident.states.stored_map import StoredMap
from trident.tuples import TridentTuple
from trident.tuples.fields import Fields

AnyAggregator = CombinerAggregator[Any] | ReducerAggregator[Any] | Aggregator[Any]


class WindowTuples(NamedTuple):
    """The tuples of a batch on their way into windows.

    Parameters
    ----------
    keys : sequence
        What tells the key of each tuple from others.
    key_of : callable
        The fields of a key, from what is in `keys`.
    times : sequence
        The time of each tuple; empty where the window has no field with one.
    fold : callable
        Takes a label for each tuple, and gives for each label the aggregate of its tuples, for a
        combiner, or a list of their values.
    """

    keys: Sequence[Hashable]
    key_of: Callable[[Any], Row]
    times: Sequence[Any]
    fold: Callable[[Sequence[Hashable]], Mapping[Any, Any]]


@dataclass(frozen=True)
class WindowUpdater(StateUpdater[StoredMap]):
    """What the updaters of windows share.

    Parameters
    ----------
    window : BaseWindow
        Which windows there are.
    group : Fields
        The key; empty for the stream as a whole.
    inputs : Fields
        What the aggregator sees.
    aggregator : CombinerAggregator, ReducerAggregator or Aggregator
        Aggregates each window.
    width : int
        How many values it makes.
    """

    window: Any
    group: Fields
    inputs: Fields
    aggregator: AnyAggregator
    width: int

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self.aggregator.prepare(conf, context)

    def cleanup(self) -> None:
        self.aggregator.cleanup()

    @property
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.aggregator.deterministic

    @property
    def time_field(self) -> str | None:
        """The field with the time of tuples."""
        return None

    @property
    def contents(self) -> Contents:
        """What is kept of open windows."""
        if isinstance(self.aggregator, Aggregator) or not self._aggregates:
            return Tuples(self.aggregator, self.inputs)  # type: ignore[arg-type]
        return Aggregates(self.aggregator, self.inputs)

    @property
    def _aggregates(self) -> bool:
        """Whether a pane can be an aggregate: for a reducer only where it is the whole window."""
        return isinstance(self.aggregator, CombinerAggregator) or self._one_pane

    @property
    @abstractmethod
    def _one_pane(self) -> bool:
        """Whether each window is one pane."""

    def updateState(
        self, state: StoredMap, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        self.update(state, self._taken_apart(tuples), collector)

    @abstractmethod
    def update(self, state: StoredMap, given: WindowTuples, collector: TridentCollector) -> None:
        """Take a batch into the windows, and emit those that end."""

    def _taken_apart(self, tuples: Sequence[TridentTuple]) -> WindowTuples:
        keys = [encode_key([t[name] for name in self.group]) for t in tuples]
        rows = [tuple([t[name] for name in self.inputs]) for t in tuples]
        times = [t[self.time_field] for t in tuples] if self.time_field else ()

        def fold(labels: Sequence[Hashable]) -> Mapping[Any, Any]:
            return folded(self.aggregator, labels, rows)

        return WindowTuples(keys, decode_key, times, fold)

    def _collector(self, collector: TridentCollector) -> WindowCollector:
        return WindowCollector(operation_name(self.aggregator), self.width, collector)


def folded(
    aggregator: AnyAggregator, labels: Iterable[Hashable], rows: Iterable[Any]
) -> dict[Any, Any]:
    """What the tuples of each label come to; see `WindowTuples`."""
    found: dict[Any, Any] = {}
    if isinstance(aggregator, CombinerAggregator):
        for label, row in zip(labels, rows, strict=True):
            value = aggregator.init(row)
            found[label] = aggregator.combine(found[label], value) if label in found else value
        return found
    for label, row in zip(labels, rows, strict=True):
        found.setdefault(label, []).append(row)
    return found


@dataclass(frozen=True)
class CountWindowUpdater(WindowUpdater):
    """Windows of a number of tuples, of each key by itself.

    Under ``("at", *key)`` is how many tuples the key has had: that is the position of its next one.
    """

    window: CountWindow

    @property
    def _one_pane(self) -> bool:
        return self.window.length == self.window.slide

    @property
    def _size(self) -> int:
        """How many tuples a pane has."""
        if self._aggregates and not isinstance(self.aggregator, Aggregator):
            return gcd(self.window.length, self.window.slide)
        return CHUNK

    def update(self, state: StoredMap, given: WindowTuples, collector: TridentCollector) -> None:
        size, contents = self._size, self.contents
        counts = Counter(given.keys)
        keys = {label: given.key_of(label) for label in counts}
        ats = state.multiUpdate(
            [("at", *key) for key in keys.values()], list(map(Plus, counts.values()))
        )
        afters = dict(zip(counts, ats, strict=True))
        befores = {label: afters[label] - count for label, count in counts.items()}
        brought = {
            (*keys[label], pane): content
            for (label, pane), content in given.fold(_labels(given.keys, befores, size)).items()
        }
        windows: list[Window] = []
        gone, passing = [], {}
        for label, key in keys.items():
            before, after = befores[label], afters[label]
            windows += self._ended(key, before, after)
            first, floor = self._floor(before) // size, self._floor(after) // size
            fresh = -(-before // size)  # the first pane of which nothing is stored
            gone += [(*key, pane) for pane in range(first, min(floor, fresh))]
            for pane in range(fresh, floor):
                passing[*key, pane] = brought.pop((*key, pane))
        contents.add(state, brought)
        contents.emit(state, windows, passing, self._collector(collector))
        contents.remove(state, gone)

    def _ended(self, key: Row, before: int, after: int) -> Iterable[Window]:
        length, slide, size = self.window.length, self.window.slide, self._size
        for end in range((before // slide + 1) * slide, after + 1, slide):
            start = max(0, end - length)
            panes = [(*key, pane) for pane in range(start // size, -(-end // size))]
            yield Window(key, panes, (), start % size, end - start)

    def _floor(self, at: int) -> int:
        """The first position that a window still needs when `at` tuples are there."""
        slide = self.window.slide
        return max(0, (at // slide + 1) * slide - self.window.length)


def _labels(
    keys: Sequence[Hashable], befores: Mapping[Hashable, int], size: int
) -> Sequence[tuple[Hashable, int]]:
    """The key and the pane of each tuple."""
    if len(befores) == 1:
        [(key, before)] = befores.items()
        end = before + len(keys)
        return list(
            chain.from_iterable(
                repeat((key, pane), min(end, (pane + 1) * size) - max(before, pane * size))
                for pane in range(before // size, -(-end // size))
            )
        )
    at = dict(befores)
    labels = []
    for key in keys:
        position = at[key]
        at[key] = position + 1
        labels.append((key, position // size))
    return labels
