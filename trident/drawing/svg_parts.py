"""Groups and queries as drawings: in a frame a card for each stage, with a row for each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.drawing.layers import Layers, Point, layers
from trident.drawing.svg_shapes import arrow, clipped, text_line, width

BESIDE = 24.0
"""How far boxes beside each other are apart."""
_BELOW = 50.0
_ROW, _HEAD, _PAD = 19.0, 24.0, 12.0
_TITLE, _NOTE = 28.0, 18.0
_NOTED = 340.0
"""How wide a part with a note is at least, as its text may change while it is looked at."""
_LANE = 7.0
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

    `ways` has for each step that has to do with a state, by its id, the points from its card to
    where nothing of the part is between it and the states any more.
    """

    size: Point
    elements: Sequence[str]
    ways: Mapping[int, Sequence[Point]]


def groups(
    told: Sequence[Mapping[str, Any]], nodes: Nodes, notes: Mapping[tuple[str, str], Note]
) -> list[DrawnBox]:
    """Groups, as `to_dict` tells of them; states are on their right."""
    frames = [
        _Frame(f"group {each['id']}", _CLOCKS[each["clock"]], notes.get(("group", each["id"])))
        for each in told
    ]
    return _as_wide_as_the_widest(frames, told, nodes, right=True)


def queries(
    told: Sequence[Mapping[str, Any]], nodes: Nodes, notes: Mapping[tuple[str, str], Note]
) -> list[DrawnBox]:
    """Queries, likewise; states are on their left."""
    frames = [
        _Frame(f"query {each['function']}", "", notes.get(("query", each["function"])))
        for each in told
    ]
    return _as_wide_as_the_widest(frames, told, nodes, right=False)


@dataclass(frozen=True)
class _Frame:
    """What is written on a part."""

    title: str
    more: str
    note: Note | None

    @property
    def top(self) -> float:
        return _TITLE + (_NOTE if self.note else 0.0) + 4

    @property
    def width(self) -> float:
        """How wide it is, without the room at the sides."""
        title = clipped(self.title, _LONGEST_TITLE)
        found = width(title, "title") + width(self.more, "faint") + 24
        return max(found, width(self.note.text, "note") * 1.2, _NOTED) if self.note else found

    def elements(self, size: Point) -> list[str]:
        """It, and the box around it all."""
        made = [f'<rect class="frame" width="{size[0]:g}" height="{size[1]:g}" rx="8"/>']
        made.append(text_line("title", _PAD, 20, self.title, _LONGEST_TITLE))
        if self.more:
            made.append(text_line("faint", size[0] - _PAD, 20, self.more, 40, "end"))
        if self.note:
            kind = "note failed" if self.note.failed else "note"
            made.append(text_line(kind, _PAD, _TITLE + 9, self.note.text, 200, id=self.note.id))
        return made


def _as_wide_as_the_widest(
    frames: Sequence[_Frame], told: Sequence[Mapping[str, Any]], nodes: Nodes, *, right: bool
) -> list[DrawnBox]:
    least = 0.0
    for _ in range(2):
        parts = [
            _part(frame, each["stages"], nodes, least, right=right)
            for frame, each in zip(frames, told, strict=True)
        ]
        least = max((part.size[0] for part in parts), default=0.0)
    return parts


