"""What is the local engine's own business; what both engines share is in tests/topologies."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import pytest

from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import EmittedValueError, OperationError, OperationTypeError, PlanError
from trident.job.compile import Local, compile_job
from trident.kernels.keys import group_keys, key_fields
from trident.local.exchanges import by_key
from trident.local.program import Program
from trident.local.program_input import ProgramInput
from trident.operations.builtin import Count, MapGet, Split
from trident.operations.callables import native
from trident.operations.interfaces import (
    Filter,
    QueryFunction,
    ReducerAggregator,
    StateUpdater,
    TridentCollector,
    TridentOperationContext,
)
from trident.plan.plan import DRPCQuery
from trident.spouts.feeder import FeederBatchSpout
from trident.spouts.fixed import FixedBatchSpout
from trident.states.state import State, StateFactory
from trident.tuples import TridentTuple
from trident.tuples.block import block_of
from trident.tuples.fields import Fields


class Shared(list[Any]):
    """A list that all copies of what holds it write to."""

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Watched(Filter):
    """Writes down what is called, and in which partition."""

    def __init__(self) -> None:
        self.calls = Shared()
        self.place: tuple[int, int] | None = None

    def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
        assert self.place is None
        self.place = context.getPartitionIndex(), context.numPartitions()
        self.calls.append(("prepare", self.place))

    def isKeep(self, tuple: TridentTuple) -> bool:
        self.calls.append((tuple["word"], self.place))
        return True

    def cleanup(self) -> None:
        self.calls.append(("cleanup", self.place))


def run_through(*operations: Filter, hint: int = 1) -> None:
    """Four words in two batches, through some filters."""
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 2, ("a",), ("b",), ("c",), ("d",))
    stream = topology.newStream("words", spout)
    for operation in operations:
        stream = stream.filter(operation)
    stream.parallelismHint(hint)
    with topology.start(trigger="available") as run:
        assert run.awaitTermination(30)


def test_operations_are_prepared_once_and_cleaned_up_at_the_end() -> None:
    watched = Watched()
    run_through(watched)
    words = [(word, (0, 1)) for word in "abcd"]
    assert watched.calls == [("prepare", (0, 1)), *words, ("cleanup", (0, 1))]
    assert watched.place == (0, 1)


def test_each_partition_has_an_operation_of_its_own_with_its_own_index() -> None:
    watched = Watched()
    run_through(watched, hint=2)
    first, second = (0, 2), (1, 2)
    words = [("a", first), ("b", second), ("c", first), ("d", second)]
    assert watched.calls == [
        *[("prepare", first), ("prepare", second)],
        *words,
        *[("cleanup", second), ("cleanup", first)],
    ]
    assert watched.place is None


def test_partial_and_final_aggregates_are_partitions_of_their_own() -> None:
    class Tally(Count):
        def __init__(self) -> None:
            self.places = Shared()

        def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
            self.places.append((context.getPartitionIndex(), context.numPartitions()))

    topology = TridentTopology()
    stream = topology.newStream("words", FixedBatchSpout("word string", 2, ("a",), ("b",)))
    spread, one, groups = Tally(), Tally(), Tally()
    stream.aggregate(one, "n")
    stream.shuffle().parallelismHint(3).aggregate(spread, "n")
    stream.groupBy("word").aggregate(groups, "n").parallelismHint(2)
    with topology.start(trigger="available") as run:
        assert run.awaitTermination(30)
    assert one.places == [(0, 1)]
    assert spread.places == [(0, 3), (1, 3), (2, 3), (0, 1)]
    assert groups.places == [(0, 1), (0, 2), (1, 2)]


class Locked(Watched):
    """Holds what can't be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def test_what_cannot_be_copied_runs_in_one_partition_only() -> None:
    run_through(Locked())
    with pytest.raises(
        OperationTypeError,
        match=r"filter at .*test_program.py:\d+: can't be copied for each of its 2 partitions "
        r"\(cannot pickle '_thread.lock' object\): 'filter\(word, Locked\(\)\)'.* in prepare\(\)",
    ):
        run_through(Locked(), hint=2)


