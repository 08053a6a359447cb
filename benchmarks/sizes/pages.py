"""What docs/performance.md says of a run: tables, between two marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.report import Figure
from benchmarks.sizes.cases import (
    KEYS_CONTENDERS,
    LOCAL,
    MIXED,
    OTHERS,
    OURS,
    STORES,
    Case,
    Effort,
    Measured,
    Timed,
)
from benchmarks.sizes.plot import Style, short, svg
from benchmarks.sizes.steady import Cost, Held
from benchmarks.words import KEYS

BEGIN = "<!-- begin: written by make bench BENCH=sizes -->"
END = "<!-- end: written by make bench BENCH=sizes -->"
PLOT = "performance.svg"

_COLOURS = ("#0072b2", "#009e73", "#56b4e9", "#6a3d9a", "#d55e00", "#e69f00", "#cc79a7", "#999999")
_DASHES = (3.5, 2.0)
_NONE = ""


@dataclass(frozen=True)
class Report:
    """All that a run found so far.

    Parameters
    ----------
    effort : Effort
        How long it was allowed to take.
    machine : str
        What it ran on.
    timed : list of Timed
        The runs of the cases.
    costs : list of Cost
        What a word cost in the course of a long run.
    held : list of Held
        What the process held in the course of many batches.
    figures : list of Figure
        What else was measured, that is not counting.
    left_out : list of str
        What was not measured, and why.
    """

    effort: Effort
    machine: str
    timed: list[Timed] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def measured(self) -> Sequence[Measured]:
        """The cases, as far as they were run."""
        runs: dict[Case, list[Timed]] = {}
        for run in self.timed:
            runs.setdefault(run.case, []).append(run)
        return [Measured(case, of_case) for case, of_case in runs.items()]


def with_report(page: str, report: Report) -> str:
    """Return the page with the report in the place of what is between the marks.

    Raises
    ------
    ValueError
        Where the page hasn't got each mark once, in this order.
    """
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended or BEGIN in rest or END in after:
        raise ValueError(f"the page needs {BEGIN!r} and {END!r}, once each, in this order")
    return f"{before}{BEGIN}\n\n{_text(report)}\n{END}{after}"


def plotted(report: Report) -> str:
    """Return the picture of the words a second by the size of a batch."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {store: {} for store in STORES}
    for found in _by_size(report):
        line = panels[found.case.store].setdefault(found.case.contender, [])
        line.append((found.case.words, found.rate))
    styles = {}
    for contender, colour in zip((*OURS, *OTHERS), _COLOURS, strict=True):
        dashes = _DASHES if contender in OTHERS else ()
        styles[contender] = Style(colour, dashes, 5.0 if contender == LOCAL else 2.0)
    shown = {store: lines for store, lines in panels.items() if lines}
    return svg("Words counted a second", ("words a batch", "words a second"), shown, styles)


def _text(report: Report) -> str:
    parts = [
        f"{report.effort.runs} {report.effort.name} runs, on {report.machine}. A rate is that of "
        "the run in the middle; ± is half of what lies between the slowest and the fastest.",
        f"![Words counted a second by the size of a batch, for each store]({PLOT})",
    ]
    for store in STORES:
        found = [each for each in _by_size(report) if each.case.store == store]
        if found:
            parts += [
                f"### {store}",
                "Words a second, by the words of a batch:",
                _pivoted(found, "words", _rate, lambda each: -each.rate),
                "Milliseconds a batch, p50 / p99 (of fewer than 100 batches the slowest):",
                _pivoted(found, "words", _times, lambda each: each.p50),
            ]
    mixed = [each for each in _by_size(report) if each.case.contender == MIXED]
    if mixed:
        parts += ["### Batches that mixed ran on Spark", _on_spark(mixed)]
    if any(each.case.keys != KEYS for each in report.measured):
        parts += [
            "### Distinct words",
            f"Words a second into SQLite, {short(report.effort.keys_at)} words a batch, by how "
            "many distinct words the state holds:",
            _pivoted(_by_keys(report), "keys", _rate, lambda each: -each.rate),
        ]
    if report.costs:
        parts += ["### In the course of a run", _cost_table(report.costs)]
    if report.held:
        parts.append(_held_table(report.held))
    if report.figures:
        rows = [[each.name, each.ours, each.baseline] for each in report.figures]
        parts += ["### From Kafka, and rows", table(["", "", "beside, or wanted"], rows)]
    if report.left_out:
        parts += ["Not measured:", "\n".join(f"- {reason}" for reason in report.left_out)]
    return "\n\n".join(parts) + "\n"


def _by_size(report: Report) -> Sequence[Measured]:
    return [found for found in report.measured if found.case.keys == KEYS]


def _by_keys(report: Report) -> Sequence[Measured]:
    return [
        found
        for found in report.measured
        if found.case.words == report.effort.keys_at
        and found.case.store == "SQLite"
        and found.case.contender in KEYS_CONTENDERS
    ]


def _pivoted(
    found: Sequence[Measured],
    axis: str,
    show: Callable[[Measured], str],
    rank: Callable[[Measured], float],
) -> str:
    """A line for each contender, a column for each size; the best of a column is bold."""
    columns = sorted({getattr(each.case, axis) for each in found})
    rows: dict[str, dict[int, Measured]] = {}
    for each in found:
        rows.setdefault(each.case.contender, {})[getattr(each.case, axis)] = each
    best = {at: min((row[at] for row in rows.values() if at in row), key=rank) for at in columns}

    def cell(row: Mapping[int, Measured], at: int) -> str:
        if at not in row:
            return _NONE
        return f"**{show(row[at])}**" if row[at] is best[at] else show(row[at])

    cells = [[series, *(cell(row, at) for at in columns)] for series, row in rows.items()]
    return table(["", *map(short, columns)], cells)


def _rate(found: Measured) -> str:
    return f"{short(found.rate)} ±{found.spread:.0%}"


def _times(found: Measured) -> str:
    return f"{_milliseconds(found.p50)} / {_milliseconds(found.p99)}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.{0 if seconds >= 0.1 else 1 if seconds >= 0.01 else 2}f}"


def _on_spark(mixed: Sequence[Measured]) -> str:
    """Which share of the batches ran on Spark: a line for each store, a column for each size."""
    shares = {(each.case.store, each.case.words): f"{each.on_spark:.0%}" for each in mixed}
    sizes = sorted({words for _, words in shares})
    stores = [store for store in STORES if any(store == at for at, _ in shares)]
    rows = [[store, *(shares.get((store, words), _NONE) for words in sizes)] for store in stores]
    return table(["", *map(short, sizes)], rows)


def _cost_table(costs: Sequence[Cost]) -> str:
    heading = ["words so far", *(short(cost.upto) for cost in costs)]
    row = ["microseconds a word", *(f"{cost.seconds * 1e6:.2f}" for cost in costs)]
    return table(heading, [row])


def _held_table(held: Sequence[Held]) -> str:
    heading = ["", "batches", "resident", "checkpoint", "database", "open files"]
    rows = [
        [
            each.contender,
            f"{each.batches:,}",
            *(f"{short(size)}B" for size in (each.resident, each.checkpoint, each.database)),
            str(each.files),
        ]
        for each in held
    ]
    return table(heading, rows)


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown, the first column to the left and the others to the right.

    Examples
    --------
    >>> print(table(["", "100"], [["local", "1.2 M"]]))
    |       |   100 |
    |:------|------:|
    | local | 1.2 M |
    """
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    lines = [
        [text.ljust(widths[0]), *(map(str.rjust, others, widths[1:]))]
        for text, *others in (heading, *rows)
    ]
    rule = [":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])]
    shown = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([shown[0], f"|{'|'.join(rule)}|", *shown[1:]])
