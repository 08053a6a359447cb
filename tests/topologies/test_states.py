"""States that batches update: new values, several states, custom updaters, retries, errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.topologies.conftest import Engine, contents, feed
from tests.topologies.test_aggregates import Longest
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import FailedException, OperationError, StateUnavailableError
from trident.operations.builtin import Count, MapGet, SnapshotGet, Split, Sum
from trident.operations.interfaces import (
    CombinerAggregator,
    Filter,
    ReducerAggregator,
    StateUpdater,
    TridentCollector,
)
from trident.spouts.feeder import FeederBatchSpout
from trident.spouts.fixed import FixedBatchSpout
from trident.states.map_state import MapState
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType
from trident.tuples import TridentTuple

KINDS = [StateType.OPAQUE, StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL]


def memory(kind: StateType = StateType.OPAQUE) -> MapStateFactory:
    return MapStateFactory(MemoryMapState.Factory().store, kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_new_values_are_those_after_each_batch(engine: Engine, kind: StateType) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).groupBy("word")
    counts = stream.persistentAggregate(memory(kind), Count(), "count")
    captured = engine.capture(counts.newValuesStream())
    engine.play(topology, spout, [("the",), ("man",), ("the",)], [("the",), ("dog",)])
    assert captured.batches == [[("man", 1), ("the", 2)], [("dog", 1), ("the", 3)]]


def test_no_seconds_between_batches_are_as_fast_as_possible(engine: Engine) -> None:
    topology = TridentTopology()
    counts = memory()
    stream = topology.newStream("words", FixedBatchSpout("word string", 1, ("a",), ("b",), ("a",)))
    stream.groupBy("word").persistentAggregate(counts, Count(), "count")
    with engine.start(topology, trigger=0) as run:
        run.processAllAvailable()
    assert contents(counts) == {("a",): 2, ("b",): 1}


def test_new_values_can_be_counted_in_turn(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout).groupBy("word")
    counts = stream.persistentAggregate(memory(), Count(), "count")
    lengths = memory()
    (
        counts.newValuesStream()
        .filter("count", lambda count: count == 2)
        .map(lambda word, count: len(word), "length long")
        .groupBy("length")
        .persistentAggregate(lengths, Count(), "reached")
    )
    engine.play(topology, spout, [("a",), ("a",), ("bcd",)], [("bcd",), ("xyz",), ("xyz",)])
    assert contents(lengths) == {(1,): 1, (3,): 2}


def test_two_states_of_one_stream_see_the_same_batches(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("sentence string")
    words, total = memory(), memory()
    stream = topology.newStream("sentences", spout).each("sentence", Split(), "word")
    by_word = stream.groupBy("word").persistentAggregate(words, Count(), "count")
    of_all = stream.persistentAggregate(total, Count(), "total")
    (
        topology.newDRPCStream("share")
        .stateQuery(by_word, "args", MapGet(), "count")
        .stateQuery(of_all, SnapshotGet(), "total")
        .project("count, total")
    )
    with engine.start(topology) as run:
        feed(run, spout, [("a b a",), ("c",)], [("a",)])
        assert run.drpc.execute("share", "a") == "[[3,5]]"
    assert contents(words) == {("a",): 3, ("b",): 1, ("c",): 1}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_sums_of_nulls(engine: Engine, kind: StateType) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, n long, x double")
    longs, doubles = memory(kind), memory(kind)
    stream = topology.newStream("tuples", spout)
    stream.groupBy("k").persistentAggregate(longs, "n", Sum(), "longs")
    stream.groupBy("k").persistentAggregate(doubles, "x", Sum(), "doubles")
    engine.play(
        topology,
        spout,
        [("a", 1, 0.5), ("a", None, None), (None, None, 2.0), ("b", None, 1.0)],
        [("a", -5, 0.25), ("b", 7, None), (None, None, 1.5)],
    )
    assert contents(longs) == {("a",): -4, ("b",): 7, (None,): 0}
    assert contents(doubles) == {("a",): 0.75, ("b",): 1.0, (None,): 3.5}


def test_a_reducer_keeps_a_value_for_each_key(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, word string")
    kept = memory()
    stream = topology.newStream("tuples", spout).groupBy("k")
    longest = stream.persistentAggregate(kept, "word", Longest(), "longest")
    captured = engine.capture(longest.newValuesStream())
    engine.play(topology, spout, [("x", "the"), ("x", "cows"), ("y", "a")], [("x", "moon")])
    assert contents(kept) == {("x",): "cows", ("y",): "a"}
    assert captured.batches == [[("x", "cows"), ("y", "a")], [("x", "cows")]]


def test_a_reducer_keeps_one_value_for_all(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("tuples", spout)
    longest = stream.persistentAggregate(memory(), "word", Longest(), "longest")
    topology.newDRPCStream("longest").stateQuery(longest, SnapshotGet(), "longest").project(
        "longest"
    )
    with engine.start(topology) as run:
        feed(run, spout, [("the",), ("cows",)], [("a",)], [("jumped",)])
        assert run.drpc.execute("longest", "") == '[["jumped"]]'


class KeepLast(StateUpdater[MapState]):
    """Puts the last value of each key; null removes it. Emits what it put."""

    output_types = (str, int)

    def updateState(
        self, state: MapState, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        last = {t["k"]: t["n"] for t in tuples}
        state.multiPut([(key,) for key in last], list(last.values()))
        for key, value in last.items():
            collector.emit((key, value))


def test_a_custom_updater_writes_a_map(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, n long")
    kept = memory()
    stream = topology.newStream("tuples", spout).partitionBy("k").parallelismHint(2)
    state = stream.partitionPersist(kept, "k, n", KeepLast(), "key string, put long")
    captured = engine.capture(state.newValuesStream())
    engine.play(topology, spout, [("a", 1), ("b", 2), ("c", 3)], [("b", None), ("c", 4)])
    assert contents(kept) == {("a",): 1, ("c",): 4}
    assert captured.batches == [[("a", 1), ("b", 2), ("c", 3)], [("b", None), ("c", 4)]]


class FailsFirst(Filter):
    """Fails as often as asked for, wherever it runs."""

    def __init__(self, folder: Path, times: int) -> None:
        self._folder = folder
        self._times = times

    def isKeep(self, tuple: TridentTuple) -> bool:
        for number in range(self._times):
            try:
                (self._folder / f"failed-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            raise FailedException(f"failure {number}")
        return True


@pytest.mark.slow
@pytest.mark.parametrize("hint", [1, 3])
def test_a_failed_attempt_is_retried_and_counts_once(engine: Engine, hint: int) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    counts = memory()
    stream = topology.newStream("words", spout).each(FailsFirst(engine.folder, 2))
    state = stream.groupBy("word").persistentAggregate(counts, Count(), "count")
    state.parallelismHint(hint)
    # Fails after the first update where the engine writes as it goes.
    lengths = memory()
    (
        state.newValuesStream()
        .filter("word", FailsFirst(engine.folder / "late", 1))
        .groupBy("count")
        .persistentAggregate(lengths, Count(), "words")
    )
    (engine.folder / "late").mkdir()
    with engine.start(topology, retries=6) as run:
        feed(run, spout, [("a",), ("b",), ("a",)], [("a",)])
        assert run.lastProgress is not None
        assert run.lastProgress.txid == 2
    assert contents(counts) == {("a",): 3, ("b",): 1}
    assert contents(lengths) == {(1,): 1, (2,): 1, (3,): 1}


def test_a_batch_that_always_fails_stops_the_run_and_is_kept(engine: Engine) -> None:
    words = FixedBatchSpout("word string", 1, ("a",), ("b",))
    counts = memory()

    def topology(failures: int) -> TridentTopology:
        made = TridentTopology()
        stream = made.newStream("words", words).each(FailsFirst(engine.folder, failures))
        stream.groupBy("word").persistentAggregate(counts, Count(), "count")
        return made

    with engine.start(topology(3), retries=1) as run, pytest.raises(Exception, match="failed 2"):
        run.awaitTermination(120)
    assert contents(counts) == {}
    with engine.start(topology(3), retries=1) as run:
        run.processAllAvailable()
    assert contents(counts) == {("a",): 1, ("b",): 1}


class AwayFirst(MapGet):
    """A query whose store is away at first, wherever it runs."""

    def __init__(self, folder: Path) -> None:
        self._first = folder / "asked"

    def batchRetrieve(self, state: Any, args: Any) -> Any:
        if not self._first.exists():
            self._first.touch()
            raise StateUnavailableError("here", "it is away")
        return super().batchRetrieve(state, args)


def test_a_batch_waits_for_a_state_that_it_queries(engine: Engine) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("word string")
    counts = memory()
    stream = topology.newStream("words", spout)
    state = stream.groupBy("word").persistentAggregate(counts, Count(), "count")
    known = stream.stateQuery(state, "word", AwayFirst(engine.folder), "known long")
    captured = engine.capture(known.project("word, known"))
    with engine.start(topology, retries=0) as run:
        feed(run, spout, [("a",)], [("a",)])
        attempts = [progress.attempts for progress in run.groups["words"].recentProgress]
    assert attempts == [2, 1]
    assert captured.batches[-1] == [("a", 1)]
    assert contents(counts) == {("a",): 2}


def half(n: int) -> list[float]:
    return [1 / n]


def test_a_users_exception_is_shown_first(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("n long, text string")
    counts = memory()
    stream = topology.newStream("numbers", spout)
    stream.each("n", half, "half double").groupBy("half").persistentAggregate(
        counts, Count(), "count"
    )
    with (
        engine.start(topology) as run,
        pytest.raises(OperationError) as caught,
    ):
        feed(run, spout, [(1, "x")], [(2, "y"), (0, "z" * 1000)])
    lines = str(caught.value).splitlines()
    assert len(lines) <= 15
    assert lines[0] == "ZeroDivisionError: division by zero"
    assert lines[1].endswith("in half")
    assert lines[2].strip() == "return [1 / n]"
    assert "each(n, half, half)" in lines[3]
    assert f"{Path(__file__).name}:" in lines[3]
    assert "batch 2" in lines[4]
    # Spark has dropped the field that nobody reads.
    assert lines[5].startswith("  with the tuple n=0")
    assert contents(counts) == {(1.0,): 1}


def test_a_function_that_emits_too_much_says_what_and_where(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    stream = topology.newStream("words", spout)
    engine.capture(stream.each("word", lambda word: [(word, 1)], "copy string"))
    with engine.start(topology) as run, pytest.raises(OperationError, match="2 values for 1"):
        feed(run, spout, [("a",)])


def test_a_restart_goes_on_where_the_last_run_stopped(engine: Engine) -> None:
    counts = memory()
    sentences = [("the cow",), ("jumped over",), ("the moon",)] * 3

    def topology(until: int) -> TridentTopology:
        made = TridentTopology()
        stream = made.newStream("s", FixedBatchSpout("sentence string", 2, *sentences[:until]))
        words = stream.each("sentence", Split(), "word").groupBy("word")
        words.persistentAggregate(counts, Count(), "count")
        return made

    for until in (4, 4, 9):
        with engine.start(topology(until), trigger="available") as run:
            assert run.awaitTermination(120)
        expected: Any = Counter(word for (text,) in sentences[:until] for word in text.split())
        assert contents(counts) == {(word,): count for word, count in expected.items()}


def test_new_values_of_which_no_field_is_needed_still_count(
    engine: Engine, kept: MapStateFactory
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    counts = topology.newStream("words", spout).groupBy("word")
    changed = counts.persistentAggregate(kept, Count(), "count").newValuesStream()
    captured = engine.capture(changed.aggregate(Count(), "changed"))
    engine.play(topology, spout, [("a",), ("b",), ("a",)], [("a",)], [])
    assert captured.batches == [[(2,)], [(1,)], [(0,)]]


class Weighted(CombinerAggregator[int]):
    """Adds a weight, which it has only while it is prepared, for each tuple."""

    output_types = (int,)

    def prepare(self, conf: Any, context: Any) -> None:
        self.weight = 10

    def cleanup(self) -> None:
        del self.weight

    def init(self, tuple: TridentTuple) -> int:
        return self.weight

    def combine(self, a: int, b: int) -> int:
        assert self.weight
        return a + b

    def zero(self) -> int:
        return 0


class Weighing(ReducerAggregator[int]):
    """The same as a reducer."""

    output_types = (int,)
    prepare, cleanup = Weighted.prepare, Weighted.cleanup

    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: TridentTuple) -> int:
        return curr + self.weight


@pytest.mark.pairs
@pytest.mark.parametrize("aggregator", [Weighted, Weighing])
@pytest.mark.parametrize("hint", [None, 2])
def test_an_aggregator_is_prepared_where_it_updates_a_state(
    engine: Engine, kept: MapStateFactory, aggregator: Any, hint: int | None
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string")
    words = topology.newStream("words", spout)
    weights = words.groupBy("word").persistentAggregate(kept, "word", aggregator(), "weight")
    if hint:
        weights.parallelismHint(hint)
    single = words.persistentAggregate(MemoryMapState.Factory(), "word", aggregator(), "sum")
    each = engine.capture(weights.newValuesStream(), "each")
    total = engine.capture(single.newValuesStream(), "total")
    engine.play(topology, spout, [("a",), ("b",), ("a",)], [("a",)])
    assert each.batches == [[("a", 20), ("b", 10)], [("a", 30)]]
    assert total.batches == [[(30,)], [(40,)]]
