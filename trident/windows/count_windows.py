"""Windows of a number of tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from math import gcd

from trident.operations.emitted import Row
from trident.operations.interfaces import TridentCollector
from trident.states.maps.stored_map import StoredMap
from trident.windows.window_contents import CHUNK, Contents, PaneTuples, Plus, Window
from trident.windows.window_updater import WindowTuples, WindowUpdater
from trident.windows.windows import CountWindow


@dataclass(frozen=True)
class CountWindowUpdater(WindowUpdater):
    """Windows of a number of tuples of each key; ``("at", *key)`` counts those it has had."""

    window: CountWindow

    @property
    def one_pane(self) -> bool:
        return self.window.length == self.window.slide

    @property
    def pane_name(self) -> str:
        return f"pane of {gcd(self.window.length, self.window.slide)}"

    def update(self, state: StoredMap, given: WindowTuples, collector: TridentCollector) -> None:
        contents = self.contents
        size = self._size(contents)
        counts = Counter(given.keys) if self.group else {(): given.length}
        keys = {label: given.key_of(label) for label in counts} if self.group else {(): ()}
        ats = state.multiUpdate(
            [("at", *key) for key in keys.values()], list(map(Plus, counts.values()))
        )
        afters = dict(zip(counts, ats, strict=True))
        befores = {label: afters[label] - count for label, count in counts.items()}
        if self.group:
            folds = given.fold(_labels(given.keys, befores, size))
            brought = {(*keys[label], pane): folded for (label, pane), folded in folds.items()}
        else:
            folds = given.fold(_panes(befores[()], given.length, size))
            brought = {(pane,): folded for pane, folded in folds.items()}
        windows: list[Window] = []
        outdated, passing = [], {}
        for label, key in keys.items():
            before, after = befores[label], afters[label]
            windows += self._ended(key, before, after, size)
            first, floor = self._floor(before) // size, self._floor(after) // size
            fresh = -(-before // size)  # the first pane that is not stored
            outdated += [(*key, pane) for pane in range(first, min(floor, fresh))]
            for pane in range(fresh, floor):
                passing[*key, pane] = brought.pop((*key, pane))
        contents.add(state, brought)
        contents.emit(state, windows, passing, self._collector(collector))
        contents.remove(state, outdated)

    def _size(self, contents: Contents) -> int:
        """How many tuples a pane has; of a pane with tuples a window can take a part."""
        if isinstance(contents, PaneTuples):
            return CHUNK
        return gcd(self.window.length, self.window.slide)

    def _ended(self, key: Row, before: int, after: int, size: int) -> Iterable[Window]:
        length, slide = self.window.length, self.window.slide
        for end in range((before // slide + 1) * slide, after + 1, slide):
            start = max(0, end - length)
            panes = range(start // size, -(-end // size))
            yield Window(key, panes, (), start % size, end - start)

    def _floor(self, at: int) -> int:
        """The first position that a window still needs after `at` tuples."""
        slide = self.window.slide
        return max(0, (at // slide + 1) * slide - self.window.length)


def _labels(
    keys: Sequence[Hashable], befores: Mapping[Hashable, int], size: int
) -> list[tuple[Hashable, int]]:
    """The key and the pane of each tuple."""
    at = dict(befores)
    labels = []
    for key in keys:
        position = at[key]
        at[key] = position + 1
        labels.append((key, position // size))
    return labels


def _panes(before: int, count: int, size: int) -> list[int]:
    """The pane of each tuple, if all have one key."""
    panes = range(before // size, -(-(before + count) // size))
    every = chain.from_iterable(map(repeat, panes, repeat(size)))
    return list(islice(every, before % size, before % size + count))
