"""Windows in a run that is killed with -9 at each named point are what they are without a kill."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests import forks
from tests.batch import killed_windows
from tests.batch.killed_windows import WINDOWS, run
from trident.batch.watchpoints import POINTS


def killed(folder: Path, point: str, txid: int) -> int:
    return forks.run(killed_windows, folder, point, txid).code


@pytest.mark.slow
def test_windows_are_exact_after_a_kill_at_any_point(tmp_path: Path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.mkdir()
    torn.mkdir()
    expected = run(whole)
    assert all(sum(map(len, expected[name])) > 5 for name in WINDOWS)
    for place, point in enumerate(POINTS):
        txid = 1 + place * 8 // len(POINTS)
        assert killed(torn, point, txid) == -signal.SIGKILL
    assert run(torn) == expected


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after write", "before commit", "after commit"])
def test_windows_are_exact_where_every_batch_is_killed(tmp_path: Path, point: str) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.mkdir()
    torn.mkdir()
    for txid in range(1, 9):
        assert killed(torn, point, txid) == -signal.SIGKILL
    assert run(torn) == run(whole)
