"""Windows by time: the time of batches, or one that tuples have; and what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import Any, NamedTuple

from trident.errors import ValueTypeError
from trident.operations.emitted import Row
from trident.operations.interfaces import QueryFunction, TridentCollector
from trident.states.errors import CorruptStateError
from trident.states.map_state import ReadOnlyMapState
from trident.states.maps.stored_map import StoredMap
from trident.windows.watermarks import Partitions, milliseconds, time_of
from trident.windows.window_contents import Window, append, chunk_keys, read_existing
from trident.windows.window_updater import WindowTuples, WindowUpdater
from trident.windows.windows import DurationWindow, TimeWindow

_CLOCK: Row = ("clock",)
_UNKNOWN = -(2**62)
"""A watermark before all times, at which no window ends and nothing is late."""


class Clock(NamedTuple):
    """The progress of windows by time; one entry of the state.

    `late` counts the tuples that came too late for any window, `agenda` the keys on each of its
    pages. Windows that end up to `forgotten` are forgotten; older versions wrote no such time.
    """

    watermark: int | None = None
    late: int = 0
    agenda: Mapping[int, int] = {}
    shape: str = ""
    partitions: Partitions = Partitions(None, {})
    forgotten: int | None = None

    @staticmethod
    def read(state: ReadOnlyMapState) -> Clock:
        [stored] = state.multiGet([_CLOCK])
        if stored is None:
            return Clock()
        agenda = dict(stored["agenda"])
        kept = stored["watermark"], stored["late"], agenda, stored["shape"]
        return Clock(*kept, Partitions.read(stored), stored.get("forgotten"))

    def write(self, state: StoredMap) -> None:
        agenda = [[page, count] for page, count in sorted(self.agenda.items())]
        entry: dict[str, Any] = {"watermark": self.watermark, "late": self.late, "agenda": agenda}
        entry |= {"shape": self.shape, "forgotten": self.forgotten, **self.partitions.kept()}
        state.multiPut([_CLOCK], [entry])

    def forgotten_until(self, lateness: int) -> int:
        """Up to which end windows are forgotten; an earlier lateness may have been shorter."""
        ended = (_UNKNOWN if self.watermark is None else self.watermark) - lateness
        return ended if self.forgotten is None else max(ended, self.forgotten)


class Agenda:
    """When to look at which keys: lists of keys, by numbered pages. Without groups there is one
    key."""

    def __init__(self, state: StoredMap, counts: Mapping[int, int], grouped: bool) -> None:
        self.counts = dict(counts)
        self._state = state
        self._grouped = grouped

    def add(self, pages: Mapping[int, Sequence[Row]]) -> None:
        if self._grouped:
            lists = [
                (("keys", page), self.counts.get(page, 0), [list(key) for key in keys])
                for page, keys in pages.items()
            ]
            append(self._state, lists)
        for page, keys in pages.items():
            self.counts[page] = self.counts.get(page, 0) + len(keys) if self._grouped else 1

    def keys(self, page: int) -> list[Row]:
        """The keys on a page, in the order in which they came."""
        if not self._grouped:
            return [()]
        chunks = read_existing(self._state, chunk_keys(("keys", page), self.counts[page]))
        return [tuple(key) for chunk in chunks for key in chunk]

    def remove(self, pages: Iterable[int]) -> None:
        removed: list[Row] = []
        for page in pages:
            count = self.counts.pop(page)
            removed += chunk_keys(("keys", page), count) if self._grouped else []
        self._state.multiRemove(removed)


class Span(NamedTuple):
    """The watermark `before` a batch and `now`; and up to which end windows were forgotten before
    it (`forgot`), and are forgotten after it (`forgets`)."""

    before: int | None
    now: int
    forgot: int
    forgets: int

    def passes(self, end: int) -> bool:
        """Whether the watermark passes `end`."""
        return end <= self.now and (self.before is None or end > self.before)


class Arrived(NamedTuple):
    """A batch for windows by time; the times of tuples that are late are None."""

    state: StoredMap
    given: WindowTuples
    times: Sequence[int | None]
    span: Span
    agenda: Agenda
    collector: TridentCollector


@dataclass(frozen=True)
class TimeWindowUpdater(WindowUpdater):
    """Windows by time; `streams` are those that lead to it, if they have several partitions."""

    window: TimeWindow
    kind: str | None = None
    streams: tuple[str, ...] = ()

    @property
    def timed(self) -> bool:  # type: ignore[override]
        """Whether it asks for the time of batches."""
        return self.window.field is None or self.window.idle_after is not None

    @property
    def idle(self) -> float:  # type: ignore[override]
        """After how many seconds without tuples a batch is due."""
        after = self.window.idle_after
        return 0.0 if after is None else after.milliseconds / 1000

    @property
    def time_field(self) -> str | None:
        return self.window.field

    @property
    def lateness(self) -> int:
        """How many milliseconds a window is kept after its end."""
        return self.window.lateness.milliseconds

    @abstractmethod
    def open_from(self, forgotten: int) -> int:
        """The first time at which a tuple isn't late, where windows are forgotten up to an end."""

    @abstractmethod
    def last_end(self, time: int) -> int:
        """When the last window ends that holds a tuple of a time."""

    @abstractmethod
    def take(self, batch: Arrived) -> None:
        """Take a batch into the windows; emit those that end."""

    def update(self, state: StoredMap, given: WindowTuples, collector: TridentCollector) -> None:
        clock = Clock.read(state)
        if clock.shape not in ("", self.window.shape):
            advice = "Declare it as it was, or begin anew in a state of another name."
            found = f"it is of a window that is {clock.shape}, and now it is {self.window.shape}"
            raise CorruptStateError("the state of open windows", found, advice)
        span, times, partitions = self._advance(state, given, clock)
        if span is None:
            if partitions != clock.partitions:
                clock._replace(partitions=partitions, shape=self.window.shape).write(state)
            return
        timely: Sequence[int | None] = times
        late = 0
        if span.before is not None and times:
            first = self.open_from(span.forgot)
            if min(times) < first:
                timely = [None if time < first else time for time in times]
                late = timely.count(None)
        state.late += late
        agenda = Agenda(state, clock.agenda, bool(self.group))
        self.take(Arrived(state, given, timely, span, agenda, collector))
        kept = agenda.counts, self.window.shape, partitions
        passed = (None, None) if span.now == _UNKNOWN else (span.now, span.forgets)
        following = Clock(passed[0], clock.late + late, *kept, passed[1])
        if following != clock:
            following.write(state)

    def _advance(
        self, state: StoredMap, given: WindowTuples, clock: Clock
    ) -> tuple[Span | None, Sequence[int], Partitions]:
        """The span of a batch, up to `_UNKNOWN` while a partition has no time; the times of its
        tuples; and the progress of the partitions."""
        begun, before = state.begun, clock.watermark
        if self.window.field is None:
            moment = begun.moment
            assert moment is not None, "the runner puts the moment into what the state begins with"
            span = self._span(clock, moment)
            return span, [span.now] * given.length, clock.partitions
        times, partitions = milliseconds(self.kind, given.times), clock.partitions
        quiet = None
        if self.window.idle_after is not None and begun.moment is not None:
            quiet = begun.moment - self.window.idle_after.milliseconds
        if self.streams or self.timed:
            partitions = partitions.after(
                self.streams, begun.active, given.origins, times, begun.moment
            )
            reached = partitions.watermark(quiet)
        else:
            reached = max(times, default=None)
        if reached is None:
            if not times and before is None:
                return None, times, partitions
            return self._span(clock, _UNKNOWN), times, partitions
        now = reached - self.window.lag.milliseconds
        if self.window.ends_idle and partitions.are_quiet(quiet):
            now = self.last_end(reached)
        return self._span(clock, now), times, partitions

    def _span(self, clock: Clock, now: int) -> Span:
        """The span of a batch up to the watermark `now`, which a clock may have set back."""
        now = now if clock.watermark is None else max(clock.watermark, now)
        forgot = clock.forgotten_until(self.lateness)
        return Span(clock.watermark, now, forgot, max(forgot, now - self.lateness))

    def _tail(self, start: int, end: int) -> Row:
        """The fields of a window after those of its aggregator."""
        if self.window.field is None:
            return ()
        try:
            return time_of(self.kind, start), time_of(self.kind, end)
        except OverflowError:
            what = f"window: the start and end of a window by the field {self.window.field!r}"
            found = f"a window from {start} to {end} ms since 1970"
            raise ValueTypeError(what, "timestamps in the years 1 to 9999", found) from None


