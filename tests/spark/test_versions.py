"""Which versions of Spark this runs on, and that one module knows what they differ in."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.packaging.conftest import ROOT

ASKS = re.compile(r"pyspark\.__version__|\b_?(spark|session)\.version\b")


def test_no_other_module_asks_for_the_version() -> None:
    asking = [
        path.name for path in (ROOT / "trident").rglob("*.py") if ASKS.search(path.read_text())
    ]
    assert asking == ["versions.py"]


@pytest.mark.parametrize(("version", "fits"), [("3.4.4", False), ("3.5.0", True), ("10.0", True)])
def test_a_spark_that_is_too_old_is_refused_by_version(version: str, fits: bool) -> None:
    program = f"import pyspark; pyspark.__version__ = {version!r}; import trident.spark"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert (done.returncode == 0) == fits, done.stderr
    if not fits:
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("ImportError: topologies on Spark need PySpark 3.5 or newer, and ")
        assert f"this is {version}: pip install" in last


def test_the_session_of_a_server_that_is_away_is_there_at_once() -> None:
    program = (
        "from trident.spark import versions; from trident.spark.session import session_at\n"
        "made = session_at('sc://localhost:1'); print(versions.is_connect(made), flush=True)\n"
        "import os; os._exit(0)"  # PySpark would say goodbye to the server
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=ROOT
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
