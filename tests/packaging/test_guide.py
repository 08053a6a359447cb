"""What the guides tell to do: their code runs, and their files are there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT


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
