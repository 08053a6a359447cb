"""What the guides tell to do: their code runs, and their files are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.conftest import ROOT

NAMES = (
    *("guide.md", "drpc.md", "state-service.md", "monitoring.md", "seeing.md"),
    *("testing.md", "windows.md", "rows.md", "changing.md"),
)
GUIDES = [ROOT / "docs" / name for name in NAMES]
FENCE = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def chapters() -> Iterator[Any]:
    """The chapters of guides that have code: where each begins and ends in its page."""
    for guide in GUIDES:
        yield from chapters_of(guide)


def chapters_of(guide: Path) -> Iterator[Any]:
    page = guide.read_text()
    heads = [*re.finditer(r"^## (.+)$", page, re.MULTILINE)]
    ends = [head.start() for head in heads[1:]] + [len(page)]
    for head, end in zip(heads, ends, strict=True):
        code = "".join(found[2] for found in FENCE.finditer(page, head.end(), end))
        if code:
            marks = [pytest.mark.spark] if "trident.spark" in code else []
            yield pytest.param(guide, head.end(), end, id=head[1], marks=marks)


@pytest.mark.parametrize(("guide", "start", "end"), [*chapters()])
def test_a_chapter_prints_what_it_shows(
    guide: Path,
    start: int,
    end: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if request.node.get_closest_marker("spark"):
        # A chapter's own first session would be one that other tests can't use.
        request.getfixturevalue("spark")
    monkeypatch.chdir(tmp_path)
    page = guide.read_text()
    program: dict[str, Any] = {"__name__": "guide"}
    printed = shown = ""
    for found in FENCE.finditer(page, start, end):
        if found[1] == "text":
            shown = found[2]
            continue
        assert printed == shown
        lines = "\n" * page.count("\n", 0, found.start(2))  # errors then name the page's lines
        output = StringIO()
        with redirect_stdout(output):
            code = compile(f"{lines}{found[2]}", str(guide), "exec", dont_inherit=True)
            exec(code, program)
        printed, shown = output.getvalue(), ""
    assert printed == shown


@pytest.mark.slow
def test_the_store_of_the_guide_passes_the_suite(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "states.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "test_guide.py").write_text("\n\n".join(blocks))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_guide.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d{2} passed", done.stdout), done.stdout


def test_the_files_that_the_architecture_shows_are_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`(\w+/[\w/.]*)`", page)
    assert len(named) > 40
    roots = (ROOT, ROOT / "trident", ROOT / "states")
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []
