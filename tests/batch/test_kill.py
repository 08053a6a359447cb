"""A run killed with -9 at each named point, and started again, counts every word once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.batch.killed_run import EXPECTED, run
from trident.batch.watchpoints import POINTS

ROOT = Path(__file__).parents[2]


def killed(folder: Path, point: str, txid: int) -> int:
    command = [sys.executable, "-m", "tests.batch.killed_run", str(folder), point, str(txid)]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_counts_are_exact_after_a_kill(tmp_path: Path, point: str) -> None:
    assert killed(tmp_path, point, txid=3) == -signal.SIGKILL
    assert run(tmp_path) == EXPECTED


@pytest.mark.slow
def test_counts_are_exact_after_a_kill_at_every_batch(tmp_path: Path) -> None:
    for txid, point in enumerate(POINTS[2:8], 1):
        assert killed(tmp_path, point, txid) == -signal.SIGKILL
    assert run(tmp_path) == EXPECTED
    assert len(list((tmp_path / "checkpoint" / "words" / "log").iterdir())) <= 10
