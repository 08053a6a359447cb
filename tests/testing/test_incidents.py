"""What happens to the batches of a FixedBatchSpout, written among its tuples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trident import Count, FixedBatchSpout, TridentTopology
from trident.backends import sqlite
from trident.testing import Crash, Fail, Replay, SimulatedCrash, Tester


def counting(folder: Path, *items: Any) -> TridentTopology:
    topology = TridentTopology()
    stream = topology.newStream("words", FixedBatchSpout("word string", 2, *items))
    counts = sqlite.opaque(folder / "counts.db")
    stream.groupBy("word").persistentAggregate(counts, Count(), "count")
    return topology


def run(topology: TridentTopology, folder: Path) -> list[int]:
    """Run all there is; return how many attempts each batch took."""
    with topology.start(checkpoint=folder / "log", trigger="available") as started:
        started.awaitTermination(30)
        return [progress.attempts for progress in started.groups["words"].recentProgress]


def found(folder: Path) -> dict[Any, int]:
    state = sqlite.opaque(folder / "counts.db").named("count").makeState()
    try:
        return dict(state.getTuples())
    finally:
        state.close()


def test_a_recovery_reads_like_a_story(tmp_path: Path) -> None:
    topology = counting(
        tmp_path,
        *[("dog",), ("cat",), Fail()],
        *[("dog",), Crash(), ("cow",)],
        *[("cat",), Replay(), Replay(other=[("hen",)])],
    )
    with pytest.raises(SimulatedCrash):
        run(topology, tmp_path)
    assert run(topology, tmp_path) == [1, 3]
    assert found(tmp_path) == {"dog": 2, "cat": 1, "cow": 1, "hen": 1}


def test_a_spout_whose_replay_has_other_tuples_is_opaque(tmp_path: Path) -> None:
    assert FixedBatchSpout("word", 1, ("dog",), Replay()).kind == "transactional"
    assert FixedBatchSpout("word", 1, ("dog",), Replay(other=[])).kind == "opaque"


def test_a_tester_goes_on_after_a_crash(tmp_path: Path) -> None:
    tester = Tester(counting(tmp_path, ("dog",), Crash(), ("cat",), ("dog",), Fail()))
    tester.run()
    assert tester.state("count") == {"dog": 2, "cat": 1}
