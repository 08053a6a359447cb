"""Running an example in this process, with the Spark session that all tests share."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession


class Ended(NamedTuple):
    """How a program ended, and what it printed."""

    code: int
    out: str
    errors: str


@pytest.fixture
def run_here(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Callable[..., Ended]:
    """Run a program as ``python program argument …`` would, in the test's folder.

    A JVM for each would cost every test as much time as all else that it does; that the examples
    run as programs of their own is tested beside it.
    """

    def run(program: Path, *arguments: str) -> Ended:
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(program.parent)
        monkeypatch.setattr(sys, "argv", [str(program), *arguments])
        code = 0
        try:
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Ended(code, *capfd.readouterr())

    return run
