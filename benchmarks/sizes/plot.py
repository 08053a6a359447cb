"""Lines on logarithmic axes, as SVG: a panel for each store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO

Points = Sequence[tuple[float, float]]

_PANEL = 4.2
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
# Text stays text, and the same figures give the same file.
_SETTINGS = {"svg.fonttype": "none", "svg.hashsalt": "performance", "lines.markersize": 5}


@dataclass(frozen=True)
class Style:
    """How a line looks.

    Parameters
    ----------
    colour : str
        Any that matplotlib knows.
    dashes : tuple of float
        Lengths of dashes and gaps, in widths of the line; empty for a full line.
    width : float
        A wide line shows below a narrow one that is drawn after it.
    """

    colour: str
    dashes: tuple[float, ...] = ()
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
    >>> picture.count(">memory<"), picture.count(">ours<")
    (1, 1)
    """
    # imported late: it takes a second, and whoever collects tests imports this module
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure((_PANEL * len(panels), _PANEL + 1.5), layout="constrained")
        figure.suptitle(title, fontweight="bold")
        row = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
        legend = {}
        for panel, (name, lines) in zip(row, panels.items(), strict=True):
            panel.set(title=name, xlabel=axes[0], xscale="log", yscale="log")
            for line, style in styles.items():
                if line in lines:
                    [legend[line]] = panel.plot(
                        *zip(*lines[line], strict=True),
                        color=style.colour,
                        linewidth=style.width,
                        linestyle=(0, style.dashes) if style.dashes else "-",
                        marker="o",
                    )
            panel.grid(color="#dddddd")
            for axis in (panel.xaxis, panel.yaxis):
                axis.set_major_formatter(lambda number, position: short(number))
        row[0].set_ylabel(axes[1])
        shown = [line for line in styles if line in legend]
        figure.legend([legend[line] for line in shown], shown, loc="outside lower center", ncols=4)
        picture = StringIO()
        figure.savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue()
