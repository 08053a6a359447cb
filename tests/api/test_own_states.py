"""What a topology asks a factory of one's own, and what it takes where nothing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.api.topologies import Log, LogFactory, Write, sentences
from trident import Count, ReducerAggregator
from trident.api.topology import TridentTopology
from trident.errors import (
    DuplicateNameError,
    GuaranteeWarning,
    OperationTypeError,
    PlanError,
    UsageError,
)
from trident.plan.nodes import StateUpdateNode
from trident.states.state import State, StateFactory
from trident.states.values import StateType


class Bare(StateFactory):
    """Says nothing."""

    def makeState(self, *partition: Any) -> Log:
        return Log()


class Files(Bare):
    """Says all that it can."""

    kind = StateType.TRANSACTIONAL
    hosted = "driver"
    max_keys = 1000

    def __init__(self, folder: Path, name: str = "") -> None:
        self.folder = folder
        self.name = name
        self.identity = ("files", str(folder), name)  # of the object: it need not be a property

    def named(self, name: str) -> Files:
        return self if self.name else Files(self.folder, name)

    def check_place(self) -> None:
        if not self.folder.is_dir():
            raise UsageError("there is no folder", str(self.folder))


def persisted(topology: TridentTopology, factory: StateFactory, name: str = "mine") -> None:
    stream = sentences(topology, "opaque") if not topology.plan().nodes else None
    stream = stream or topology.newStream("more", topology.plan().nodes[0].source)  # type: ignore[attr-defined]
    stream.partitionPersist(factory, "id", Write(), name=name)


@pytest.mark.parametrize("factory", [Bare(), LogFactory()])
def test_a_factory_that_makes_states_and_says_no_more_is_enough(factory: StateFactory) -> None:
    topology = TridentTopology()
    persisted(topology, factory)
    persisted(topology, factory, "other")  # where it is kept is not known to be the same
    shown = topology.explain()
    assert f"{type(factory).__name__}, kind not known, hosted by executors" in shown
    assert f"not known: {type(factory).__name__} doesn't tell how it keeps values" in shown
    topology.start().stop()
    with pytest.raises(PlanError, match="needs opaque maps"):
        topology.start(on_failure="dead-letter")


def test_what_a_factory_says_of_a_state_is_explained_and_warned_of(tmp_path: Path) -> None:
    topology = TridentTopology()
    persisted(topology, Files(tmp_path))
    shown = topology.explain()
    assert "Files, transactional map, hosted by the driver" in shown
    assert "best effort: opaque stream, transactional map; it keeps 1,000 keys" in shown
    with pytest.warns(GuaranteeWarning, match="'mine' is best effort"):
        topology.start().stop()


def test_a_factory_takes_the_states_name_and_is_refused_beside_its_like(tmp_path: Path) -> None:
    topology = TridentTopology()
    persisted(topology, Files(tmp_path))
    update = topology.plan().nodes[-1]
    assert isinstance(update, StateUpdateNode)
    assert update.state.factory.identity == ("files", str(tmp_path), "mine")
    with pytest.raises(DuplicateNameError, match="would be kept where 'mine' already is: .*files"):
        persisted(topology, Files(tmp_path, "mine"), "other")


def test_a_place_that_a_factory_refuses_is_an_error_at_start(tmp_path: Path) -> None:
    topology = TridentTopology()
    persisted(topology, Files(tmp_path / "missing"))
    with pytest.raises(PlanError, match="state 'mine': there is no folder"):
        topology.start()


class Unsaid(StateFactory):
    """Doesn't say what state it makes."""

    def makeState(self, *partition: Any) -> State:
        return Log()


class Sentences(ReducerAggregator[int]):
    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


@pytest.mark.parametrize("aggregator", [Count(), Sentences()])
def test_an_aggregate_of_groups_takes_a_map_state(aggregator: Any) -> None:
    topology = TridentTopology()
    grouped = sentences(topology, "opaque").groupBy("id")
    inputs = [] if isinstance(aggregator, Count) else ["id"]
    text = r"takes a map state with multiGet\(\); state 'n' is a 'Log'"
    with pytest.raises(OperationTypeError, match=f"persistentAggregate: .*{text}"):
        grouped.persistentAggregate(Bare(), *inputs, aggregator, "n")


def test_an_aggregate_of_groups_takes_a_map_state_at_the_latest_when_it_starts() -> None:
    topology = TridentTopology()
    grouped = sentences(topology, "opaque").groupBy("id")
    grouped.persistentAggregate(Unsaid(), Count(), "n")
    with pytest.raises(OperationTypeError, match=r"start: at .*takes a map state.*'Log'"):
        topology.start()
