"""Lines on logarithmic axes, as SVG: a panel for each store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

Points = Sequence[tuple[float, float]]

_PANEL, _GAP = (340, 340), 36
_LEFT, _TOP, _BELOW, _LEGEND_ROW = 74, 64, 62, 22
_LEGEND_COLUMNS = 4
_INK, _FAINT = "#333333", "#dddddd"
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True)
class Style:
    """How a line looks.

    Parameters
    ----------
    colour : str
        In CSS.
    dashes : str
        As SVG's ``stroke-dasharray``; "" for a full line.
    width : float
        In pixels: a wide line shows below a narrow one that is drawn after it.
    """

    colour: str
    dashes: str = ""
    width: float = 2.0


def short(number: float) -> str:
    """Return a number with a unit.

    Examples
    --------
    >>> short(100), short(25_000), short(1_910_000)
    ('100', '25 k', '1.91 M')
    """
    for size, unit in _UNITS:
        if number >= size:
            return f"{number / size:.3g} {unit}".strip()
    return f"{number:.3g}"


def svg(
    title: str,
    axes: tuple[str, str],
    panels: Mapping[str, Mapping[str, Points]],
    styles: Mapping[str, Style],
) -> str:
    """Draw lines in panels that share their axes, and a legend.

    Parameters
    ----------
    title : str
        Above all panels.
    axes : tuple of str
        What is along the axes: x, y.
    panels : mapping of str to mapping
        For each panel its lines, as points by name.
    styles : mapping of str to Style
        How the lines look, in the legend's order.

    Examples
    --------
    >>> lines = {"ours": [(100, 1e5), (10_000, 2e6)]}
    >>> picture = svg("Words", ("batch", "rate"), {"memory": lines}, {"ours": Style("teal")})
    >>> picture.count("<polyline"), picture.count("<circle")
    (2, 3)
    """
    drawn = [name for name in styles if any(name in lines for lines in panels.values())]
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    scale = _Scale.around(points)
    width = _LEFT + len(panels) * (_PANEL[0] + _GAP)
    rows = ceil(len(drawn) / _LEGEND_COLUMNS)
    height = _TOP + _PANEL[1] + _BELOW + rows * _LEGEND_ROW + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" '
        f'font-size="13" fill="{_INK}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(width / 2, 26, title, 'font-size="17" font-weight="bold"'),
        _text(0, 0, axes[1], f'transform="translate(18 {_TOP + _PANEL[1] / 2}) rotate(-90)"'),
    ]
    for number, (name, lines) in enumerate(panels.items()):
        left = _LEFT + number * (_PANEL[0] + _GAP)
        parts.append(f'<g transform="translate({left} {_TOP})">')
        parts += _frame(scale, name, axes[0], with_y=number == 0)
        for style_name in drawn:
            if style_name in lines:
                parts += _line([scale.at(point) for point in lines[style_name]], styles[style_name])
        parts.append("</g>")
    column = (width - _LEFT) / _LEGEND_COLUMNS
    for number, name in enumerate(drawn):
        row, place = divmod(number, _LEGEND_COLUMNS)
        x, y = _LEFT + place * column, _TOP + _PANEL[1] + _BELOW + (row + 0.5) * _LEGEND_ROW
        parts += _line([(x, y), (x + 17, y), (x + 34, y)], styles[name], dots=slice(1, 2))
        parts.append(_text(x + 42, y + 4.5, name, anchor="start"))
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True)
class _Scale:
    """Where numbers are in a panel, by their logarithms."""

    x: tuple[float, float]
    y: tuple[int, int]

    @classmethod
    def around(cls, points: Points) -> _Scale:
        """A scale with a little room left and right, and whole decades below and above."""
        xs, ys = ([log10(point[axis]) for point in points] for axis in (0, 1))
        room = 0.05 * (max(xs) - min(xs)) or 0.5
        low = floor(min(ys))
        return cls((min(xs) - room, max(xs) + room), (low, max(low + 1, ceil(max(ys)))))

    def at(self, point: tuple[float, float]) -> tuple[float, float]:
        (left, right), (low, high) = self.x, self.y
        x = (log10(point[0]) - left) / (right - left)
        y = (log10(point[1]) - low) / (high - low)
        return x * _PANEL[0], (1 - y) * _PANEL[1]


def _frame(scale: _Scale, name: str, along: str, *, with_y: bool) -> list[str]:
    width, height = _PANEL
    parts = [_text(width / 2, -10, name, 'font-weight="bold"')]
    for power in range(scale.y[0], scale.y[1] + 1):
        y = scale.at((1, 10.0**power))[1]
        parts.append(_stroke(0, y, width, y))
        if with_y:
            parts.append(_text(-8, y + 4.5, short(10.0**power), anchor="end"))
    for power in range(ceil(scale.x[0]), floor(scale.x[1]) + 1):
        x = scale.at((10.0**power, 1))[0]
        parts.append(_stroke(x, 0, x, height))
        parts.append(_text(x, height + 18, short(10.0**power)))
    parts.append(_text(width / 2, height + 40, along))
    parts.append(f'<rect width="{width}" height="{height}" fill="none" stroke="{_INK}"/>')
    return parts


def _line(points: Points, style: Style, dots: slice = slice(None)) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = f' stroke-dasharray="{style.dashes}"' if style.dashes else ""
    return [
        f'<polyline points="{path}" fill="none" stroke="{style.colour}" '
        f'stroke-width="{style.width:g}"{dashes}/>',
        *(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{style.width / 2 + 2:g}" fill="{style.colour}"/>'
            for x, y in points[dots]
        ),
    ]


def _stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_FAINT}"/>'


def _text(x: float, y: float, text: str, more: str = "", *, anchor: str = "middle") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {where} {more}>{escape(text)}</text>".replace(" >", ">")
