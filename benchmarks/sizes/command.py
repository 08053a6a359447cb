"""Measures all sizes, and writes docs/performance.md and its picture; Ctrl-C ends it early."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import kafka, rows
from benchmarks.report import Figure, line
from benchmarks.sizes.cases import EFFORTS, SHORT, Timed
from benchmarks.sizes.contenders import CONTENDERS
from benchmarks.sizes.pages import PLOT, Report, plotted, with_report
from benchmarks.sizes.setting import Setting
from benchmarks.sizes.steady import costs, held
from trident.testing.servers.process import MissingServer

_DOCS = Path(__file__).parents[2] / "docs"
_PAGE = "performance.md"


def main(words: Sequence[str]) -> None:
    """Run the benchmark.

    Parameters
    ----------
    words : sequence of str
        ``long`` for the run that takes hours; else the short one. Any other words choose
        the cases whose line has one of them: these are printed, and nothing is written.
    """
    [effort] = [EFFORTS[word] for word in words if word in EFFORTS] or [SHORT]
    chosen = [word for word in words if word not in EFFORTS]
    with (
        TemporaryDirectory(prefix="trident-bench-") as folder,
        closing(Setting(Path(folder), effort)) as setting,
    ):
        report = _report(setting, chosen)
    if not chosen:
        _write(report)
        report.figures.extend(_figures())
        _write(report)


def _write(report: Report) -> None:
    page = _DOCS / _PAGE
    page.write_text(with_report(page.read_text(), report))
    (_DOCS / PLOT).write_text(plotted(report))
    print(f"written: docs/{_PAGE}, docs/{PLOT}")


def _report(setting: Setting, chosen: Sequence[str]) -> Report:
    """Measure all that is asked for, or what comes before Ctrl-C."""
    report = Report(setting.effort, _machine())
    try:
        for found in _timed(setting, chosen, report.left_out):
            report.timed.append(found)
        if not chosen:
            report.costs.extend(costs(setting))
            report.held.extend(held(setting))
    except KeyboardInterrupt:
        last = report.timed[-1].case if report.timed else "the beginning"
        report.left_out.append(f"what comes after {last}: the run was broken off")
    return report


def _timed(setting: Setting, chosen: Sequence[str], left_out: list[str]) -> Iterator[Timed]:
    """Run the cases that have one of the words, and print each; add to `left_out`."""
    cases = [
        case
        for case in dict.fromkeys(setting.effort.cases())
        if not chosen or any(word in str(case) for word in chosen)
    ]
    contenders = {case.contender for case in cases}
    for case in setting.effort.warm_ups():
        if case.contender in contenders:
            CONTENDERS[case.contender](setting, case)
    for case in cases * setting.effort.runs:
        try:
            found = CONTENDERS[case.contender](setting, case)
        except (MissingServer, ModuleNotFoundError) as missing:
            told = f"{case}: {missing}"
            if told not in left_out:
                left_out.append(told)
                print(f"not measured: {told}", file=sys.stderr)
        else:
            print(found, flush=True)
            yield found


def _figures() -> Iterator[Figure]:
    """Measure what is not counting, each in a process of its own: a JVM keeps its first jars."""
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as process:
        for measure in (kafka.figures, rows.figures):
            for figure in process.submit(_measured, measure).result():
                print(line(figure), flush=True)
                yield figure


def _measured(measure: Callable[[Path], Iterator[Figure]]) -> Sequence[Figure]:
    with TemporaryDirectory(prefix="trident-bench-") as folder:
        return list(measure(Path(folder)))


def _machine() -> str:
    """What a run was on: cores, their model, and the versions that matter."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = f"Python {platform.python_version()}, Spark {version('pyspark')}"
    return f"{cores} cores of {model[1] if model else platform.machine()}, {versions}"