@dataclass(frozen=True)
class DurationWindowUpdater(TimeWindowUpdater):
    """Windows of some time. A page of the agenda is a pane: it has the keys with tuples in it."""

    window: DurationWindow

    @property
    def one_pane(self) -> bool:
        return self.window.length == self.window.slide

    @property
    def _size(self) -> int:
        """How many milliseconds a pane has."""
        return gcd(self.window.length.milliseconds, self.window.slide.milliseconds)

    def open_from(self, forgotten: int) -> int:
        return self._floor(forgotten) * self._size

    def last_end(self, time: int) -> int:
        length, slide = self.window.length.milliseconds, self.window.slide.milliseconds
        return (time + length) // slide * slide

    def _floor(self, forgotten: int) -> int:
        """The first pane that is in a window which is still kept."""
        length, slide = self.window.length.milliseconds, self.window.slide.milliseconds
        following = (forgotten // slide + 1) * slide
        return (following - length) // self._size

    def take(self, batch: Arrived) -> None:
        state, given, times, span, agenda, collector = batch
        contents, floor = self.contents, self._floor(span.forgets)
        fresh = self._fold(given, times)
        touched: dict[int, list[Row]] = {}
        for *key, pane in fresh:
            touched.setdefault(pane, []).append(tuple(key))
        passed = {pane for pane in touched if pane < floor and pane not in agenda.counts}
        names = [(*key, pane) for pane in passed for key in touched[pane]]
        passing = {name: fresh.pop(name) for name in names}
        began: dict[int, list[Row]] = {}
        for *key, pane in contents.add(state, fresh):
            began.setdefault(pane, []).append(tuple(key))
        agenda.add(began)

        keys = cache(lambda pane: touched[pane] if pane in passed else agenda.keys(pane))
        windows = list(self._windows(sorted({*agenda.counts, *passed}), touched, span, keys))
        contents.emit(state, windows, passing, self._collector(collector))

        removed = [pane for pane in agenda.counts if pane < floor]
        contents.remove(state, [(*key, pane) for pane in removed for key in keys(pane)])
        agenda.remove(removed)

    def _fold(self, given: WindowTuples, times: Sequence[int | None]) -> dict[Row, Any]:
        """The aggregates or tuples of each key and pane, without tuples that are late."""
        size = self._size
        panes = [None if time is None else time // size for time in times]
        if not self.group:
            return {(pane,): made for pane, made in given.fold(panes).items() if pane is not None}
        folds = given.fold(list(zip(given.keys, panes, strict=True)))
        return {
            (*given.key_of(key), pane): made
            for (key, pane), made in folds.items()
            if pane is not None
        }

    def _windows(
        self,
        panes: Sequence[int],
        touched: Mapping[int, Sequence[Row]],
        span: Span,
        keys: Callable[[int], Sequence[Row]],
    ) -> Iterator[Window]:
        """The windows that end, and those that had ended and have more tuples now."""
        length, size = self.window.length.milliseconds, self._size
        ended: dict[int, dict[Row, list[int]]] = {}
        for pane in panes:
            for end in self._ends(pane, span.before, span.now):
                of_key = ended.setdefault(end, {})
                for key in keys(pane):
                    of_key.setdefault(key, []).append(pane)
        if span.before is not None and span.forgot < span.before:
            for pane, more in touched.items():
                for end in self._ends(pane, span.forgot, span.before):
                    whole = [one for one in panes if end - length <= one * size < end]
                    of_key = ended.setdefault(end, {})
                    of_key.update(dict.fromkeys(more, whole))
        for end, found in sorted(ended.items()):
            tail = self._tail(end - length, end)
            yield from (Window(key, its, tail) for key, its in found.items())

    def _ends(self, pane: int, after: int | None, upto: int) -> range:
        """The ends of the windows that hold a pane, above `after` and up to `upto`."""
        length, slide = self.window.length.milliseconds, self.window.slide.milliseconds
        start = pane * self._size
        least = start if after is None else max(start, after)
        return range((least // slide + 1) * slide, min(upto, start + length) + 1, slide)


@dataclass(frozen=True)
class IsLate(QueryFunction[ReadOnlyMapState, bool]):
    """Whether a tuple comes too late for all windows of a state, by its time."""

    windows: TimeWindowUpdater
    positional = True
    output_types = (bool,)
    queries = "multiGet"

    def batchRetrieve(
        self, state: ReadOnlyMapState, tuples: Sequence[Sequence[Any]]
    ) -> Sequence[bool]:
        clock = Clock.read(state)
        if clock.watermark is None:
            return [False] * len(tuples)
        first = self.windows.open_from(clock.forgotten_until(self.windows.lateness))
        times = milliseconds(self.windows.kind, [time for (time,) in tuples])
        return [time < first for time in times]

    def execute(self, tuple: Sequence[Any], result: bool, collector: TridentCollector) -> None:
        collector.emit((result,))