def test_plain_callables_are_shared_as_they_are_never_prepared() -> None:
    class Seen:
        def __init__(self) -> None:
            self.words: list[str] = []

        def keep(self, word: str) -> bool:
            self.words.append(word)
            return True

    seen = Seen()
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 2, ("a",), ("b",))
    topology.newStream("words", spout).filter("word", seen.keep).parallelismHint(2)
    with topology.start(trigger="available") as run:
        assert run.awaitTermination(30)
    assert seen.words == ["a", "b"]


def test_what_was_prepared_is_cleaned_up_where_another_operation_fails_to_prepare() -> None:
    class Failing(Watched):
        def prepare(self, conf: Mapping[str, Any], context: TridentOperationContext) -> None:
            raise ValueError("no connection")

    watched = Watched()
    with pytest.raises(ValueError, match="no connection"):
        run_through(watched, Failing())
    assert watched.calls == [("prepare", (0, 1)), ("cleanup", (0, 1))]


def test_operations_of_queries_are_prepared_too() -> None:
    watched = Watched()
    topology = TridentTopology()
    topology.newDRPCStream("f").each("args", Split(), "word").filter("word", watched)
    with topology.start() as run:
        run.drpc.execute("f", "x")
    assert watched.calls == [("prepare", (0, 1)), ("x", (0, 1)), ("cleanup", (0, 1))]


class Short(QueryFunction[Any, Any]):
    """Answers too little."""

    def batchRetrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        return [1] * (len(tuples) - 1)

    def execute(self, tuple: TridentTuple, result: Any, collector: TridentCollector) -> None:
        collector.emit([result])


def test_a_query_that_retrieves_another_number_of_results_is_an_error() -> None:
    topology = TridentTopology()
    static = topology.newStaticState(MemoryMapState.Factory())
    spout = FixedBatchSpout("word string", 2, ("a",), ("b",))
    topology.newStream("words", spout).stateQuery(static, "word", Short(), "found long")
    with (
        topology.start(trigger="available") as run,
        pytest.raises(OperationError, match="retrieved 1 results for 2 tuples") as caught,
    ):
        run.awaitTermination(30)
    assert isinstance(caught.value.cause, EmittedValueError)


class Seen(State):
    """Counts at once, and has nothing to tell a batch's own tuples by."""

    count = 0

    def beginCommit(self, batch: object) -> None:
        pass

    def commit(self, batch: object) -> None:
        pass


class AddTuples(StateUpdater[Seen]):
    def updateState(
        self, state: Seen, tuples: Sequence[TridentTuple], collector: TridentCollector
    ) -> None:
        state.count += len(tuples)


class SeenBefore(QueryFunction[Seen, int]):
    """Writes down what it finds."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def batchRetrieve(self, state: Seen, tuples: Sequence[TridentTuple]) -> Sequence[int]:
        self.found += [state.count] * len(tuples)
        return self.found[-len(tuples) :]

    def execute(self, tuple: TridentTuple, result: int, collector: TridentCollector) -> None:
        collector.emit([result])


class SeenFactory(StateFactory):
    hosted = "driver"

    def makeState(self, *_: Any) -> Seen:
        return Seen()


@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_a_state_is_asked_before_its_batch_updates_it() -> None:
    query = SeenBefore()
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 2, *[(word,) for word in "abcd"])
    words = topology.newStream("words", spout)
    seen = words.partitionPersist(SeenFactory(), "word", AddTuples(), name="seen")
    words.stateQuery(seen, "word", query, "count long")
    with topology.start(trigger="available") as run:
        assert run.awaitTermination(30)
    assert query.found == [0, 0, 2, 2]


class Calls(MapGet):
    """Writes down how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def batchRetrieve(self, state: Any, tuples: Sequence[Sequence[Any]]) -> Sequence[Any]:
        self.asked.append(len(tuples))
        return super().batchRetrieve(state, tuples)


def test_a_query_asks_once_a_batch_and_never_for_nothing() -> None:
    calls = Calls()
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 3, *[(word,) for word in "abcabx"])
    stream = topology.newStream("words", spout).filter("word", lambda word: word in "abc")
    static = topology.newStaticState(MemoryMapState.Factory())
    stream.filter("word", lambda word: word == "c").stateQuery(static, "word", calls, "n")
    with topology.start(trigger="available") as run:
        assert run.awaitTermination(30)
    assert calls.asked == [1]