def _part(
    frame: _Frame, stages: Sequence[Mapping[str, Any]], nodes: Nodes, least: float, *, right: bool
) -> DrawnBox:
    by_number = {stage["number"]: stage for stage in stages}
    rows = {number: _rows(stage, nodes) for number, stage in by_number.items()}
    sizes = {number: _card_size(by_number[number], found) for number, found in rows.items()}
    joined = [(before, stage["number"]) for stage in stages for before in stage["inputs"]]
    placed = layers(sizes, joined, BESIDE, _BELOW)
    ways = {number: _way_text(stage) for number, stage in by_number.items()}
    bands = list(placed.bands.values())
    alone = [number for number in sizes if bands.count(placed.bands[number]) == 1]
    texts = [2 * (width(ways[number], "way") + 8) for number in alone]
    inner = max(placed.size[0], frame.width, *texts, least - 2 * _PAD)
    shift = (_PAD + (inner - placed.size[0]) / 2, frame.top)
    out = _ways_out(placed, sizes, rows, nodes, right)
    lowest = max((point[1] for way in out.values() for point in way), default=0.0)
    bottom = max(placed.size[1] + _PAD, lowest + 8)
    size = (inner + 2 * _PAD, frame.top + bottom)
    elements = frame.elements(size)
    for points in placed.arrows.values():
        elements += arrow("flow", moved(points, shift))
    for number, stage in by_number.items():
        (at,) = moved([placed.places[number]], shift)
        elements += _card(at, sizes[number], stage, rows[number])
        if ways[number]:
            room = int((sizes[number][0] / 2 + BESIDE) / width(" ", "way")) - 2
            most = _LONGEST_WAY if number in alone else max(12, room)
            arrows = [way for (_, to), way in placed.arrows.items() if to == number]
            above = [way[-2][0] + shift[0] for way in arrows]
            elements.append(_way(at[0] + sizes[number][0] / 2, at[1], ways[number], most, above))
    return DrawnBox(size, elements, {id: moved(way, shift) for id, way in out.items()})


def moved(points: Sequence[Point], by: Point) -> list[Point]:
    return [(x + by[0], y + by[1]) for x, y in points]


def _ways_out(
    placed: Layers,
    sizes: Mapping[int, Point],
    rows: Mapping[int, Sequence[_Row]],
    nodes: Nodes,
    right: bool,
) -> dict[int, list[Point]]:
    """From each step that has to do with a state to the side where states are.

    Where other cards are between, below them: each on a way of its own, the nearest highest.
    """
    to = 1 if right else -1
    side = {n: placed.places[n][0] + (sizes[n][0] if right else 0.0) for n in sizes}
    found: dict[int, list[Point]] = {}
    used: dict[Point, int] = {}
    for number in sorted(sizes, key=lambda number: -to * side[number]):
        band = placed.bands[number]
        free = all(to * side[n] <= to * side[number] for n in sizes if placed.bands[n] == band)
        lines = [
            (id, placed.places[number][1] + _HEAD + index * _ROW + 9)
            for index, (_, id, _) in enumerate(rows[number])
            if nodes[id]["updates"] is not None or nodes[id]["reads"] is not None
        ]
        for lane, (id, y) in enumerate(lines[::-1]):
            found[id] = [(side[number], y)]
            if not free:
                below = band[1] + 8 + _LANE * used.setdefault(band, 0)
                used[band] += 1
                aside = side[number] + to * (BESIDE / 2 - 3 + 3 * lane)
                found[id] += [(aside, y), (aside, below)]
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


def _way(x: float, y: float, text: str, most: int, above: Sequence[float]) -> str:
    """How tuples come in: beside the arrow, on the side that it doesn't come from."""
    if above and sum(above) / len(above) > x + 1:
        return text_line("way", x - 8, y - 14, text, most, "end")
    return text_line("way", x + 8, y - 14, text, most)


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


def _card_size(stage: Mapping[str, Any], rows: Sequence[_Row]) -> Point:
    widest = max(width(text, kind) for kind, _, text in rows)
    title = width(_stage_title(stage), "faint")
    return max(widest, title, 120.0) + 2 * _PAD, _HEAD + len(rows) * _ROW + 6


def _stage_title(stage: Mapping[str, Any]) -> str:
    partitions = stage["partitions"]
    if not partitions:
        return f"stage {stage['number']}"
    return f"stage {stage['number']} · {partitions} partition{'s' * (partitions != 1)}"


def _way_text(stage: Mapping[str, Any]) -> str:
    """How tuples come into a stage; empty where they begin there."""
    if not stage["exchange"]:
        return ""
    combined = ", combined first" if stage["combined"] else ""
    return clipped(f"{stage['exchange']}{combined}", _LONGEST_WAY)
