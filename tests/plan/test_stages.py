"""Stages end at exchanges; hints and required numbers count within one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.topologies import Write, sentences
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.backends.state_spec import StateSpec
from trident.errors import PlanError
from trident.operations.builtin import Count
from trident.plan.stages import PlanStage, stages


def of(topology: TridentTopology) -> tuple[PlanStage, ...]:
    (group,) = topology.plan().groups
    return stages(group.nodes)


def persist(stream: Any, partitions: int | None = None, name: str = "s") -> Any:
    spec = StateSpec(MemoryMapState.Factory(), partitions, name)
    return stream.partitionPersist(spec, "id", Write())


@pytest.mark.parametrize(
    ("step", "exchange", "partitions"),
    [
        (lambda s: s.partitionBy("id"), "by id", None),
        (lambda s: s.shuffle(), "shuffle", None),
        (lambda s: s.broadcast(), "broadcast", None),
        (lambda s: s.global_(), "to one partition", 1),
        (lambda s: s.batchGlobal(), "to one partition", 1),
        (lambda s: s.aggregate(Count(), "n"), "to one partition", 1),
        (lambda s: s.groupBy("id").aggregate(Count(), "n"), "by id", None),
    ],
)
def test_an_exchange_begins_a_stage(step: Any, exchange: str, partitions: int | None) -> None:
    topology = TridentTopology()
    step(sentences(topology))
    first, second = of(topology)
    assert (first.exchange, second.exchange) == ("", exchange)
    assert second.partitions == partitions


def test_the_greatest_hint_of_a_stage_counts() -> None:
    topology = TridentTopology()
    stream = sentences(topology).parallelismHint(2).project("id").parallelismHint(5)
    stream.shuffle().parallelismHint(3)
    assert [stage.partitions for stage in of(topology)] == [5, 3]


@pytest.mark.parametrize(
    ("before", "numbers"),
    [
        (lambda s: s, [None, 1]),
        (lambda s: s.shuffle(), [None, None, 1]),
        (lambda s: s.partitionBy("id").project("id"), [None, None, 1]),
        (lambda s: s.partitionBy("id"), [None, None]),
        (lambda s: s.partitionBy("id").parallelismHint(4).name("x"), [None, 4]),
        (lambda s: s.groupBy("id"), [None, None]),
        (lambda s: s.groupBy("id").aggregate(Count(), "n"), [None, None]),
        (lambda s: s.global_(), [None, 1]),
        (lambda s: s.global_().project("id"), [None, 1]),
    ],
)
def test_a_state_without_a_key_before_it_is_updated_in_one_partition(
    before: Any, numbers: list[int | None]
) -> None:
    topology = TridentTopology()
    persist(before(sentences(topology)))
    assert [stage.partitions for stage in of(topology)] == numbers


def test_the_hint_of_a_state_is_that_of_its_update() -> None:
    topology = TridentTopology()
    persist(sentences(topology).partitionBy("id")).parallelismHint(3)
    assert of(topology)[-1].partitions == 3


def test_a_required_number_wins_over_hints() -> None:
    topology = TridentTopology()
    persist(sentences(topology).partitionBy("id").parallelismHint(8), 2)
    assert of(topology)[-1].partitions == 2


def test_two_required_numbers_in_one_stage_are_refused() -> None:
    topology = TridentTopology()
    keyed: Stream = sentences(topology).partitionBy("id")
    persist(keyed, 2, "a")
    persist(keyed, 3, "b")
    with pytest.raises(PlanError, match=r"states 'a' \(2\) and 'b' \(3\) need different numbers"):
        of(topology)
