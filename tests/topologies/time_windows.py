"""Windows by time, by their definition: all tuples are kept, and looked at in each batch.

Shares no code with the library.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trident import SessionWindow

Row = tuple[Any, int, int]
"""Key, time and value."""
Emitted = tuple[Hashable, list[int], int, int]
"""Key, values, start and end."""


@dataclass
class Model:
    """What windows by a field come to, a batch after the other.

    Parameters
    ----------
    window : DurationWindow or SessionWindow
        The windows.
    """

    window: Any
    watermark: int | None = None
    rows: list[Row] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)

    def batch(self, arrived: Sequence[Row]) -> list[Emitted]:
        before = self.watermark
        lag, lateness = self.window.lag.milliseconds, self.window.lateness.milliseconds
        timely = [
            row for row in arrived if before is None or self._last_end(row[1]) + lateness > before
        ]
        self.late = [row for row in arrived if row not in timely]
        self.rows += timely
        seen = [row[1] - lag for row in arrived] + ([] if before is None else [before])
        if not seen:
            return []
        now = self.watermark = max(seen)
        made: list[Emitted] = []
        for key in {row[0] for row in self.rows}:
            mine = [row for row in self.rows if row[0] == key]
            for start, end, inside in self._windows(mine):
                ends_now = end <= now and (before is None or end > before)
                kept = before is None or end + lateness > before
                again = end <= now and kept and any(row in timely for row in inside)
                if ends_now or again:
                    made.append((key, sorted(row[2] for row in inside), start, end))
        self._forget(now - lateness)
        return sorted(made, key=repr)

    def _last_end(self, time: int) -> int:
        if isinstance(self.window, SessionWindow):
            return time + self.window.gap.milliseconds
        length, slide = self.window.length.milliseconds, self.window.slide.milliseconds
        return max(end for end in range(time + 1, time + length + 1) if end % slide == 0)

    def _windows(self, mine: list[Row]) -> Iterator[tuple[int, int, list[Row]]]:
        if isinstance(self.window, SessionWindow):
            yield from self._sessions(mine)
            return
        length, slide = self.window.length.milliseconds, self.window.slide.milliseconds
        times = [row[1] for row in mine]
        for end in range(min(times), max(times) + length + 1):
            inside = [row for row in mine if end - length <= row[1] < end]
            if end % slide == 0 and inside:
                yield end - length, end, inside

    def _sessions(self, mine: list[Row]) -> Iterator[tuple[int, int, list[Row]]]:
        gap = self.window.gap.milliseconds
        rest = sorted(mine, key=lambda row: row[1])
        while rest:
            session = [rest.pop(0)]
            while rest and rest[0][1] - session[-1][1] < gap:
                session.append(rest.pop(0))
            yield session[0][1], session[-1][1] + gap, session

    def _forget(self, upto: int) -> None:
        if isinstance(self.window, SessionWindow):
            gone = [
                row
                for key in {row[0] for row in self.rows}
                for _, end, inside in self._sessions([row for row in self.rows if row[0] == key])
                if end <= upto
                for row in inside
            ]
            self.rows = [row for row in self.rows if row not in gone]
