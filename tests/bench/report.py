"""What a measurement says: one line of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Parameters
    ----------
    name : str
        What was measured.
    ours, baseline : str
        The figures, with units; no baseline is "".
    ratio : float
        What is compared with the target.
    target : float
        The least ratio wanted, or with `at_most` the greatest.
    at_most : bool
        Whether less is better.
    """

    name: str
    ours: str
    baseline: str
    ratio: float
    target: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.ratio <= self.target if self.at_most else self.ratio >= self.target


def throughput(name: str, items: int, ours: float, baseline: float, *, target: float) -> Figure:
    """Compare two times, in seconds, for the same `items`; `target` is the least share."""
    rate = "{:,.0f}/s ({:.2f} s)".format
    return Figure(
        name, rate(items / ours, ours), rate(items / baseline, baseline), baseline / ours, target
    )


def latency(name: str, ours: float, baseline: float, *, target: float) -> Figure:
    """Compare two times of one thing, in seconds; `target` is the greatest multiple."""
    return Figure(name, _milliseconds(ours), _milliseconds(baseline), ours / baseline, target, True)


def limit(name: str, ours: float, *, target: float) -> Figure:
    """Compare a time, in seconds, with the most it may be."""
    return Figure(name, _milliseconds(ours), f"≤ {_milliseconds(target)}", ours / target, 1.0, True)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def line(figure: Figure) -> str:
    """Return a figure as one line of text."""
    sign = "≤" if figure.at_most else "≥"
    verdict = "" if figure.met else "  missed"
    return (
        f"{figure.name:<62} {figure.ours:>22} {figure.baseline:>22} "
        f"{figure.ratio:>6.2f}  {sign} {figure.target:.2f}{verdict}"
    )


HEADING = f"{'':<62} {'ours':>22} {'baseline':>22} {'ratio':>6}  target"


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds `work` takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def alternated(rounds: int, *works: Callable[[], object]) -> list[float]:
    """Return the least time of each of `works`, run in turn so that a busy machine is fair.

    The first round, in which a JVM compiles and files grow, isn't counted.
    """
    times = [[timed(work) for work in works] for _ in range(rounds + 1)]
    return [min(column) for column in zip(*times[1:], strict=True)]


def median(values: Sequence[float]) -> float:
    """Return the middle value."""
    return sorted(values)[len(values) // 2]
