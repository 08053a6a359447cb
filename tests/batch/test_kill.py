"""A run killed with -9 at each named point, and started again, counts every word once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import forks
from tests.batch import killed_run
from tests.batch.killed_run import EXPECTED, run
from trident.batch.watchpoints import POINTS


def killed(folder: Path, point: str, txid: int) -> int:
    return forks.run(killed_run, folder, point, txid).code


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
