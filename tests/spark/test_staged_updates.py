"""What a staged batch holds of each state, also of those that it does not update."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from trident import Count, FixedBatchSpout, MemoryMapState, TridentTopology
from trident.batch.computed import Computed, DeferredUpdate
from trident.batch.outcome import Outcome
from trident.job.compile import Spark, compile_job
from trident.job.job import Job
from trident.spark.staged_updates import pack_updates, unpack_updates
from trident.tuples.block import Block


def job(*states: str) -> Job:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout("word string", 1)).groupBy("word")
    for name in states:
        words.persistentAggregate(MemoryMapState.Factory(), Count(), "count", name=name)
    [only] = topology.plan().groups
    return compile_job(only, Spark(2))


@pytest.mark.parametrize("updated", [[], ["a"], ["b"], ["a", "b"]])
def test_a_batch_without_tuples_for_a_state_is_read_again(updated: list[str]) -> None:
    both = job("a", "b")
    columns = {"word": pa.array(["dog"]), "count": pa.array([2])}
    updates = tuple(
        DeferredUpdate(update, Block({}, 1, columns))
        for update in both.updates
        if update.state.name in updated
    )
    schemas: Any = None  # asked only for what Python steps made
    found = unpack_updates(both, pack_updates(both, Computed(updates, Outcome()), schemas))
    assert [each.update.state.name for each in found.updates] == updated
    assert all(list(each.block.tuples(["word", "count"])) == [("dog", 2)] for each in found.updates)
