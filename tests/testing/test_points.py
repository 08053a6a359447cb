"""What users test with does what it says; kill_at has its own tests."""

from __future__ import annotations

import pytest

from tests.batch.counting import CountingEngine, Words, counts, memory_state, open_runner, run_all
from trident.log.log import MemoryLog
from trident.testing import fail_at, hold_at, kill_at


@pytest.mark.parametrize("control", [kill_at, hold_at, fail_at])
def test_a_point_that_is_none_is_refused_with_the_nearest(control: object) -> None:
    with pytest.raises(ValueError, match="Did you mean 'before commit'"), control("befor commit"):  # type: ignore[operator]
        pass


def test_what_is_committed_cannot_be_made_to_fail() -> None:
    with pytest.raises(ValueError, match="can't fail any more"), fail_at("after commit"):
        pass


def test_a_held_batch_waits_for_its_release() -> None:
    state = memory_state()
    runner = open_runner(MemoryLog("log"), state)

    def look() -> None:
        hold.wait_reached()
        seen.append(counts(state, "a"))
        hold.release()

    seen: list[list[int | None]] = []
    with hold_at("before announce", txid=2) as hold:
        words = [Words(CountingEngine(state), "a") for _ in range(3)]
        run_all([look, lambda: [runner.run(work) for work in words]])
    assert seen == [[1]]
    assert counts(state, "a") == [3]


def test_a_hold_that_nobody_reaches_says_so() -> None:
    with hold_at("before commit") as hold, pytest.raises(TimeoutError):
        hold.wait_reached(0)
