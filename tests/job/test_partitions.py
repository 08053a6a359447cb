"""Hints and required numbers of partitions count from one exchange to the next."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.api.topologies import ById, Write, sentences
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.backends.state_spec import StateSpec
from trident.errors import PlanError
from trident.job.compile import Spark, draft_job
from trident.job.passes import partitions_asked
from trident.operations.builtin import Count, Max


class Most(Max):
    """A combiner of the user's, which Catalyst hasn't got."""


def asked(topology: TridentTopology) -> list[int | None]:
    """How many partitions are asked for, step by step."""
    (group,) = topology.plan().groups
    counts, refused = partitions_asked(group.nodes)
    assert not refused
    return list(counts.values())


def persist(stream: Any, partitions: int | None = None, name: str = "s") -> Any:
    spec = StateSpec(MemoryMapState.Factory(), partitions, name)
    return stream.partitionPersist(spec, "id", Write())


@pytest.mark.parametrize(
    ("step", "exchange", "partitions"),
    [
        (lambda s: s.partitionBy("id"), "by id", None),
        (lambda s: s.shuffle(), "shuffle", None),
        (lambda s: s.localOrShuffle(), "localOrShuffle", None),
        (lambda s: s.partition(ById()), "by ById()", None),
        (lambda s: s.broadcast(), "broadcast", None),
        (lambda s: s.global_(), "to one partition", 1),
        (lambda s: s.batchGlobal(), "to one partition", 1),
        (lambda s: s.aggregate(Count(), "n"), "to one partition", 1),
        (lambda s: s.aggregate("id", Most(), "n"), "to one partition", 1),
        (lambda s: s.groupBy("id").aggregate(Count(), "n"), "by id", None),
        (lambda s: s.groupBy("id").aggregate("id", Most(), "n"), "by id", None),
    ],
)
def test_an_exchange_begins_a_stage(step: Any, exchange: str, partitions: int | None) -> None:
    topology = TridentTopology()
    step(sentences(topology))
    assert asked(topology) == [None, partitions]
    (group,) = topology.plan().groups
    job, _ = draft_job(group, Spark(4))
    assert [stage.exchange.text for stage in job.stages] == ["", exchange]
    assert [stage.hint for stage in job.stages] == [None, partitions]


def test_the_greatest_hint_between_two_exchanges_counts() -> None:
    topology = TridentTopology()
    stream = sentences(topology).parallelismHint(2).project("id").parallelismHint(5)
    stream.shuffle().parallelismHint(3)
    assert asked(topology) == [5, 5, 5, 5, 3, 3]


@pytest.mark.parametrize(
    ("before", "number"),
    [
        (lambda s: s, 1),
        (lambda s: s.shuffle(), 1),
        (lambda s: s.partitionBy("id").project("id"), 1),
        (lambda s: s.partitionBy("id"), None),
        (lambda s: s.partitionBy("id").parallelismHint(4).name("x"), 4),
        (lambda s: s.groupBy("id"), None),
        (lambda s: s.groupBy("id").aggregate(Count(), "n"), None),
        (lambda s: s.global_(), 1),
        (lambda s: s.global_().project("id"), 1),
    ],
)
def test_a_state_without_a_key_before_it_is_updated_in_one_partition(
    before: Any, number: int | None
) -> None:
    topology = TridentTopology()
    persist(before(sentences(topology)))
    assert asked(topology)[-1] == number


def test_the_hint_of_a_state_is_that_of_its_update() -> None:
    topology = TridentTopology()
    persist(sentences(topology).partitionBy("id")).parallelismHint(3)
    assert asked(topology) == [None, 3, 3, 3]


def test_a_required_number_wins_over_hints() -> None:
    topology = TridentTopology()
    persist(sentences(topology).partitionBy("id").parallelismHint(8), 2)
    assert asked(topology)[-1] == 2


def test_two_required_numbers_between_two_exchanges_are_refused() -> None:
    topology = TridentTopology()
    keyed = sentences(topology).partitionBy("id")
    persist(keyed, 2, "a")
    persist(keyed, 3, "b")
    told = "states 'a' (2) and 'b' (3) need different numbers"
    with pytest.raises(PlanError, match=re.escape(told)):
        topology.start()
    assert f"start refuses it: {told}" in topology.explain()
