"""Several aggregators over the same tuples: ``chainedAgg() … chainEnd()``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.topologies.conftest import Engine
from tests.topologies.generated import Letterset, Tally, Widest
from tests.topologies.test_aggregates import Step, carried
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.job.compile import Spark, compile_job
from trident.operations.builtin import Count, Max, Sum
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    TridentCollector,
    TridentOperationContext,
)
from trident.spouts.feeder import FeederBatchSpout

FIELDS = "s string, n long"
ROWS = [("a", 1), (None, 2), ("b", 5), ("a", None), ("a", 7)]


class Silent(Aggregator[None]):
    """Emits nothing."""

    output_types = (str,)

    def init(self, batchId: object, collector: TridentCollector) -> None: ...

    def aggregate(self, val: None, tuple: Any, collector: TridentCollector) -> None: ...

    def complete(self, val: None, collector: TridentCollector) -> None: ...


class Prepared(CombinerAggregator[int]):
    """The tuples where it was prepared."""

    output_types = (int,)
    ready = False

    def prepare(self, conf: Any, context: TridentOperationContext) -> None:
        self.ready = True

    def cleanup(self) -> None:
        self.ready = False

    def init(self, tuple: Any) -> int:
        return int(self.ready)

    def combine(self, a: int, b: int) -> int:
        assert self.ready
        return a + b

    def zero(self) -> int:
        return 0


def combiners(stream: Any) -> Stream:
    chain = stream.chainedAgg().aggregate(Count(), "count").aggregate("n", Sum(), "sum")
    made: Stream = chain.aggregate("s", Widest(), "widest").chainEnd()
    return made


def mixed(stream: Any) -> Stream:
    chain = stream.chainedAgg().aggregate("n", Max(), "max").aggregate("s", Letterset(), "letters")
    made: Stream = chain.aggregate("s", Tally(), "what, many").chainEnd()
    return made


def silent(stream: Any) -> Stream:
    chain = stream.chainedAgg().aggregate(Count(), "count")
    made: Stream = chain.aggregate("s", Silent(), "none").chainEnd()
    return made


def alone(stream: Any) -> Stream:
    made: Stream = stream.chainedAgg().aggregate("n", Max(), "max").chainEnd()
    return made


WHOLE: Mapping[str, tuple[Step, list[Any]]] = {
    "combiners": (combiners, [(5, 15, 4)]),
    "of all kinds": (mixed, [(7, "Nabeno", "all", 5), (7, "Nabeno", "null", 1)]),
    "one that emits nothing": (silent, []),
    "only one": (alone, [(7,)]),
}
GROUPED: Mapping[str, tuple[Step, list[Any]]] = {
    "combiners": (combiners, [("a", 3, 8, 1), ("b", 1, 5, 1), (None, 1, 2, 4)]),
    "of all kinds": (
        mixed,
        [
            ("a", 7, "a", "all", 3),
            ("b", 5, "b", "all", 1),
            (None, 2, "Neno", "all", 1),
            (None, 2, "Neno", "null", 1),
        ],
    ),
    "one that emits nothing": (silent, []),
    "only one": (alone, [("a", 7), ("b", 5), (None, 2)]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_chain_aggregates_the_batch(engine: Engine, name: str) -> None:
    step, expected = WHOLE[name]
    found = carried(engine, FIELDS, lambda s: step(s.shuffle().parallelismHint(3)), ROWS)
    assert found == [sorted(expected, key=repr)] * bool(expected)


@pytest.mark.parametrize("name", GROUPED)
def test_a_chain_aggregates_each_group(engine: Engine, name: str) -> None:
    step, expected = GROUPED[name]

    def grouped(stream: Stream) -> Stream:
        return step(stream.shuffle().parallelismHint(3).groupBy("s"))

    found = carried(engine, FIELDS, grouped, ROWS)
    assert found == [sorted(expected, key=repr)] * bool(expected)


def test_a_chain_of_each_partition_gives_one_tuple_of_each(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        chain = stream.shuffle().parallelismHint(3).chainedAgg()
        counted = chain.partitionAggregate(Count(), "count")
        return counted.partitionAggregate("n", Sum(), "sum").chainEnd()

    [found] = carried(engine, FIELDS, step, ROWS)
    assert len(found) == 3
    assert [sum(column) for column in zip(*found, strict=True)] == [5, 15]


def test_a_chain_of_groups_in_each_partition(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        chain = stream.global_().groupBy("s").chainedAgg()
        counted = chain.partitionAggregate(Count(), "count")
        return counted.partitionAggregate("n", Sum(), "sum").chainEnd()

    [found] = carried(engine, FIELDS, step, ROWS)
    assert found == sorted([("a", 3, 8), ("b", 1, 5), (None, 1, 2)], key=repr)


EMPTY: Mapping[str, tuple[Step, list[Any]]] = {
    "combiners": (combiners, [(0, 0, 0)]),
    "of all kinds": (mixed, [(None, "", "all", 0)]),
    "groups": (lambda s: combiners(s.groupBy("s")), []),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_chain_of_no_tuples_is_what_its_aggregators_are(engine: Engine, name: str) -> None:
    step, expected = EMPTY[name]
    found = carried(engine, FIELDS, lambda s: step(s.shuffle().parallelismHint(3)), [])
    assert found == [expected] * bool(expected)


def test_every_aggregator_of_a_chain_is_prepared(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        chain = stream.shuffle().parallelismHint(2).chainedAgg().aggregate(Prepared(), "one")
        return chain.aggregate(Prepared(), "other").chainEnd()

    assert carried(engine, FIELDS, step, ROWS) == [[(5, 5)]]


def combined_first(step: Step) -> bool:
    topology = TridentTopology()
    step(topology.newStream("s", FeederBatchSpout(FIELDS)))
    job = compile_job(topology.plan().groups[0], Spark(2))
    return any(stage.combines_first for stage in job.stages)


def test_only_combiners_alone_combine_in_each_partition_first() -> None:
    assert [combined_first(step) for step in (combiners, mixed, alone)] == [True, False, True]


def test_a_chain_can_be_gone_on_with_in_two_ways() -> None:
    stream = TridentTopology().newStream("s", FeederBatchSpout(FIELDS))
    begun = stream.chainedAgg().aggregate(Count(), "count")
    one, other = begun.aggregate("n", Sum(), "sum"), begun.aggregate("n", Max(), "max")
    assert one.chainEnd().getOutputFields().names == ("count", "sum")
    assert other.chainEnd().getOutputFields().names == ("count", "max")
