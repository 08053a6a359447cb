"""Two drivers of one topology, and checkpoints that don't belong to the state."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.crash import counting
from tests.crash.program import committed, counted_once, run, sentences
from trident.api.run import Run
from trident.batch.adopt import Adopt
from trident.batch.group_run import GroupRun
from trident.errors import OtherLogError, StaleBatchError
from trident.log.errors import CheckpointInUseError, LogConflictError, LogError, TakenOverError
from trident.testing import hold_at


@pytest.mark.parametrize(
    "point",
    ["before begin", "before write", "after write", "before commit", "after commit"],
)
def test_a_driver_that_was_overtaken_changes_nothing(tmp_path: Path, point: str) -> None:
    with hold_at(point, txid=3) as hold:
        late = counting.topology(tmp_path).start(None, tmp_path / "run")
        hold.wait_reached()
        # As when the holder is on a machine that is out of reach: its lock is gone.
        (tmp_path / "run" / ".lock").unlink()
        assert run(tmp_path) == 0
        assert counted_once(tmp_path)
    overtaken = (StaleBatchError, TakenOverError, LogConflictError)
    for group in late.groups.values():
        with pytest.raises(overtaken):
            group.awaitTermination(30)
    late.stop()
    assert counted_once(tmp_path)


def _has_two_batches(group: GroupRun) -> bool:
    return group.lastProgress is not None and group.lastProgress.txid == 2


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Run]:
    """A run whose groups are both in the middle of their third batch."""
    with (
        hold_at("before commit", txid=3) as hold,
        counting.topology(tmp_path).start(None, tmp_path / "run", trigger="available") as running,
    ):
        hold.wait_reached()
        deadline = monotonic() + 30
        while not all(map(_has_two_batches, running.groups.values())):
            assert monotonic() < deadline
            running.awaitTermination(0.01)
        yield running
        hold.release()


def test_of_two_runs_at_once_the_second_stops_and_names_the_first(
    tmp_path: Path, held: Run
) -> None:
    seen = committed(tmp_path, "shifting")
    with pytest.raises(CheckpointInUseError, match=str(os.getpid())):
        counting.topology(tmp_path).start(None, tmp_path / "run")
    assert committed(tmp_path, "shifting") == seen
    assert seen == sentences(seen.total // 5)


def test_the_first_of_two_runs_goes_on(tmp_path: Path, held: Run) -> None:
    with pytest.raises(CheckpointInUseError):
        counting.topology(tmp_path).start(None, tmp_path / "run")
    assert held.isActive


def test_a_new_checkpoint_on_old_state_is_an_error_and_adopting_continues(tmp_path: Path) -> None:
    assert run(tmp_path, "before commit", 20) != 0
    before = committed(tmp_path, "shifting")
    with pytest.raises(OtherLogError, match=re.escape("adopt=")):
        counting.topology(tmp_path).start(None, tmp_path / "new")
    assert committed(tmp_path, "shifting") == before

    made = counting.topology(tmp_path)
    old, new = tmp_path / "run", tmp_path / "new"
    with made.start(None, new, trigger="available", adopt=Adopt.from_checkpoint(old)) as adopting:
        assert adopting.awaitTermination(60)
    assert counted_once(tmp_path)
    with pytest.raises(LogError, match=re.escape(str(new))):
        made.start(None, old)
