"""Checks at start that Spark's Python workers can run what this program sends them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession

from trident.spark.errors import WorkerError
from trident.spark.quiet import TASKS, Quiet

_NEEDED = ("pyarrow", "numpy", "orjson", "cachetools", "trident")
_PATIENCE = 60.0
_LOCAL = re.compile(r"local(\[.*\])?")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_MISMATCH = re.compile(r"PYTHON_VERSION_MISMATCH\]\D*(\d+)\D+(\d+)")

_found_fit: WeakSet[SparkContext] = WeakSet()


def check_workers(spark: SparkSession) -> None:
    """Refuse workers with another Python than this one, or without a module; once a session.

    Where they run this very interpreter, on this machine, nothing is asked. Elsewhere it costs one
    job of tiny tasks, about as long as the workers take to start. Spark would fail the first batch,
    with its own traces of hundreds of lines.
    """
    context = spark.sparkContext
    if context in _found_fit:
        return
    local = _LOCAL.fullmatch(str(context.master)) is not None
    python = context.pythonExec
    if not local or not is_own(python):
        if local:
            _check_version(python, version_of(python))
        _check_modules(python, _missing(spark, python))
    _found_fit.add(context)


def is_own(python: str) -> bool:
    """Whether a program is this interpreter, in the same environment."""
    found = Path(shutil.which(python) or python)
    own = Path(sys.executable)
    return found.parent == own.parent and found.exists() and found.samefile(own)


def version_of(python: str) -> str:
    """The version of an interpreter on this machine, asked without Spark."""
    try:
        asked = subprocess.run(
            [python, "-c", _VERSION], capture_output=True, text=True, timeout=_PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise WorkerError(
            f"the Python of Spark's workers, {python}, does not run: {error}"
        ) from None
    return asked.stdout.strip()


def _check_version(python: str, found: str) -> None:
    own = ".".join(map(str, sys.version_info[:2]))
    if found != own:
        raise WorkerError(f"Spark's workers run Python {found} ({python}), this program runs {own}")


def _missing(spark: SparkSession, python: str) -> Mapping[str, str]:
    tasks = spark.sparkContext.defaultParallelism  # one for each core, so that all workers run one
    numbers = spark.sparkContext.parallelize(range(tasks), tasks)
    quiet = Quiet(spark, *TASKS)
    quiet.on()
    try:
        answers = numbers.mapPartitions(_asks(_NEEDED)).collect()
    except Exception as error:
        text = str(error)
        if found := _MISMATCH.search(text):
            _check_version(python, ".".join(found.groups()))
        shown = text.strip().splitlines()[0]
        raise WorkerError(f"Spark's workers, {python}, can't run a task: {shown}") from None
    finally:
        quiet.off()
    return {name: problem for answer in answers for name, problem in answer.items()}


def _asks(names: tuple[str, ...]) -> Callable[[Iterable[Any]], Iterator[dict[str, str]]]:
    """A task that tells which modules can't be imported, and why.

    It is a closure, and uses nothing of this module, so that it is pickled by value: a worker
    without this package could not import it.
    """

    def ask(_: Iterable[Any]) -> Iterator[dict[str, str]]:
        from importlib import import_module

        problems = {}
        for name in names:
            try:
                import_module(name)
            except Exception as error:
                problems[name] = f"{type(error).__name__}: {error}"
        yield problems

    return ask


def _check_modules(python: str, problems: Mapping[str, str]) -> None:
    if problems:
        found = ", ".join(f"{name} ({problem})" for name, problem in problems.items())
        raise WorkerError(f"Spark's workers, {python}, can't import {found}")
