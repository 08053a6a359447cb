"""A fixed spout's batches follow from their txids."""

from __future__ import annotations

from typing import Any

import pytest

from trident.errors import EmittedValueError
from trident.operations.emitted import ListCollector
from trident.spouts.fixed import FixedBatchSpout


def batch(spout: FixedBatchSpout, txid: int) -> list[Any]:
    collector = ListCollector("spout", 1)
    spout.emitBatch(txid, collector)
    return [word for (word,) in collector.rows]


def test_batches_are_full_but_the_last() -> None:
    spout = FixedBatchSpout("word", 2, ["a"], ["b"], ("c",))
    assert [batch(spout, txid) for txid in (1, 2, 3)] == [["a", "b"], ["c"], []]
    assert [spout.isReady(txid) for txid in (1, 2, 3)] == [True, True, False]


def test_a_replay_is_the_same_also_in_another_process() -> None:
    spouts = [FixedBatchSpout("word", 2, ["a"], ["b"], ["c"]) for _ in range(2)]
    assert batch(spouts[0], 2) == batch(spouts[0], 2) == batch(spouts[1], 2)


def test_a_cycle_begins_again_with_a_whole_batch() -> None:
    spout = FixedBatchSpout("word", 2, ["a"], ["b"], ["c"], cycle=True)
    assert [batch(spout, txid) for txid in (1, 2, 3, 4)] == [["a", "b"], ["c"]] * 2
    assert spout.isReady(1000)
    spout.setCycle(False)
    assert not spout.isReady(1000)


@pytest.mark.parametrize("cycle", [False, True])
def test_without_tuples_there_is_no_batch(cycle: bool) -> None:
    spout = FixedBatchSpout("word", 2, cycle=cycle)
    assert not spout.isReady(1)
    assert batch(spout, 1) == []


@pytest.mark.parametrize("values", [["a", "b"], [], "a"])
def test_a_tuple_that_does_not_fit_its_fields_is_refused(values: Any) -> None:
    with pytest.raises(EmittedValueError):
        FixedBatchSpout("word", 2, ["a"], values)


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_holds_at_least_one(size: int) -> None:
    with pytest.raises(ValueError, match=r"found tuple \('a',\)\. Write FixedBatchSpout"):
        FixedBatchSpout("word", ("a",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="maxBatchSize"):
        FixedBatchSpout("word", size, ["a"])
