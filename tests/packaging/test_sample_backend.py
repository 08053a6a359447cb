"""A store in another package: built, installed, tested, and used by its URL."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

SAMPLE = ROOT / "examples" / "shelf-state"
OFFLINE = ("--no-deps", "--no-index", "--disable-pip-version-check", "--quiet")

TOPOLOGY = """\
import sys

import shelf_state
from trident import Count, FixedBatchSpout, MapGet, Split, TridentTopology

url, checkpoint = sys.argv[1:]
print(shelf_state.__file__)
topology = TridentTopology()
spout = FixedBatchSpout("sentence", 1, ["the cow"], ["the dog"])
stream = topology.newStream("sentences", spout).each("sentence", Split(), "word")
counts = stream.groupBy("word").persistentAggregate(url, Count(), "count")
topology.newDRPCStream("count").stateQuery(counts, "args", MapGet(), "count").project("count")
with topology.start(checkpoint=checkpoint) as run:
    run.processAllAvailable()
    print(run.drpc.execute("count", "the"))
print(topology.explain())
"""

QUERY = """\
import sys

from trident import state_from_url

print(state_from_url(sys.argv[1] + "?prefix=count").makeState().multiGet([["the"], ["dog"]]))
"""


def run(*command: str | Path, cwd: Path, path: Path | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}"} if path else None,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the sample's wheel is installed into, and nothing else."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(SAMPLE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "--no-build-isolation", *OFFLINE, "-w", ".", "./source", cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(*pip, "install", *OFFLINE, "--target", "installed", wheel, cwd=folder)
    return folder / "installed"


def test_it_passes_its_own_tests(installed: Path, tmp_path: Path) -> None:
    shutil.copy(SAMPLE / "test_shelf_state.py", tmp_path)
    pytest_here = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    printed = run(*pytest_here, "test_shelf_state.py", cwd=tmp_path, path=installed)
    assert " passed" in printed
    assert "skipped" not in printed


def test_a_topology_takes_its_url(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    arguments = ("shelf:shelf", tmp_path / "checkpoint")
    printed = run(sys.executable, "-c", TOPOLOGY, *arguments, cwd=tmp_path, path=installed)
    module, counted, *explained = printed.splitlines()
    assert Path(module).is_relative_to(installed)
    assert counted == "[[2]]"
    assert any("MapStateFactory over Shelf, opaque map" in line for line in explained)
    again = run(sys.executable, "-c", QUERY, "shelf:shelf", cwd=tmp_path, path=installed)
    assert again.strip() == "[2, 1]"


def test_it_has_at_most_40_lines_of_code() -> None:
    text = (SAMPLE / "shelf_state.py").read_text()
    assert len(lines_of_code(text)) <= 40


def lines_of_code(text: str) -> list[str]:
    """What is left without docstrings, comments and empty lines."""
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return [
        line
        for number, line in enumerate(text.splitlines(), 1)
        if number not in docstrings and line.strip() and not line.lstrip().startswith("#")
    ]
