"""The driver is killed at every named point, and anywhere, and counts stay exact."""

from __future__ import annotations

import random
import signal
from pathlib import Path

from tests.crash.program import committed, counted_once, run, sentences
from trident.batch.watchpoints import POINTS

_EVERY_POINT = [(point, number) for number in (0, 2) for point in POINTS]
_ANYWHERE = [("clock", 0.02 * number) for number in range(1, 16)]


def test_every_sentence_counts_once_whenever_the_driver_is_killed(tmp_path: Path) -> None:
    rounds = _EVERY_POINT + _ANYWHERE
    assert len(rounds) >= 30
    random.Random(5).shuffle(rounds)
    done = killed = 0
    for how, number in rounds:
        ended = run(tmp_path, how, number)
        # Only a fast machine comes to the end before its alarm.
        assert ended in ((-signal.SIGALRM, 0) if how == "clock" else (-signal.SIGKILL,))
        killed += ended != 0
        # Readers see some committed batch, whole, and never one before what they saw.
        seen = committed(tmp_path, "shifting")
        assert seen == sentences(seen.total // 5)
        assert seen.total // 5 >= done
        done = seen.total // 5
    assert done > 0
    assert killed >= 30
    assert run(tmp_path) == 0
    assert counted_once(tmp_path)
