"""The folder of what sessions leave on disk: it goes, and nothing that is somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MAKE = "from trident.spark.scratch import scratch; print(scratch())"
FORK = """
import os, sys
from trident.spark.scratch import scratch
folder = scratch()
if not (child := os.fork()):
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert folder.is_dir() and scratch() == folder
print(folder)
"""


def run_in(folder: Path, program: str) -> Path:
    """The folder that a program was given, with another one for temporary files."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, timeout=60, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    return Path(ended.stdout.strip())


def test_a_folder_of_the_users_with_a_name_like_ours_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "trident-scratch-demo" / "counts.db"
    data.parent.mkdir()
    data.write_text("mine")
    run_in(tmp_path, MAKE)
    assert data.read_text() == "mine"


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    left = run_in(tmp_path, f"{MAKE}; import os; print(end='', flush=True); os._exit(0)")
    assert left.is_dir()
    assert run_in(tmp_path, MAKE) != left
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", ["folder", "link", "closed", "file"])
def test_what_can_not_be_looked_into_is_passed_over(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "trident-scratch-odd"
    if odd == "file":
        path.write_text("mine")
    else:
        path.mkdir()
    marker = path / ".trident-scratch"
    if odd == "folder":
        marker.mkdir()
    if odd == "link":
        marker.symlink_to(marker)
    if odd == "closed":
        path.chmod(0)
    run_in(tmp_path, MAKE)
    assert list(tmp_path.iterdir()) == [path]
    path.chmod(0o700)


def test_a_forked_child_that_ends_leaves_its_parents_folder(tmp_path: Path) -> None:
    assert not run_in(tmp_path, FORK).exists()
