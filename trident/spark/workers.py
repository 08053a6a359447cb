"""Checks at start that Spark's Python workers can run what this program sends them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from trident.spark.access import access_to
from trident.spark.errors import EngineLostError, WorkerError
from trident.spark.quiet import TASKS, Quiet
from trident.spark.versions import is_away, is_connect, require_answer

VERSION: str = sys.modules["trident"].__version__  # which no module of it may import
OF_SPARK = ("pyarrow", "numpy")
_NEEDED = (*OF_SPARK, "orjson", "cachetools", "trident")
_PATIENCE = 60.0
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_MISMATCH = re.compile(r"PYTHON_VERSION_MISMATCH\]\D*(\d+)\D+(\d+)")

_found_fit: WeakSet[Any] = WeakSet()


def check_workers(spark: SparkSession) -> None:
    """Refuse workers of another Python or without a module; once a session, a job if elsewhere."""
    access = access_to(spark)
    if access.workers in _found_fit:
        return
    python = access.python
    if not access.is_local or not is_own(python):
        if access.is_local:
            _check_version(python, version_of(python))
        _check_modules(python, ask_workers(spark))
    _found_fit.add(access.workers)


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


def ask_workers(spark: SparkSession, *packages: str) -> list[dict[str, Any]]:
    """Return each task's report about its worker: what it is, and which modules and packages it
    lacks."""
    if is_connect(spark):
        try:
            require_answer(spark)
        except Exception as error:
            if not is_away(error):
                raise
            why = ", ".join(re.findall(r'details = "([^"]*)"', str(error))) or type(error).__name__
            raise EngineLostError(f"its Connect server does not answer ({why})") from None
    access = access_to(spark)
    try:
        with Quiet(spark, *TASKS):
            return access.ask_workers(_NEEDED, packages)
    except Exception as error:
        text = str(error)
        if found := _MISMATCH.search(text):
            _check_version(access.python, ".".join(found.groups()))
        shown = text.strip().splitlines()[0]
        raise WorkerError(f"Spark's workers, {access.python}, can't run a task: {shown}") from None


def _check_modules(python: str, answers: Iterable[Mapping[str, Any]]) -> None:
    for answer in answers:
        if answer["problems"]:
            found = ", ".join(f"{name} ({why})" for name, why in answer["problems"].items())
            raise WorkerError(f"Spark's workers, {python}, can't import {found}")
        if answer["trident"] != VERSION:
            found = f"trident {answer['trident']}, and this program {VERSION}"
            raise WorkerError(f"Spark's workers, {python}, have {found}")
