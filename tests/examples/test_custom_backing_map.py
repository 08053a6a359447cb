"""`examples/custom_backing_map.py`: what it shows is so, and its maps pass the suite."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SUITE = """
import tempfile
from pathlib import Path

from custom_backing_map import FencedFolderMap, FolderMap
from trident.states import Ability
from trident.states.testing.suite import BackingMapConformance


class TestFolderMap(BackingMapConformance):
    def make_map(self):
        return FolderMap(Path(tempfile.mkdtemp()))


class TestFencedFolderMap(BackingMapConformance):
    abilities = frozenset({Ability.FENCED})

    def make_map(self):
        return FencedFolderMap(Path(tempfile.mkdtemp()))
"""


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (EXAMPLES, EXAMPLES.parent))),
            "TMPDIR": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("example"), str(EXAMPLES / "custom_backing_map.py"))


def test_a_batch_that_failed_halfway_and_came_back_otherwise_is_counted_once(printed: str) -> None:
    tries = re.findall(r"^  batch (\d): (.+)$", printed, re.MULTILINE)
    assert tries[1:3] == [("2", "the dog ran, the man ran"), ("2", "the man ran")]
    assert "is retried: the store broke off after 2 of 4 words" in printed
    counted, truth = re.findall(r"^  (?:counted|truth): +(the 5.+)$", printed, re.MULTILINE)
    assert counted == truth
    assert "dog 1" in truth


def test_only_the_fence_keeps_a_late_write_out(printed: str) -> None:
    found = re.findall(
        r"^  (two methods|and a fence|truth): +(the \d  cat \d  dog \d)", printed, re.MULTILINE
    )
    assert found == [
        ("two methods", "the 1  cat 1  dog 0"),
        ("and a fence", "the 2  cat 1  dog 1"),
        ("truth", "the 2  cat 1  dog 1"),
    ]


@pytest.mark.slow
def test_both_maps_pass_the_suite(tmp_path: Path) -> None:
    (tmp_path / "test_maps.py").write_text(SUITE)
    told = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_maps.py")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert int(passed[1]) > 50
    assert "failed" not in told
