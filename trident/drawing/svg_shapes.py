"""Texts and arrows of drawings in SVG, and their style; a text stays one whatever it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unicodedata import east_asian_width
from xml.sax.saxutils import escape, quoteattr

from trident.states.printable import printable

Point = tuple[float, float]
_COLUMN = 7.25
"""The width of a character of a step, at most, in the fonts of the style."""
_NARROW = 6.3
"""That of other texts."""

STYLE = """
.trident-drawing{--paper:#fff;--frame:#f5f7f9;--line:#c9d1d9;--card:#fff;--ink:#1b2430;--faint:#57606a;
--flow:#6b7785;--write:#0a58a6;--read:#7a3ea8;--sure:#17692c;--unsure:#8a4b00;max-width:100%;height:auto}
@media(prefers-color-scheme:dark){.trident-drawing{--paper:#10161d;--frame:#171f29;--line:#344252;
--card:#1e2833;--ink:#e6edf3;--faint:#a3afbb;--flow:#8b98a6;--write:#6cb4ff;--read:#cda6f5;
--sure:#5fd882;--unsure:#f2b45c}}
.trident-drawing text{font:12px ui-sans-serif,system-ui,"Segoe UI","Liberation Sans",Arial,
sans-serif;fill:var(--ink)}
.trident-drawing .step,.trident-drawing .name{font-family:ui-monospace,SFMono-Regular,Menlo,
Consolas,"Liberation Mono",monospace;white-space:pre}
.trident-drawing .title{font-size:13px;font-weight:600}
.trident-drawing .name{font-weight:600}
.trident-drawing .faint{fill:var(--faint);font-size:11px}
.trident-drawing .note{fill:var(--write);font-variant-numeric:tabular-nums}
.trident-drawing .way{fill:var(--faint);font-size:11px;paint-order:stroke;stroke:var(--frame);
stroke-width:4px;stroke-linejoin:round}
.trident-drawing .paper{fill:var(--paper)}
.trident-drawing .frame{fill:var(--frame);stroke:var(--line)}
.trident-drawing .card{fill:var(--card);stroke:var(--line)}
.trident-drawing .flow{fill:none;stroke:var(--flow);stroke-width:1.5}
.trident-drawing .write{fill:none;stroke:var(--write);stroke-width:2}
.trident-drawing .read{fill:none;stroke:var(--read);stroke-width:1.5;stroke-dasharray:5 3}
.trident-drawing .flow-head{fill:var(--flow)}
.trident-drawing .write-head{fill:var(--write)}
.trident-drawing .read-head{fill:var(--read)}
.trident-drawing .updates{fill:var(--write)}
.trident-drawing .reads{fill:var(--read)}
.trident-drawing .sure{fill:var(--sure);font-weight:600}
.trident-drawing .unsure{fill:var(--unsure);font-weight:600}
""".strip()
"""The style of every drawing; all of it is for what has the class ``trident-drawing``."""


def width(text: str, kind: str) -> float:
    """Return how wide a text of a class is at most."""
    if kind.startswith(("step", "name")):
        return columns(text) * _COLUMN
    heavy = kind in ("title", "note", "sure", "unsure")
    return columns(text) * (_NARROW * 1.25 if heavy else _NARROW)


def arrow(kind: str, points: Sequence[Point]) -> Iterator[str]:
    """Draw a line along the axes, with round corners, and its head at the last point."""
    way = [point for point, before in zip(points, [None, *points], strict=False) if point != before]
    (x0, y0), (x, y) = way[-2:]
    if abs(y - y0) < 0.5:
        to = 1 if x > x0 else -1
        back, corners = (x - 6 * to, y), ((x, y), (x - 8 * to, y - 4), (x - 8 * to, y + 4))
    else:
        back, corners = (x, y - 6), ((x, y), (x - 4, y - 8), (x + 4, y - 8))
    yield f'<path class="{kind}" d="{_line([*way[:-1], back])}"/>'
    head = " ".join(f"{px:g} {py:g}" for px, py in corners)
    yield f'<polygon class="{kind}-head" points="{head}"/>'


def _line(points: Sequence[Point]) -> str:
    steps = ["M{:g} {:g}".format(*points[0])]
    for before, (x, y), after in zip(points, points[1:], points[2:], strict=False):
        radius = min(7.0, _distance(before, (x, y)) / 2, _distance((x, y), after) / 2)
        (bx, by), (ax, ay) = (_towards((x, y), other, radius) for other in (before, after))
        steps.append(f"L{bx:g} {by:g}Q{x:g} {y:g} {ax:g} {ay:g}")
    return "".join([*steps, "L{:g} {:g}".format(*points[-1])])


def _distance(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _towards(point: Point, other: Point, distance: float) -> Point:
    share = distance / (_distance(point, other) or 1.0)
    return point[0] + (other[0] - point[0]) * share, point[1] + (other[1] - point[1]) * share


def text_line(
    kind: str, x: float, y: float, text: str, most: int, anchor: str = "", id: str = ""
) -> str:
    """Draw a line of text, cut after `most` columns; the whole text is its tooltip."""
    shown = clipped(text, most)
    whole = f"<title>{escaped(text)}</title>" if shown != text else ""
    more = f' text-anchor="{anchor}"' if anchor else ""
    more += f" id={attribute(id)}" if id else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{more}>{whole}{escaped(shown)}</text>'


def columns(text: str) -> int:
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def clipped(text: str, most: int) -> str:
    if columns(text) <= most:
        return text
    kept = ""
    for letter in text:
        if columns(kept + letter) >= most:
            break
        kept += letter
    return f"{kept.rstrip()}…"


def escaped(text: str) -> str:
    return escape(printable(text))


def attribute(text: str) -> str:
    return quoteattr(printable(text))
