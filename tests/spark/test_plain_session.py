"""A session that the user made: what is wrong is said in a few lines, and first."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PROGRAM = (
    "import sys, json, pathlib; sys.path.insert(0, sys.argv[1]); "
    "from tests.spark.plain import main; "
    "main(pathlib.Path(sys.argv[2]), json.loads(sys.argv[3]))"
)


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Pythons for workers: of an environment without this package, of another version, and fit."""
    folder = tmp_path_factory.mktemp("pythons")
    venv.create(folder / "bare")
    fit, older = folder / "fit", folder / "older"
    fit.write_text(f'#!/bin/sh\nPYTHONPATH="{_ROOT}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    older.write_text("#!/bin/sh\necho 3.8\n")  # what a Python 3.8 answers to who asks its version
    for script in (fit, older):
        script.chmod(0o755)
    found = {"bare": str(folder / "bare" / "bin" / "python"), "older": str(older)}
    if (other := another_version()) is not None:
        found |= {"other": other, "other:spark://cluster": other}
    return {**found, "none": str(folder / "none"), "fit": str(fit)}


def another_version() -> str | None:
    """An interpreter of another minor version, where this machine has one."""
    own = sys.version_info.minor
    names = [f"python3.{minor}" for minor in range(9, 20) if minor != own]
    places = sorted(Path.home().glob(".pyenv/versions/3.*/bin"))
    found = [shutil.which(name, path=str(place)) for place in places for name in names]
    found += [shutil.which(name) for name in names if not places]
    return next((python for python in found if python is not None), None)


@pytest.fixture(scope="module")
def printed(
    pythons: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """What each part of the program printed on stderr."""
    folder = tmp_path_factory.mktemp("plain")
    program = [sys.executable, "-c", _PROGRAM, str(_ROOT), str(folder), json.dumps(pythons)]
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    ended = subprocess.run(
        program,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    parts = re.split(r"^--- (.*)\n", ended.stderr, flags=re.M)[1:]
    return {name: text.splitlines() for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("source", ["spouts", "frames"])
def test_a_users_exception_is_all_that_is_printed(
    printed: dict[str, list[str]], source: str
) -> None:
    lines = printed[source]
    assert "trident.operation_error.OperationError: ZeroDivisionError: division by zero" in lines
    assert len(lines) <= 15
    assert not [line for line in lines if "Exception in task" in line or "py4j" in line]


@pytest.mark.spark
def test_what_fails_beside_our_batches_is_logged_as_before(printed: dict[str, list[str]]) -> None:
    text = "\n".join(printed["own"])
    assert "ERROR Executor: Exception in task" in text
    assert "Lost task" in text
    assert '"logger": "SQLQueryContextLogger"' in text


@pytest.mark.spark
@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("bare", r"can't import .*orjson \(ModuleNotFoundError.*trident \(ModuleNotFoundError"),
        ("older", r"run Python 3\.8 \(.*/older\), this program runs 3\.\d+\."),
        ("other", r"run Python 3\.\d+ \(.*\), this program runs 3\.\d+\."),
        ("other:spark://cluster", r"run Python 3\.\d+ \(.*\), this program runs 3\.\d+\."),
        ("none", r"/none, does not run"),
    ],
)
def test_workers_that_are_not_fit_are_named_before_the_first_batch(
    printed: dict[str, list[str]], case: str, found: str
) -> None:
    if case.startswith("other") and case not in printed:
        pytest.skip("no Python of another version on this machine")
    lines = printed[case]
    [told] = [line for line in lines if "WorkerError: " in line]
    assert re.search(found, told)
    for advice in ("PYSPARK_PYTHON", "pip install", "--archives", "--py-files"):
        assert advice in told
    if case != "other:spark://cluster":  # whose driver logs what its tasks raise
        assert len(lines) <= 15
