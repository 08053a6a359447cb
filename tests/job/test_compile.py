"""What a plan becomes: the stages of a job, their exchanges and their steps."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.api.topologies import Write
from tests.plan.declared import DECLARED
from tests.plan.node_classes import names, node_classes
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.backends.state_spec import StateSpec
from trident.errors import FieldError, PlanError
from trident.job.compile import Local, Spark, Target, _Compiler, compile_job, draft_job
from trident.job.job import (
    ByKey,
    Forward,
    Gather,
    Job,
    LookUp,
    NativeAggregate,
    Source,
    Stage,
    Union,
    Update,
)
from trident.job.native import native_prefixes, without_prefixes
from trident.kernels.aggregate_kernels import CombinerKernel
from trident.operations.builtin import Count, MapGet, Max, Split
from trident.operations.callables import native
from trident.operations.interfaces import Operation
from trident.plan.nodes import Node
from trident.spouts.fixed import FixedBatchSpout
from trident.states import CachedMap, OpaqueMap

memory = MemoryMapState.Factory


class Most(Max):
    """A combiner of the user's, which Catalyst hasn't got."""


LARGE, SMALL = Spark(4), Spark(4, small=True)


@pytest.fixture
def topology() -> TridentTopology:
    return TridentTopology()


def lines(topology: TridentTopology, fields: str = "line string") -> Any:
    return topology.newStream("s", FixedBatchSpout(fields, 2))


def job_of(topology: TridentTopology, target: Target) -> Job:
    [group] = topology.plan().groups
    return compile_job(group, target)


def shape(job: Job) -> list[str]:
    """Each stage as its exchange and its steps."""
    return [
        " ".join([type(stage.exchange).__name__, *(type(step).__name__ for step in stage.steps)])
        for stage in job.stages
    ]


def test_every_kind_of_step_has_a_rule() -> None:
    way_of = _Compiler.__dict__["_rule"].dispatcher.dispatch
    missing = {kind for kind in node_classes() if way_of(kind) is way_of(Node)}
    assert not missing, f"add a rule for {names(missing)} to trident/job/compile.py"


@pytest.mark.parametrize("declare", DECLARED)
@pytest.mark.parametrize("target", [LARGE, SMALL])
def test_a_job_s_stages_take_those_before_them(declare: Any, target: Spark) -> None:
    for part in declare().plan().parts:
        job, _ = draft_job(part, target)
        for place, stage in enumerate(job.stages):
            assert stage.id == place
            assert all(each < place for each in stage.inputs)
            readers = sum(place in other.inputs for other in job.stages)
            assert stage.readers == readers + (job.result == place)
            assert not any(isinstance(step, Update) for step in stage.steps[:-1])
        done = [each for step in job.steps for each in step.ids]
        assert len(done) == len(set(done))
        held = [each for stage in job.stages for each in stage.ids]
        assert sorted(held) == [node.id for node in part.steps]
        assert all({*step.ids} <= {*stage.ids} for stage in job.stages for step in stage.steps)


def test_in_this_process_a_single_partition_is_one_stage(topology: TridentTopology) -> None:
    words = lines(topology).each("line", Split(), "word").shuffle().groupBy("word")
    words.persistentAggregate(memory(), "word", Most(), "n")
    assert shape(job_of(topology, Local())) == ["Source Kernels Kernels Update"]


@pytest.mark.parametrize(
    ("target", "stages"),
    [
        (Local(), ["Source Kernels", "ByKey Kernels Update"]),
        (LARGE, ["Source Kernels", "Gather Kernels Update"]),
    ],
)
def test_a_combiner_runs_before_its_exchange_and_behind_it(
    topology: TridentTopology, target: Target, stages: list[str]
) -> None:
    words = lines(topology).each("line", Split(), "word").groupBy("word")
    words.persistentAggregate(memory(), "word", Most(), "n").parallelismHint(3)
    job = job_of(topology, target)
    assert shape(job) == stages
    exchange = job.stages[1].exchange
    assert isinstance(exchange, ByKey | Gather)
    assert isinstance(exchange.combine, CombinerKernel)
    assert not exchange.combine.zero


def test_catalyst_aggregates_what_it_can(topology: TridentTopology) -> None:
    words = lines(topology).each("line", Split(), "word")
    words.groupBy("word").aggregate(Count(), "n").map(lambda word, n: (n, word))
    assert shape(job_of(topology, LARGE)) == ["Source Kernels", "ByKey NativeAggregate Kernels"]
    assert shape(job_of(topology, SMALL)) == ["Source Kernels NativeAggregate Kernels"]
    [step] = [each for each in job_of(topology, LARGE).steps if isinstance(each, NativeAggregate)]
    assert step.group == ("word",)


def test_a_step_that_several_take_ends_its_stage(topology: TridentTopology) -> None:
    words = lines(topology).each("line", Split(), "word")
    one, other = words.filter("word", bool), words.filter("line", bool)
    topology.merge(one.project("word"), other.project("word"))
    job = job_of(topology, Local())
    assert shape(job) == ["Source Kernels", "Forward Kernels", "Forward Kernels", "Union"]
    assert [stage.readers for stage in job.stages] == [2, 1, 1, 0]
    assert isinstance(job.stages[3].exchange, Union)
    assert job.stages[3].inputs == (1, 2)


@pytest.mark.parametrize("target", [Local(), LARGE, SMALL])
def test_states_are_asked_before_any_is_updated(topology: TridentTopology, target: Target) -> None:
    words = lines(topology, "word string")
    first = words.partitionPersist(StateSpec(memory(), 1, "one"), "word", Write())
    other = words.partitionPersist(StateSpec(memory(), 1, "other"), "word", Write())
    words.stateQuery(first, "word", MapGet(), "a long")
    words.stateQuery(other, "word", MapGet(), "b long")
    kinds = [type(step) for step in job_of(topology, target).steps]
    assert kinds == [LookUp, LookUp, Update, Update]


def test_an_update_on_spark_moves_its_keys_itself(topology: TridentTopology) -> None:
    stream = lines(topology, "word string").partitionBy("word")
    stream.partitionPersist(StateSpec(memory(), 3, "s"), "word", Write())
    driver, _ = job_of(topology, LARGE).stages, None
    assert [type(stage.exchange) for stage in driver] == [Source, Gather]
    [last] = [stage for stage in driver if stage.update]
    assert isinstance(last.exchange, Gather)
    assert last.exchange.on_driver


@pytest.mark.parametrize(
    ("aggregator", "few", "hint", "new_values", "here"),
    [
        (Count(), True, None, False, True),
        (Count(), False, None, False, False),
        (Count(), True, 2, False, False),
        (Count(), True, None, True, False),
        (Most(), True, None, False, False),
    ],
)
def test_the_driver_updates_a_map_with_few_aggregates_of_spark(
    topology: TridentTopology,
    aggregator: Any,
    few: bool,
    hint: int | None,
    new_values: bool,
    here: bool,
) -> None:
    factory = OpaqueMap.factory(CachedMap, name="counts")
    inputs = () if isinstance(aggregator, Count) else ("n",)
    grouped = lines(topology, "word string, n long").groupBy("word")
    state = grouped.persistentAggregate(factory, *inputs, aggregator, "out long")
    if hint is not None:
        state.parallelismHint(hint)
    if new_values:
        state.newValuesStream().peek(print)
    [update] = job_of(topology, Spark(4, few=few)).updates
    assert update.on_driver == here


def test_spark_needs_a_type_for_what_leaves_python(topology: TridentTopology) -> None:
    lines(topology).each("line", lambda line: [line], "word").shuffle().project("word").peek(print)
    with pytest.raises(FieldError, match="Spark needs the type"):
        job_of(topology, LARGE)
    assert shape(job_of(topology, SMALL)) == ["Source Kernels Kernels"]
    assert shape(job_of(topology, Local())) == ["Source Kernels Kernels"]


def test_only_spark_runs_an_expression(topology: TridentTopology) -> None:
    stream = lines(topology).each("line", native("upper(line)"), "up string")
    stream.each("up", native("length(up)"), "n long").peek(print)
    with pytest.raises(PlanError, match="only Spark can run the step"):
        job_of(topology, Local())
    job = job_of(topology, LARGE)
    assert [len(steps) for steps in native_prefixes(job, lambda step: False).values()] == [2]
    assert shape(without_prefixes(job, lambda step: False)) == ["Source Kernels"]
    assert shape(without_prefixes(job, lambda step: "n" in step.makes)) == [
        "Source NativeStep Kernels"
    ]


def test_the_result_ends_its_stage(topology: TridentTopology) -> None:
    words = topology.newDRPCStream("f").each("args", Split(), "word")
    words.aggregate(Count(), "n")
    query = topology.plan().drpc["f"]
    job = compile_job(query, Local())
    assert job.result == len(job.stages) - 1
    assert job.stages[job.result].columns.names == ("n",)


def test_a_label_that_nothing_follows_is_no_stage(topology: TridentTopology) -> None:
    words = lines(topology)
    words.name("one")
    words.name("other")
    words.peek(print)
    assert shape(job_of(topology, Local())) == ["Source", "Forward Kernels"]


def test_a_job_pickles(topology: TridentTopology) -> None:
    words = lines(topology).each("line", Split(), "word").groupBy("word")
    words.persistentAggregate("redis://one/0", Count(), "n")
    job = job_of(topology, LARGE)
    again = pickle.loads(pickle.dumps(job))
    assert shape(again) == shape(job)
    assert all(not isinstance(stage, Node) for stage in again.stages)


def test_stages_hold_what_the_topology_was_given(topology: TridentTopology) -> None:
    class Mine(Split):
        pass

    mine = Mine()
    lines(topology).each("line", mine, "word").peek(print)
    stage: Stage = job_of(topology, Local()).stages[0]
    [step, _] = stage.steps
    held: list[Operation] = [kernel.operation for kernel in step.kernels if kernel.operation]  # type: ignore[attr-defined]
    assert held == [mine]
    assert isinstance(stage.exchange, Source)
    assert not any(isinstance(each.exchange, Forward) for each in (stage,))
