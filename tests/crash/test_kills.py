"""The driver of two batch groups is killed at every named point, and counts stay exact.

Of a topology with one group `tests/chaos` says so much more often.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

from tests.crash.program import committed, counted_once, run, sentences
from trident.batch.watchpoints import POINTS


def test_every_sentence_of_both_groups_counts_once_whenever_the_driver_is_killed(
    tmp_path: Path,
) -> None:
    done = 0
    for point in random.Random(5).sample(POINTS, len(POINTS)):
        assert run(tmp_path, point, 2) == -signal.SIGKILL
        # Readers see some committed batch, whole, and never one before what they saw.
        seen = committed(tmp_path, "shifting")
        assert seen == sentences(seen.total // 5)
        assert seen.total // 5 >= done
        done = seen.total // 5
    assert done > 0
    assert run(tmp_path) == 0
    assert counted_once(tmp_path)
