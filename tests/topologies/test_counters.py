"""What operations count is in the progress of their batch, on both engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.topologies.conftest import Engine, feed
from trident.api.run import Run
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.operations.interfaces import (
    Filter,
    StateUpdater,
    TridentCollector,
    TridentOperationContext,
)
from trident.spouts.feeder import FeederBatchSpout
from trident.tuples import TridentTuple


class Odd(Filter):
    """Keeps odd numbers, and counts them and the others."""

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self.odd = context.registerCounter("odd")
        self.even = context.registerCounter("even")

    def isKeep(self, tuple: TridentTuple) -> bool:
        number = tuple.getLong(0) or 0
        (self.odd if number % 2 else self.even).inc()
        return number % 2 == 1


class Write(StateUpdater[Any]):
    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        self.written = context.registerCounter("written")

    def updateState(
        self, state: Any, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        self.written.inc(len(tuples))


def started(engine: Engine, spout: FeederBatchSpout) -> Run:
    topology = TridentTopology()
    stream = topology.newStream("numbers", spout).shuffle().parallelismHint(2)
    odd = stream.filter("n", Odd())
    odd.partitionPersist(MemoryMapState.Factory(), "n", Write(), name="written")
    return engine.start(topology)


def counted(run: Run) -> list[dict[str, int]]:
    [group] = run.groups.values()
    return [dict(progress.counters) for progress in group.recentProgress]


def test_each_batch_tells_what_its_operations_counted(engine: Engine) -> None:
    spout = FeederBatchSpout("n long")
    with started(engine, spout) as run:
        feed(run, spout, [(n,) for n in range(9)], [(1,), (3,)])
    assert counted(run) == [{"odd": 4, "even": 5, "written": 4}, {"odd": 2, "written": 2}]
    assert '"counters": {' in run.groups["numbers"].recentProgress[0].json
