"""What one attempt of the local engine leaves for the next."""

from __future__ import annotations

from typing import Any

import pytest

from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMapState
from trident.errors import FailedException
from trident.operations.builtin import Count, MapGet
from trident.spouts.fixed import FixedBatchSpout
from trident.states.maps.factory import MapStateFactory
from trident.states.values import StateType


@pytest.mark.parametrize("kind", list(StateType))
@pytest.mark.filterwarnings("ignore::trident.errors.GuaranteeWarning")
def test_a_query_never_sees_what_a_failed_attempt_has_not_written(kind: StateType) -> None:
    queried: list[Any] = []
    topology = TridentTopology()
    stream = topology.newStream("words", FixedBatchSpout("word string", 1, ("dog",)))
    state = stream.groupBy("word").persistentAggregate(
        MapStateFactory(MemoryMapState.Factory().store, kind), Count(), "count"
    )
    stream.stateQuery(state, "word", MapGet(), "known").peek(
        lambda word, known: queried.append(known)
    )

    def fail_once(count: int) -> bool:
        if len(queried) < 2:
            raise FailedException("after the update")
        return True

    state.newValuesStream().filter("count", fail_once)
    with topology.start(trigger="available") as run:
        run.awaitTermination(30)
    assert queried == [None, None]
