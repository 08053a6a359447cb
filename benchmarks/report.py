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


def throughput(
    name: str, items: int, ours: Sequence[float], baseline: Sequence[float], *, target: float
) -> Figure:
    """Compare times, in seconds, for the same `items`, a pair a round.

    The table shows the least of each; the ratio, of which `target` is the least wanted, is the
    median of the pairs', because whatever else keeps the machine busy weighs on both of a pair.
    """
    ratio = median([theirs / own for own, theirs in zip(ours, baseline, strict=True)])
    return Figure(name, _rate(items, min(ours)), _rate(items, min(baseline)), ratio, target)


def latency(name: str, ours: float, baseline: float, *, target: float) -> Figure:
    """Compare two times of one thing, in seconds; `target` is the greatest multiple."""
    return Figure(name, _milliseconds(ours), _milliseconds(baseline), ours / baseline, target, True)


def rate(name: str, items: int, times: Sequence[float], *, target: float) -> Figure:
    """Compare how many items a second are done with the least that is wanted."""
    reached = items / min(times)
    return Figure(name, _rate(items, min(times)), f"{target:,.0f}/s", reached / target, 1.0)


def limit(name: str, ours: float, *, target: float) -> Figure:
    """Compare a time, in seconds, with the most it may be."""
    return Figure(name, _milliseconds(ours), f"≤ {_milliseconds(target)}", ours / target, 1.0, True)


def _rate(items: int, seconds: float) -> str:
    return f"{items / seconds:,.0f}/s ({seconds:.2f} s)"


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


def alternated(rounds: int, *works: Callable[[], object]) -> list[tuple[float, ...]]:
    """Return the times of each of `works`, which are run in turn.

    The first round, in which a JVM compiles and files grow, isn't counted.
    """
    times = [[timed(work) for work in works] for _ in range(rounds + 1)]
    return list(zip(*times[1:], strict=True))


def median(values: Sequence[float]) -> float:
    """Return the middle value."""
    return sorted(values)[len(values) // 2]
