"""Sessions: windows of tuples that each follow the one before within a gap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from trident.operations.emitted import Row
from trident.windows.time_windows import Arrived, Span, TimeWindowUpdater
from trident.windows.window_contents import Window
from trident.windows.windows import SessionWindow

_PAGES = 16
"""How many pages of the agenda a gap has: a session that grows is put on the next ones."""


@dataclass
class _Session:
    """A session of one key while a batch is taken in: the bounds of the sessions that it `was`, and
    the positions of its tuples (`rows`)."""

    start: int
    last: int
    panes: list[int] = field(default_factory=list)
    was: list[tuple[int, int]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)


@dataclass
class _Sessions:
    """The sessions of one key; the state keeps them as `[following, [[start, last, panes]]]`.

    `following` is the number of the next pane. The `open` sessions are in order of time, at least a
    gap apart.
    """

    following: int
    open: list[_Session]

    @staticmethod
    def read(stored: Any, gap: int) -> _Sessions:
        if stored is None:
            return _Sessions(0, [])
        following, found = stored
        kept = [
            _Session(start, last, [*panes], [(start, last + gap)]) for start, last, panes in found
        ]
        return _Sessions(following, kept)

    def kept(self) -> Any:
        """What the state keeps; None where there is no session."""
        sessions = [[one.start, one.last, one.panes] for one in self.open]
        return [self.following, sessions] if sessions else None

    def forget(self, ended: int) -> list[int]:
        """Drop the sessions that end up to `ended`; return their panes."""
        outdated = [pane for one in self.open if one.was[0][1] <= ended for pane in one.panes]
        self.open = [one for one in self.open if one.was[0][1] > ended]
        return outdated

    def take(self, times: Iterable[tuple[int, int]], gap: int) -> None:
        """Add tuples, each a time and its position in the batch; give each session a pane."""
        fresh = [_Session(time, time, rows=[row]) for time, row in times]
        merged: list[_Session] = []
        for one in sorted([*self.open, *fresh], key=lambda one: one.start):
            if merged and one.start < merged[-1].last + gap:
                into = merged[-1]
                into.last = max(into.last, one.last)
                into.panes += one.panes
                into.was += one.was
                into.rows += one.rows
            else:
                merged.append(one)
        for one in merged:
            if not one.panes:
                one.panes.append(self.following)
                self.following += 1
        self.open = merged


@dataclass(frozen=True)
class SessionWindowUpdater(TimeWindowUpdater):
    """Sessions, of each key by itself.

    The entry ``("sessions", *key)`` has the sessions of a key. For each of these, the agenda has
    the key on the page of the session's end, and later on that of the time until which it is kept.
    """

    window: SessionWindow

    @property
    def one_pane(self) -> bool:
        return False

    @property
    def _gap(self) -> int:
        return self.window.gap.milliseconds

    def _page(self, time: int) -> int:
        return time // max(1, self._gap // _PAGES)

    def open_from(self, forgotten: int) -> int:
        return forgotten - self._gap + 1

    def last_end(self, time: int) -> int:
        return time + self._gap

    def take(self, batch: Arrived) -> None:
        state, given, times, span, agenda, collector = batch
        arrived: dict[Any, list[tuple[int, int]]] = {}
        for row, time in enumerate(times):
            if time is not None:
                arrived.setdefault(given.keys[row] if self.group else (), []).append((time, row))
        labels = {given.key_of(label) if self.group else (): label for label in arrived}
        due = [page for page in agenda.counts if page <= self._page(span.now)]
        on_page = {page: agenda.keys(page) for page in due}
        keys = list(dict.fromkeys([*labels, *(key for page in due for key in on_page[page])]))
        done = [page for page in due if page < self._page(span.now)]
        leaving = {key for page in done for key in on_page[page]}
        entries = [("sessions", *key) for key in keys]
        stored = state.multiGet(entries)
        found = [_Sessions.read(each, self._gap) for each in stored]

        pane_of: list[Row | None] = [None] * given.length
        outdated: list[Row] = []
        for key, sessions in zip(keys, found, strict=True):
            # The lateness of an earlier start may have been longer.
            outdated += [(*key, number) for number in sessions.forget(span.forgot)]
            sessions.take(arrived[labels[key]] if key in labels else (), self._gap)
            for one in sessions.open:
                for row in one.rows:
                    pane_of[row] = (*key, one.panes[-1])
        brought = {pane: made for pane, made in given.fold(pane_of).items() if pane is not None}

        ended: list[tuple[int, Window]] = []
        taken_back: list[Window] = []
        passing: dict[Row, Any] = {}
        pages: dict[int, list[Row]] = {}
        for key, sessions in zip(keys, found, strict=True):
            for one in sessions.open:
                end = one.last + self._gap
                panes = [(*key, number) for number in one.panes]
                taken_back += [
                    Window(key, (), self._tail(*old)) for old in self._outdated(one, span)
                ]
                if span.passes(end) or (one.rows and end <= span.now):
                    ended.append((end, Window(key, one.panes, self._tail(one.start, end))))
                if end > span.forgets:
                    continue
                if one.was:
                    outdated += panes
                else:
                    passing[panes[0]] = brought.pop(panes[0])
            sessions.open = [one for one in sessions.open if one.last + self._gap > span.forgets]
            for page in self._new_pages(sessions, span, key in leaving):
                pages.setdefault(page, []).append(key)

        contents = self.contents
        contents.add(state, brought)
        ended.sort(key=lambda pair: pair[0])
        to = self._collector(collector)
        for window in taken_back:
            to.window = window
            to.emit((None,) * self.width)
        contents.emit(state, [one for _, one in ended], passing, to)
        contents.remove(state, outdated)
        changed = [
            (entry, kept)
            for entry, before, sessions in zip(entries, stored, found, strict=True)
            if (kept := sessions.kept()) != before
        ]
        state.multiPut([entry for entry, _ in changed], [kept for _, kept in changed])
        agenda.add(pages)
        agenda.remove(done)

    def _outdated(self, one: _Session, span: Span) -> Iterator[tuple[int, int]]:
        """The bounds of emitted sessions that have changed, if the window takes them back."""
        if self.window.retracts and span.before is not None:
            for start, end in one.was:
                if end <= span.before and (start, end) != (one.start, one.last + self._gap):
                    yield start, end

    def _new_pages(self, sessions: _Sessions, span: Span, leaving: bool) -> set[int]:
        """The pages to which a key has to be added; `leaving` if a page that it was on is done."""
        wanted, known = set(), set()
        for one in sessions.open:
            wanted.add(self._page_of(one.last + self._gap, span.now))
            for _, end in one.was:
                if span.before is None or end > span.before or not leaving:
                    known.add(self._page_of(end, span.before))
        return wanted - known

    def _page_of(self, end: int, watermark: int | None) -> int:
        """The page of a session, by its end."""
        ended = watermark is not None and end <= watermark
        return self._page(end + self.lateness if ended else end)
