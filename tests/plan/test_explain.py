"""Explanations are pinned, so that a change of any plan is seen.

After a change that is meant, write them anew: ``python -m tests.plan.test_explain``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plan.declared import DECLARED
from trident import Count, FixedBatchSpout
from trident.api.topology import TridentTopology

SNAPSHOTS = Path(__file__).parent / "snapshots"


def shown(declare: Callable[[], TridentTopology]) -> dict[Path, str]:
    topology, name = declare(), declare.__name__
    return {
        SNAPSHOTS / f"{name}.txt": topology.explain() + "\n",
        SNAPSHOTS / f"{name}.mmd": topology.to_mermaid() + "\n",
    }


@pytest.mark.parametrize("declare", DECLARED)
def test_the_explanation_is_the_pinned_one(declare: Callable[[], TridentTopology]) -> None:
    for path, text in shown(declare).items():
        assert text == path.read_text(), path.name


def test_an_explanation_is_the_same_every_time() -> None:
    assert len({declare().explain() for declare in DECLARED for _ in range(5)}) == len(DECLARED)


def test_a_cache_that_is_left_out_is_explained() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ("dog",)))
    state = "redis://one/0?cache_size=9"
    words.groupBy("word").persistentAggregate(state, Count(), "count")
    assert "no cache, though cache_size is given: several processes write" in topology.explain()


def test_a_state_is_explained_with_its_place_and_its_calls() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1, ("dog",)))
    state = "redis://me:s3cret@one/3"
    words.groupBy("word").persistentAggregate(state, Count(), "count")
    told = topology.explain()
    assert "kept in redis at one:6379, database 3, prefix count" in told
    asked = "3 for each task and 6 for the batch, on the driver"
    assert f"round trips to its store a batch: {asked}" in told
    assert "s3cret" not in told


def test_no_name_ends_the_line_of_a_flowchart() -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 1, ("dog",))
    topology.newStream('a"\nclick n1 href "`x`', spout)
    (line,) = [line for line in topology.to_mermaid().splitlines() if "n1[" in line]
    assert line.count('"') == 2
    assert "`" not in line


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    for declare in DECLARED:
        for path, text in shown(declare).items():
            path.write_text(text)
