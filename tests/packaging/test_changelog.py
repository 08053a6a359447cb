"""CHANGELOG.md tells of the package's version, and a release cuts its notes out of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import trident
from tests.packaging.conftest import ROOT

HEADINGS = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
CHANGELOG = """\
# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-28

Better
than before.

### Upgrading

- Write this,
  and not that:

```python
if new:
  use(it)
```

| old | new |
|---|---|
| a | b |

## [1.1.0] - 2026-11-21

- Older.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What the notes of version 1.2.0 are made of."""
    (tmp_path / "trident").mkdir()
    (tmp_path / "trident" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text('[project.urls]\nRepository = "https://one.example"\n')
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    return tmp_path


def notes(project: Path, tag: str) -> subprocess.CompletedProcess[str]:
    command = ["setup/notes", tag]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60)


def test_the_changelog_begins_with_the_version() -> None:
    assert HEADINGS[0] == "[Unreleased]"
    assert re.fullmatch(rf"\[{re.escape(trident.__version__)}\] - \d{{4}}-\d\d-\d\d", HEADINGS[1])


def test_the_version_is_in_one_place() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in described["project"]
    assert described["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "trident.__version__"}


def test_the_notes_are_the_versions_section_with_each_paragraph_in_a_line(project: Path) -> None:
    told = notes(project, "v1.2.0")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[:3] == ["Better than before.", "", "### Upgrading"]
    assert lines[4] == "- Write this, and not that:"
    assert lines[6:10] == ["```python", "if new:", "  use(it)", "```"]
    assert lines[-1] == "| a | b |"


def test_the_notes_of_this_version_are_what_the_changelog_has(project: Path) -> None:
    shutil.copy(ROOT / "CHANGELOG.md", project)
    shutil.copy(ROOT / "trident" / "__init__.py", project / "trident")
    told = notes(project, f"v{trident.__version__}")
    assert told.returncode == 0, told.stderr
    assert "### Upgrading" in told.stdout
    assert "## [" not in told.stdout


@pytest.mark.parametrize("tag", ["", "1.2.0", "v1.2", "v1.2.1", "v1.2.0 ", "v$(touch made)", "v.*"])
def test_a_tag_of_another_version_is_refused(project: Path, tag: str) -> None:
    told = notes(project, tag)
    assert told.returncode == 1
    assert f"the tag is {tag}, and trident.__version__ is 1.2.0. Tag v1.2.0." in told.stderr
    assert told.stdout == ""
    assert not (project / "made").exists()


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("CHANGELOG.md", "## [1.2.0] - 2026-11-28", "## [1.2.0]", "no section '## [1.2.0] - "),
        ("CHANGELOG.md", "## [1.2.0]", "## [1.2.1]", "no section '## [1.2.0] - "),
        ("CHANGELOG.md", "## [1.2.0]", "## [1.2.0] - 2026-11-28\n\n## [0]", "or nothing in it"),
        ("pyproject.toml", "[project.urls]", "[project]", "has no [project.urls]"),
    ],
)
def test_what_is_missing_is_said(
    project: Path, name: str, old: str, new: str, problem: str
) -> None:
    file = project / name
    file.write_text(file.read_text().replace(old, new))
    told = notes(project, "v1.2.0")
    assert told.returncode == 1
    assert problem in told.stderr
    assert told.stdout == ""
