"""The plan as a drawing in SVG: stages with their steps, exchanges, states and queries.

Groups are on the left, their stages from top to bottom. States are in the middle, beside the steps
that update them; queries are on the right. A drawing has its own colours, for light and for dark,
no script, and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trident.drawing.svg_parts import BESIDE, DrawnBox, Note, groups, queries
from trident.drawing.svg_shapes import (
    STYLE,
    Point,
    arrow,
    attribute,
    clipped,
    escaped,
    text_line,
    width,
)

_LANE = 8.0
_MARGIN, _PAD = 16.0, 12.0
_LINE, _LONGEST = 17.0, 34
_NO_NOTES: Mapping[tuple[str, str], Note] = MappingProxyType({})


def to_svg(plan: Mapping[str, Any], notes: Mapping[tuple[str, str], Note] = _NO_NOTES) -> str:
    """Draw a plan.

    `plan` is the result of `to_dict`; notes are by ``("group", id)`` or ``("query", function)``.
    The ``<svg>`` element may stand in a file by itself, or in HTML.
    """
    return _draw(plan, notes, f"<style>{STYLE}</style>")


def unstyled_svg(plan: Mapping[str, Any], notes: Mapping[tuple[str, str], Note]) -> str:
    """Draw a plan without the style, for a document that has `STYLE` elsewhere."""
    return _draw(plan, notes, "")


def _draw(plan: Mapping[str, Any], notes: Mapping[tuple[str, str], Note], style: str) -> str:
    nodes = {node["id"]: node for node in plan["nodes"]}
    on_left = [node for node in nodes.values() if node["group"] is not None and _uses_state(node)]
    on_right = [node for node in nodes.values() if node["query"] is not None and _uses_state(node)]
    left, x = _stack(groups(plan["groups"], nodes, notes), _MARGIN)
    left_channels = x + 14
    states_at = x + 36 + _LANE * len(on_left) if left and plan["states"] else x
    x = states_at + _width_of_states(plan["states"])
    right_channels = x + 20
    x += 40 + _LANE * len(on_right) if plan["queries"] and (left or plan["states"]) else 0
    right, x = _stack(queries(plan["queries"], nodes, notes), x)
    parts = [*left, *right]
    ends = {id: (at[0] + x, at[1] + y) for at, part in parts for id, (x, y) in part.ends.items()}
    states = _place_states(plan["states"], nodes, ends, states_at)
    elements = []
    for at, part in parts:
        elements += [f'<g transform="translate({at[0]:g} {at[1]:g})">', *part.elements, "</g>"]
    for users, first in ((on_left, left_channels), (on_right, right_channels)):
        for channel, node in _channels(users, ends, states, first):
            writes = node["updates"] is not None
            step, state = ends[node["id"]], states[node["updates"] or node["reads"]]
            beside = (state.x + (state.width if users is on_right else 0.0), state.middle)
            if users is on_left and not writes:
                beside = (state.x, state.middle + 14)
            way = [step, (channel, step[1]), (channel, beside[1]), beside]
            elements += arrow("write", way) if writes else arrow("read", way[::-1])
    for state in states.values():
        elements += state.elements()
    bottoms = [at[1] + part.size[1] for at, part in parts]
    bottoms += [state.y + state.height for state in states.values()]
    size = (x + _MARGIN, max(bottoms, default=40.0) + _MARGIN)
    return _svg(_label(plan), size, style, elements)


def _svg(label: str, size: Point, style: str, elements: Sequence[str]) -> str:
    wide, high = (f"{each:g}" for each in size)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="trident-drawing" role="img" '
        f'aria-label={attribute(label)} viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}">{style}'
    )
    paper = f'<rect class="paper" width="{wide}" height="{high}" rx="8"/>'
    return "\n".join([head, paper, *elements, "</svg>"])


def _label(plan: Mapping[str, Any]) -> str:
    parts = [f"group {each['id']}" for each in plan["groups"]]
    parts += [f"state {each['name']}" for each in plan["states"]]
    parts += [f"query {each['function']}" for each in plan["queries"]]
    return f"Topology: {', '.join(parts)}" if parts else "Topology without streams"


def _uses_state(node: Mapping[str, Any]) -> bool:
    return node["updates"] is not None or node["reads"] is not None


def _stack(parts: Sequence[DrawnBox], x: float) -> tuple[list[tuple[Point, DrawnBox]], float]:
    """Put parts below each other; return each with its upper left corner, and their right side."""
    y, placed = _MARGIN, []
    for part in parts:
        placed.append(((x, y), part))
        y += part.size[1] + BESIDE
    return placed, x + max((part.size[0] for part in parts), default=0.0)


@dataclass(frozen=True)
class _State:
    """A state, as `to_dict` describes it, and where it is drawn."""

    state: Mapping[str, Any]
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    def elements(self) -> Iterator[str]:
        """A cylinder, with lines about the state."""
        half = self.width / 2
        top = f"M{self.x:g} {self.y:g}a{half:g} 6 0 0 0 {self.width:g} 0"
        yield "<g>"
        if why := self.state["why"]:
            yield f"<title>{escaped(' '.join([why, self.state['advice'] or '']).strip())}</title>"
        yield (
            f'<path class="card" d="M{self.x:g} {self.y:g}v{self.height:g}a{half:g} 6 0 0 0 '
            f'{self.width:g} 0v{-self.height:g}a{half:g} 6 0 0 0 {-self.width:g} 0z"/>'
        )
        yield f'<path class="card" d="{top}"/>'
        for index, (kind, text) in enumerate(_lines(self.state)):
            y = self.y + _PAD + 16 + index * _LINE
            yield text_line(kind, self.x + _PAD, y, text, _LONGEST)
        yield "</g>"


def _lines(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the class and the text of each line of a state."""
    lines = [("name", state["name"])]
    level = state["guarantee"]
    if level is None:
        lines.append(("faint", "static: only read"))
    elif level == "exactly once":
        lines.append(("sure", "✓ exactly once"))
    else:
        lines.append(("unsure", f"! {'guarantee ' if level == 'not known' else ''}{level}"))
    if state["map"]:
        lines.append(("faint", f"{state['map']} map"))
    store = state["store"]
    if store is None:
        lines.append(("faint", state["label"]))
    else:
        lines.append(("faint", store["kind"]))
        location = "/".join(part for part in (store["host"], store["database"]) if part)
        lines += [("faint", location)] if location else []
        lines += [("faint", f"prefix {store['prefix']}")] if store["prefix"] else []
    return [(kind, clipped(text, _LONGEST)) for kind, text in lines]


def _width_of_states(states: Sequence[Mapping[str, Any]]) -> float:
    lines = [width(text, kind) for state in states for kind, text in _lines(state)]
    return max(lines) + 2 * _PAD if lines else 0.0


def _place_states(
    states: Sequence[Mapping[str, Any]],
    nodes: Mapping[int, Mapping[str, Any]],
    ends: Mapping[int, Point],
    x: float,
) -> dict[str, _State]:
    """Put each state beside the step that updates it, or else those that read it; by name."""
    middles = {}
    for state in states:
        for use in ("reads", "updates"):
            users = [ends[id][1] for id, node in nodes.items() if node[use] == state["name"]]
            if users:
                middles[state["name"]] = sum(users) / len(users)
    wide, y, placed = _width_of_states(states), _MARGIN, {}
    for state in sorted(states, key=lambda state: middles.get(state["name"], _MARGIN)):
        high = len(_lines(state)) * _LINE + 2 * _PAD
        y = max(y, middles.get(state["name"], _MARGIN) - high / 2)
        placed[state["name"]] = _State(state, x, y, wide, high)
        y += high + BESIDE
    return placed


def _channels(
    users: Sequence[Mapping[str, Any]],
    ends: Mapping[int, Point],
    states: Mapping[str, _State],
    first: float,
) -> Iterator[tuple[float, Mapping[str, Any]]]:
    """Yield where each arrow between a step and a state runs up or down.

    The longest is on the left, so that those that end between its ends don't cross it.
    """

    def height(node: Mapping[str, Any]) -> float:
        return abs(ends[node["id"]][1] - states[node["updates"] or node["reads"]].middle)

    for lane, node in enumerate(sorted(users, key=height, reverse=True)):
        yield first + _LANE * lane, node
