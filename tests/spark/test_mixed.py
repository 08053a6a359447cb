"""With a session, each batch runs in the driver's process or on Spark, by what its size took."""

from __future__ import annotations

import random
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import pytest
from pyspark import TaskContext

from tests.topologies.conftest import Engine, contents, feed
from trident import (
    Count,
    FeederBatchSpout,
    FilterNull,
    MapGet,
    MemoryMapState,
    Split,
    StateUpdater,
    Sum,
    TridentTopology,
)
from trident.backends import sqlite
from trident.errors import PlanError
from trident.spark import group_engine
from trident.spark.local_frame import local_frame
from trident.spark.mixed_engine import Costs
from trident.states.state import State, StateFactory

pytestmark = pytest.mark.spark


def drawn(monkeypatch: pytest.MonkeyPatch, *engines: str) -> None:
    """Have these engines run batches, one after the other, and then this process."""
    draws = list(engines)
    monkeypatch.setattr(Costs, "choose", lambda self, tuples: draws.pop(0) if draws else "local")


class Counting:
    """Counts words, reads the counts as of the batch before, and sums the new ones."""

    def __init__(self, folder: Path, cache_size: int = 0) -> None:
        self.spout = FeederBatchSpout("line string")
        self.topology = TridentTopology()
        self.counts = sqlite.opaque(folder / "counts.db", cache_size=cache_size).named("counts")
        self.sums = MemoryMapState.Factory(str(folder))
        words = self.topology.newStream("lines", self.spout).each("line", Split(), "word")
        counted = words.groupBy("word").persistentAggregate(
            self.counts, Count(), "count", name="counts"
        )
        before = words.stateQuery(counted, "word", MapGet(), "known")
        before.each("known", FilterNull()).groupBy("word").persistentAggregate(
            self.sums, "known", Sum(), "sum", name="sums"
        )


LINES = ["a b a", "a", "b c", "a c c", "\u00fc \u00fc", "a"]
COUNTS = {("a",): 5, ("b",): 2, ("c",): 3, ("\u00fc",): 2}
KNOWN = {("a",): 2 + 3 + 4, ("b",): 1, ("c",): 1 + 1}


def slow(line: str) -> list[str]:
    """Take a while, of which no core knows, and tell where."""
    sleep(0.002)
    task = TaskContext.get()
    return ["here" if task is None else f"partition {task.partitionId()}"]


def test_a_slow_function_runs_in_partitions_once_it_is_known_and_small_batches_here(
    spark: Any, tmp_path: Path
) -> None:
    spout, topology = FeederBatchSpout("line string"), TridentTopology()
    counts, engines = MemoryMapState.Factory(), []
    lines = topology.newStream("lines", spout).each("line", slow, "where string")
    lines.groupBy("where").persistentAggregate(counts, Count(), "count", name="counts")
    with Engine(spark, tmp_path).start(topology, engine="auto") as run:
        for size in (1, 300, 300, 300, 1):
            feed(run, spout, [["a"]] * size)
            assert run.lastProgress is not None
            engines.append(run.lastProgress.engine)
        counted = contents(counts)
    assert engines == ["local", "local", "local", "spark", "local"]
    assert counted.pop(("here",)) == 602
    assert len(counted) > 1
    assert sum(counted.values()) == 300


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cache_size", [0, 100])
def test_the_states_are_the_same_whatever_engine_runs_which_batch(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, cache_size: int
) -> None:
    draw = random.Random(seed)
    drawn(monkeypatch, *(draw.choice(["local", "spark"]) for _ in LINES))
    counting = Counting(tmp_path, cache_size)
    with Engine(spark, tmp_path).start(counting.topology, engine="auto") as run:
        feed(run, counting.spout, *([[line]] for line in LINES))
        assert contents(counting.sums) == KNOWN
    assert contents(counting.counts) == COUNTS


def test_spark_is_forced_by_one_argument_and_its_time_has_the_way_of_tuples_to_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = [0.0]

    def moved(*given: Any) -> Any:
        way[0] = 1_000.0
        return local_frame(*given)

    monkeypatch.setattr(group_engine, "local_frame", moved)
    monkeypatch.setattr(group_engine, "perf_counter", lambda: perf_counter() + way[0])
    counting = Counting(tmp_path)
    with Engine(spark, tmp_path).start(counting.topology, engine="spark") as run:
        feed(run, counting.spout, [["a"]])
        assert run.lastProgress is not None
        assert run.lastProgress.engine == "spark"
        assert run.lastProgress.seconds["spark"] > 1_000


class Own(State):
    """A state that is no map."""

    def beginCommit(self, txid: Any) -> None:
        return None

    def commit(self, txid: Any) -> None:
        return None


class Nothing(StateUpdater[Own]):
    def updateState(self, state: Own, tuples: Any, collector: Any) -> None:
        return None


class OwnFactory(StateFactory):
    def makeState(self, *arguments: Any) -> Own:
        return Own()


@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_a_state_of_the_users_own_on_the_executors_is_updated_there(
    spark: Any, tmp_path: Path
) -> None:
    spout, topology = FeederBatchSpout("word string"), TridentTopology()
    topology.newStream("words", spout).partitionPersist(OwnFactory(), "word", Nothing())
    assert 'every batch runs on Spark: state "state" is no map' in topology.explain()
    with Engine(spark, tmp_path).start(topology, engine="auto") as run:
        feed(run, spout, [["a"]])
        assert run.lastProgress is not None
        assert run.lastProgress.engine == "spark"


def test_an_engine_that_there_is_not_is_an_error(spark: Any, tmp_path: Path) -> None:
    counting = Counting(tmp_path)
    with pytest.raises(PlanError, match="unknown engine 'sparc'; there are: auto, spark"):
        counting.topology.start(spark, tmp_path / "checkpoint", engine="sparc")  # type: ignore[arg-type]


def test_spark_without_a_session_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match='engine="spark" was given without a session'):
        Counting(tmp_path).topology.start(checkpoint=tmp_path / "checkpoint", engine="spark")