def test_native_steps_run_on_spark_only() -> None:
    topology = TridentTopology()
    spout = FixedBatchSpout("word string", 1, ("a",))
    topology.newStream("words", spout).each(native("upper(word)"), "up string")
    with pytest.raises(PlanError, match="native"):
        topology.start()
    with pytest.raises(PlanError, match="only Spark can run the step"):
        compile_job(topology.plan().groups[0], Local())


def test_a_program_returns_what_its_result_made() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FeederBatchSpout("sentence string"))
    stream.each("sentence", Split(), "word").groupBy("word").aggregate(Count(), "count")
    [*_, last] = topology.plan().nodes
    program = Program(compile_job(DRPCQuery("f", last.parents[0], last), Local()))
    given = ProgramInput(1, sources={"s": block_of(["sentence"], [("a b a",), ("b c",)])})
    assert sorted(program.run(given)) == [("a", 2), ("b", 2), ("c", 1)]


@pytest.mark.parametrize(
    "keys",
    [
        [(1,), (True,), (1.0,), ("1",), (None,)],
        [("a",), ("a\0",), ("",), (None,)],
        [(2,), (3,), (None,)],
    ],
)
def test_different_keys_are_different_groups(keys: list[tuple[Any, ...]]) -> None:
    for fields in (Fields("k"), Fields("k", "other")):
        rows = [(*key, 0)[: len(fields)] for key in keys * 2]
        found = group_keys(block_of(fields.names, rows), fields.names)
        assert len(set(found)) == len(keys)
        assert [key_fields(key) for key in found] == rows
        assert [list(map(type, key_fields(key))) for key in found] == [
            list(map(type, row)) for row in rows
        ]


class Collected(ReducerAggregator[list[Any]]):
    def init(self) -> list[Any]:
        return []

    def reduce(self, curr: list[Any], tuple: TridentTuple) -> list[Any]:
        return [*curr, tuple["n"]]


def test_a_reducer_tells_keys_apart_as_the_store_does() -> None:
    memory = MemoryMapState.Factory()
    topology = TridentTopology()
    rows = [(1, "a"), (True, "b"), (1.0, "c"), (1, "d")]
    stream = topology.newStream("s", FixedBatchSpout("k, n string", 4, *rows)).groupBy("k")
    stream.persistentAggregate(memory, "n", Collected(), "ns")
    with topology.start(trigger="available") as run:
        assert run.awaitTermination(30)
    assert memory.makeState().multiGet([(1,), (True,), (1.0,)]) == [["a", "d"], ["b"], ["c"]]


def test_zero_has_one_key() -> None:
    found = group_keys(block_of(["x"], [(0.0,), (-0.0,)]), ["x"])
    assert found[0] == found[1]
    assert str(key_fields(found[1])) == "(0.0,)"


def test_equal_keys_meet_in_one_partition() -> None:
    rows = [(f"key {number % 20}", number) for number in range(200)]
    given = [block_of(["k", "n"], rows[:50]), block_of(["k", "n"], rows[50:])]
    moved = by_key(given, ["k"], 4)
    places = [set(block.values("k")) for block in moved]
    assert sum(block.length for block in moved) == 200
    assert sum(len(keys) for keys in places) == 20
    assert all(places)


@pytest.mark.parametrize(("partitions", "stages"), [(1, 1), (2, 3)])
def test_in_a_single_partition_all_steps_are_one_stage(partitions: int, stages: int) -> None:
    topology = TridentTopology()
    lines = topology.newStream("s", FixedBatchSpout("line string", 2))
    words = lines.each("line", Split(), "one")
    kept = words.shuffle().parallelismHint(partitions).groupBy("one")
    kept.persistentAggregate(MemoryMapState.Factory(), Count(), "n").newValuesStream()
    assert len(compile_job(topology.plan().groups[0], Local()).stages) == stages


def test_hints_count_from_one_exchange_to_the_next() -> None:
    topology = TridentTopology()
    one = topology.newStream("one", FeederBatchSpout("w string")).parallelismHint(4)
    other = topology.newStream("other", FeederBatchSpout("w string"))
    merged = topology.merge(one, other)
    gathered = merged.shuffle().parallelismHint(3).global_().name("all").parallelismHint(9)
    state = gathered.groupBy("w").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    state.parallelismHint(2)
    job = compile_job(topology.plan().groups[0], Local())
    assert [stage.partitions for stage in job.stages] == [4, 1, 5, 3, 1, 2]
