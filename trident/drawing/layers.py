"""A layered drawing of boxes and what leads from one to another, without any figure but numbers.

Boxes are put into layers, so that every arrow leads down; into an order within their layer, so
that few arrows cross; and beside each other, near what they are joined to. An arrow that passes a
layer has a place of its own there, so that it runs through no box.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Box = Hashable
Point = tuple[float, float]
_ROUNDS = 8
_PASSING = 12.0
"""How wide an arrow is that passes a layer."""


@dataclass(frozen=True)
class Layers:
    """Where boxes and arrows are; x and y grow to the right and downwards.

    `places` are the upper left corners of boxes, `arrows` the points of each by its two boxes;
    `bands` say where the layer of each box begins and ends, in y.
    """

    places: Mapping[Box, Point]
    arrows: Mapping[tuple[Box, Box], Sequence[Point]]
    bands: Mapping[Box, Point]
    size: Point


def layers(
    sizes: Mapping[Box, Point], joined: Iterable[tuple[Box, Box]], beside: float, below: float
) -> Layers:
    """Place boxes in layers.

    What leads to a box comes before it in `sizes`. Boxes of a layer are `beside` apart, layers
    `below`.
    """
    pairs = list(dict.fromkeys(joined))
    depth = _depths(list(sizes), pairs)
    rows: list[list[Box]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for box in sizes:
        rows[depth[box]].append(box)
    links: list[tuple[Box, Box]] = []
    ways: dict[tuple[Box, Box], list[Box]] = {}
    widths: dict[Box, float] = {box: width for box, (width, _) in sizes.items()}
    for upper, lower in pairs:
        way: list[Box] = [upper]
        for level in range(depth[upper] + 1, depth[lower]):
            passing: Box = ("passing", upper, lower, level)
            rows[level].append(passing)
            widths[passing] = _PASSING
            way.append(passing)
        way.append(lower)
        ways[upper, lower] = way
        links += pairwise(way)
    _put_in_order(rows, links)
    lefts = _beside(rows, links, widths, beside)
    tops, y = [], 0.0
    heights = [max((sizes[box][1] for box in row if box in sizes), default=0) for row in rows]
    for height in heights:
        tops.append(y)
        y += height + below
    places = {box: (lefts[box], tops[depth[box]]) for box in sizes}
    level_of = {box: level for level, row in enumerate(rows) for box in row}

    def middle(box: Box) -> float:
        return lefts[box] + widths[box] / 2

    arrows = {}
    for (upper, lower), way in ways.items():
        points = [(middle(upper), places[upper][1] + sizes[upper][1])]
        for passing in way[1:-1]:
            x, top = middle(passing), tops[level_of[passing]]
            points += [(x, top), (x, top + heights[level_of[passing]])]
        arrows[upper, lower] = [*points, (middle(lower), places[lower][1])]
    bands = {box: (tops[depth[box]], tops[depth[box]] + heights[depth[box]]) for box in sizes}
    right = max((lefts[box] + width for box, width in widths.items()), default=0.0)
    return Layers(places, arrows, bands, (right, max(y - below, 0.0)))


def _depths(boxes: Sequence[Box], pairs: Sequence[tuple[Box, Box]]) -> dict[Box, int]:
    """The layer of each box: below all that leads to it, and right above what follows it."""
    depth = dict.fromkeys(boxes, 0)
    for box in boxes:
        above = [depth[upper] for upper, lower in pairs if lower == box]
        depth[box] = max(above, default=-1) + 1
    fed = {lower for _, lower in pairs}
    for box in boxes:
        after = [depth[lower] for upper, lower in pairs if upper == box]
        if box not in fed and after:
            depth[box] = min(after) - 1
    return depth


def _put_in_order(rows: Sequence[list[Box]], links: Sequence[tuple[Box, Box]]) -> None:
    """Sort each layer by the middle of the places of what its boxes are joined to."""
    above: dict[Box, list[Box]] = {}
    under: dict[Box, list[Box]] = {}
    for upper, lower in links:
        above.setdefault(lower, []).append(upper)
        under.setdefault(upper, []).append(lower)
    for _ in range(_ROUNDS):
        for walk, others in ((rows, above), (rows[::-1], under)):
            place: dict[Box, float] = {}
            for row in walk:
                own = {box: index for index, box in enumerate(row)}
                found = {
                    box: _mean([place[other] for other in others.get(box, ())], own[box])
                    for box in row
                }
                row.sort(key=lambda box: (found[box], own[box]))
                place.update((box, float(index)) for index, box in enumerate(row))


def _beside(
    rows: Sequence[Sequence[Box]],
    links: Sequence[tuple[Box, Box]],
    widths: Mapping[Box, float],
    gap: float,
) -> dict[Box, float]:
    """The left side of each box: near the middle of what it is joined to, without touching."""
    joined: dict[Box, list[Box]] = {}
    for upper, lower in links:
        joined.setdefault(upper, []).append(lower)
        joined.setdefault(lower, []).append(upper)
    middle: dict[Box, float] = {}
    for row in rows:
        total = sum(widths[box] for box in row) + gap * (len(row) - 1)
        x = -total / 2
        for box in row:
            middle[box] = x + widths[box] / 2
            x += widths[box] + gap
    for turn in range(_ROUNDS):
        for row in rows if turn % 2 == 0 else rows[::-1]:
            wanted = [
                _mean([middle[other] for other in joined.get(box, ())], middle[box]) for box in row
            ]
            middle.update(zip(row, _apart(row, wanted, widths, gap), strict=True))
    least = min((middle[box] - widths[box] / 2 for box in middle), default=0.0)
    return {box: middle[box] - widths[box] / 2 - least for box in middle}


def _apart(
    row: Sequence[Box], wanted: Sequence[float], widths: Mapping[Box, float], gap: float
) -> list[float]:
    """Middles in the order of a row, as near to those wanted as boxes that don't touch can be.

    Boxes that would touch are moved together, to the mean of what they want.
    """
    # of each: the sum of where its first one would be for each of them, its width, how many
    blocks: list[tuple[float, float, int]] = []
    offsets: list[float] = []
    for box, want in zip(row, wanted, strict=True):
        half = widths[box] / 2
        offsets.append(half)
        blocks.append((want - half, widths[box], 1))
        while len(blocks) > 1:
            (sum_before, width_before, count_before), (total, width, count) = blocks[-2:]
            start_before, start = sum_before / count_before, total / count
            if start >= start_before + width_before + gap:
                break
            shift = width_before + gap
            merged = (sum_before + total - shift * count, shift + width, count_before + count)
            blocks[-2:] = [merged]
    found: list[float] = []
    for total, _, count in blocks:
        x = total / count
        for _ in range(count):
            box = row[len(found)]
            found.append(x + offsets[len(found)])
            x += widths[box] + gap
    return found


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
