"""Groups and queries as drawings: in a frame a card for each stage, with a row for each step.

The cards are one below the other, and as wide as the frame. An arrow that passes cards has a lane
beside them, on the side where no states are, so it runs through none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.drawing.svg_shapes import Point, arrow, clipped, text_line, width

BESIDE = 24.0
"""The distance of boxes beside each other."""
_BELOW = 50.0
_ROW, _HEAD, _PAD = 19.0, 24.0, 12.0
_TITLE, _NOTE = 28.0, 18.0
_NOTED = 340.0
"""The least width of a part with a note, as its text may change while it is shown."""
_LANE = 8.0
_IN, _JOIN, _OUT = 36.0, 34.0, 10.0
"""How far from a card's left side arrows come in; how far above it arrows from lanes join them; how
far above its end arrows leave it for a lane."""
_LONGEST_STEP, _LONGEST_WAY, _LONGEST_TITLE = 58, 44, 80
_FIXED = "\N{NO-BREAK SPACE}"
_CLOCKS = {"spout": "spouts", "dataframe": "Structured Streaming", "requests": "requests"}

Nodes = Mapping[int, Mapping[str, Any]]
_Row = tuple[str, int, str]
"""The class, the id and the text of a step."""


@dataclass(frozen=True)
class Note:
    """A line below the title of a group or a query.

    `id` is that of its element; empty for none.
    """

    text: str
    id: str = ""
    failed: bool = False


@dataclass(frozen=True)
class DrawnBox:
    """A group or a query, drawn with its upper left corner at (0, 0).

    `ends` has for each step that uses a state, by its id, where the arrow between the two meets its
    card.
    """

    size: Point
    elements: Sequence[str]
    ends: Mapping[int, Point]


def groups(
    given: Sequence[Mapping[str, Any]], nodes: Nodes, notes: Mapping[tuple[str, str], Note]
) -> list[DrawnBox]:
    """Draw groups, as `to_dict` describes them; states are on their right."""
    frames = [
        _Frame(f"group {each['id']}", _CLOCKS[each["clock"]], notes.get(("group", each["id"])))
        for each in given
    ]
    return _draw_boxes(frames, given, nodes, right=True)


def queries(
    given: Sequence[Mapping[str, Any]], nodes: Nodes, notes: Mapping[tuple[str, str], Note]
) -> list[DrawnBox]:
    """Draw queries, likewise; states are on their left."""
    frames = [
        _Frame(f"query {each['function']}", "", notes.get(("query", each["function"])))
        for each in given
    ]
    return _draw_boxes(frames, given, nodes, right=False)


@dataclass(frozen=True)
class _Frame:
    """The frame of a group or a query, with its texts."""

    title: str
    more: str
    note: Note | None

    @property
    def top(self) -> float:
        return _TITLE + (_NOTE if self.note else 0.0) + 4

    @property
    def width(self) -> float:
        """Its width, without the room at the sides."""
        title = clipped(self.title, _LONGEST_TITLE)
        found = width(title, "title") + width(self.more, "faint") + 24
        return max(found, width(self.note.text, "note") * 1.2, _NOTED) if self.note else found

    def elements(self, size: Point) -> list[str]:
        """Draw the frame around a size."""
        elements = [f'<rect class="frame" width="{size[0]:g}" height="{size[1]:g}" rx="8"/>']
        elements.append(text_line("title", _PAD, 20, self.title, _LONGEST_TITLE))
        if self.more:
            elements.append(text_line("faint", size[0] - _PAD, 20, self.more, 40, "end"))
        if self.note:
            kind = "note failed" if self.note.failed else "note"
            elements.append(text_line(kind, _PAD, _TITLE + 9, self.note.text, 200, id=self.note.id))
        return elements


def _draw_boxes(
    frames: Sequence[_Frame], given: Sequence[Mapping[str, Any]], nodes: Nodes, *, right: bool
) -> list[DrawnBox]:
    """Draw all boxes as wide as the widest of them."""
    least = 0.0
    for _ in range(2):
        parts = [
            _part(frame, each["stages"], nodes, least, right=right)
            for frame, each in zip(frames, given, strict=True)
        ]
        least = max((part.size[0] for part in parts), default=0.0)
    return parts


def _part(
    frame: _Frame, stages: Sequence[Mapping[str, Any]], nodes: Nodes, least: float, *, right: bool
) -> DrawnBox:
    place = {stage["number"]: at for at, stage in enumerate(stages)}
    arrows = [(place[each], at) for at, stage in enumerate(stages) for each in stage["inputs"]]
    lane_of = lanes(arrows)
    aside = _LANE * (max(lane_of.values(), default=-1) + 1)
    rows = [_rows(stage, nodes) for stage in stages]
    texts = [width(text, kind) for found in rows for kind, _, text in found]
    texts += [width(_stage_title(stage), "faint") for stage in stages]
    texts += [_IN + width(_way_text(stage), "way") for stage in stages]
    wide = max(least, frame.width + 2 * _PAD, max(texts) + 4 * _PAD + aside)
    left, end = _PAD + (aside if right else 0.0), wide - _PAD - (0.0 if right else aside)
    spans, y = [], frame.top - _BELOW
    for found in rows:
        y += _BELOW
        spans.append((y, y + _HEAD + len(found) * _ROW + 6))
        y = spans[-1][1]
    elements = frame.elements((wide, y + _PAD))
    for upper, lower in arrows:
        (_, leaves), (comes, _), x = spans[upper], spans[lower], left + _IN
        way = [(x, leaves)]
        if (lane := lane_of.get((upper, lower))) is not None:
            side, to = (left, -1) if right else (end, 1)
            channel, leaves = side + to * _LANE * (lane + 1), leaves - _OUT
            way = [(side, leaves), (channel, leaves), (channel, comes - _JOIN), (x, comes - _JOIN)]
        elements += arrow("flow", [*way, (x, comes)])
    ends = {}
    for stage, found, (top, bottom) in zip(stages, rows, spans, strict=True):
        elements += _card((left, top), (end - left, bottom - top), stage, found)
        if text := _way_text(stage):
            elements.append(text_line("way", left + _IN + 8, top - 14, text, _LONGEST_WAY))
        for index, (_, id, _) in enumerate(found):
            if nodes[id]["updates"] is not None or nodes[id]["reads"] is not None:
                ends[id] = (end if right else left, top + _HEAD + index * _ROW + 9)
    return DrawnBox((wide, y + _PAD), elements, ends)


def lanes(arrows: Sequence[Point]) -> dict[Point, int]:
    """Return the lane, from 0 on, of each arrow from one place in a row to another that passes
    others."""
    taken: list[float] = []
    found = {}
    for upper, lower in sorted(arrows):
        if lower > upper + 1:
            free = (lane for lane, until in enumerate(taken) if until <= upper)
            lane = found[upper, lower] = next(free, len(taken))
            taken[lane : lane + 1] = [lower]
    return found


def _card(at: Point, size: Point, stage: Mapping[str, Any], rows: Sequence[_Row]) -> list[str]:
    (x, y), (wide, high) = at, size
    made = [
        f'<rect class="card" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="6"/>',
        text_line("faint", x + _PAD, y + 16, _stage_title(stage), 60),
    ]
    for index, (kind, _, text) in enumerate(rows):
        line = y + _HEAD + index * _ROW + 13
        made.append(text_line(kind, x + _PAD, line, text, _LONGEST_STEP))
    return made


def _rows(stage: Mapping[str, Any], nodes: Nodes) -> list[_Row]:
    rows: list[_Row] = []
    for id in stage["nodes"]:
        node = nodes[id]
        kind = "step"
        kind += " updates" if node["updates"] is not None else ""
        kind += " reads" if node["reads"] is not None else ""
        elsewhere = bool(rows) and node["parents"] != [rows[-1][1]]
        after = f" after {' and '.join(map(str, node['parents']))}" if elsewhere else ""
        number = f"{id:>3}  ".replace(" ", _FIXED)
        text = clipped(node["text"], _LONGEST_STEP - len(number) - len(after))
        rows.append((kind, id, f"{number}{text}{after}"))
    return rows


def _stage_title(stage: Mapping[str, Any]) -> str:
    partitions = stage["partitions"]
    if not partitions:
        return f"stage {stage['number']}"
    return f"stage {stage['number']} · {partitions} partition{'s' * (partitions != 1)}"


def _way_text(stage: Mapping[str, Any]) -> str:
    """Return how tuples come into a stage; empty if they begin there."""
    if not stage["exchange"]:
        return ""
    combined = ", combined first" if stage["combined"] else ""
    return clipped(f"{stage['exchange']}{combined}", _LONGEST_WAY)
