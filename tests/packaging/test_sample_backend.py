"""A store in another package: built, installed, tested, and used by its URL."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "examples" / "shelf-state"
README = (SAMPLE / "README.md").read_text()

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

from trident.backends import state_from_url

print(state_from_url(sys.argv[1] + "?prefix=count").makeState().multiGet([["the"], ["dog"]]))
"""


def block(language: str) -> str:
    """The sample's README, its code of one language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@dataclass(frozen=True)
class Followed:
    """A fresh environment, in which the README's lines were followed."""

    environment: Path
    folder: Path
    printed: str

    def python(self, code: str, *arguments: str | Path, cwd: Path) -> str:
        return run(self.environment / "bin" / "python", "-c", code, *arguments, cwd=cwd)


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": "", **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """What the README says was done, in a copy of the checkout, without the network."""
    folder = tmp_path_factory.mktemp("sample")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("trident", "states", "backends", "examples"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    # What an index would be asked for is there already; trident-spark and the sample are not: the
    # files by which they are installed there for editing are not read in a folder named so.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    # A pip of its own would take longer to install than all else here.
    for name, line in {
        "pip": f'"{sys.executable}" -m pip --python "{python}"',
        "pytest": f'"{python}" -m pytest',
    }.items():
        command = environment / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        command.chmod(0o755)
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # the 0 is pip's "no isolation"
    sample = folder / "examples" / "shelf-state"
    path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
    printed = run("sh", "-ec", block("sh"), cwd=sample, PATH=path, **offline)
    return Followed(environment, sample, printed)


def test_its_readme_installs_it_and_runs_its_tests(followed: Followed) -> None:
    assert re.search(r"\d{2} passed", followed.printed), followed.printed
    assert "skipped" not in followed.printed


def test_its_readme_counts(followed: Followed) -> None:
    (told,) = re.findall(r"# (\[.+\])", block("python"))
    assert followed.python(block("python"), cwd=followed.folder) == f"{told}\n"


def test_a_topology_takes_its_url(followed: Followed, tmp_path: Path) -> None:
    (tmp_path / "shelf").mkdir()
    printed = followed.python(TOPOLOGY, "shelf:shelf", tmp_path / "checkpoint", cwd=tmp_path)
    module, counted, *explained = printed.splitlines()
    assert Path(module).is_relative_to(followed.environment)
    assert counted == "[[2]]"
    assert any("MapStateFactory over Shelf, opaque map" in line for line in explained)
    assert followed.python(QUERY, "shelf:shelf", cwd=tmp_path).strip() == "[2, 1]"


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
