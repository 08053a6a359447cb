"""What type checkers see of the package in programs of its users, under mypy's strictest rules."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT

pytestmark = pytest.mark.slow

PROGRAM = ROOT / "tests" / "packaging" / "typed_program.py"

WRONG = """\
import trident

trident.Topologie
trident.spark.local_sesion()
trident.backends.sqlit
with trident.TridentTopology().start() as run:
    run.drpc.execute("words")
trident.backends.state_from_url("memory:").makeState().multiPutt([], [])
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def mypy(cache: Path, *files: Path) -> str:
    """What mypy says of somebody's files; of the package it only takes the types."""
    options = ("--strict", "--config-file=", "--follow-imports=silent", f"--cache-dir={cache}")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, files)],
        cwd=cache,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    return done.stdout + done.stderr


def programs() -> Iterator[str]:
    """The blocks of the quickstart, which has the README's, and the chapters of the guide."""
    blocks = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    yield from blocks.findall((ROOT / "docs" / "quickstart.md").read_text())
    for chapter in (ROOT / "docs" / "guide.md").read_text().split("\n## ")[1:]:
        yield "\n\n".join(blocks.findall(chapter))


def test_the_readme_the_guide_and_a_typed_program_pass(cache: Path, tmp_path: Path) -> None:
    files = [PROGRAM]
    for number, code in enumerate(programs()):
        files.append(tmp_path / f"program_{number}.py")
        files[-1].write_text(code)
    assert len(files) > 20
    assert mypy(cache, *files) == f"Success: no issues found in {len(files)} source files\n"


def test_what_is_mistyped_is_an_error(cache: Path, tmp_path: Path) -> None:
    program = tmp_path / "wrong.py"
    program.write_text(WRONG)
    said = mypy(cache, program)
    lines = {int(line) for line in re.findall(r"wrong.py:(\d+): error", said)}
    assert lines == {3, 4, 5, 7, 8}, said


def test_the_typed_program_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "sqlite:counts.db", "local"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "[[2,33]] 2\n[2, 1]\n", done.stderr
