"""What every kind of step has to tell, and what becomes of one that doesn't."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from tests.api.topologies import sentences
from tests.plan.declared import DECLARED
from tests.plan.node_classes import names, node_classes
from trident.api.topology import TridentTopology
from trident.errors import FieldError, PlanError
from trident.plan.nodes import DeadLettersNode, Node, StepNode
from trident.tuples.fields import Fields


class Nameless(StepNode):
    """Says nothing of how it is declared."""


class Odd(StepNode):
    """Says what a node has to, but no engine knows it."""

    call_text = "odd()"


class Greedy(Odd):
    """Reads what isn't there."""

    reads = Fields("nothing")


class Inventive(Odd):
    """Makes a field without saying so."""

    @cached_property
    def fields(self) -> Fields:
        return self.parent.fields + "made"


def with_step(kind: type[StepNode]) -> TridentTopology:
    topology = TridentTopology()
    topology._builder.add(kind, parents=(sentences(topology)._node,))
    return topology


def test_every_kind_of_step_is_explained_and_drawn() -> None:
    shown = {type(node) for declare in DECLARED for node in declare().plan().nodes}
    missing = node_classes() - shown - {DeadLettersNode}  # which a start adds
    assert not missing, f"tests/plan/declared.py: declare a topology with {names(missing)}"


def test_a_step_that_does_not_say_how_it_is_declared_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="class Nameless .*call_text"):
        with_step(Nameless)


@pytest.mark.parametrize(("kind", "field"), [(Greedy, "nothing"), (Inventive, "made")])
def test_a_step_that_takes_what_is_not_there_is_refused(kind: Any, field: str) -> None:
    with pytest.raises(FieldError, match=f"unknown field '{field}'"):
        with_step(kind)


class Joined(Node):
    """Has several parents, of which an engine must not take the first alone."""

    fields = Fields("made")
    makes = fields
    call_text = "joined()"


@pytest.mark.parametrize(("kind", "count"), [(Odd, 1), (Joined, 2)])
def test_a_step_of_a_query_that_the_local_engine_does_not_know_is_named(
    kind: Any, count: int
) -> None:
    topology = TridentTopology()
    parent = topology.newDRPCStream("f")._node
    topology._builder.add(kind, parents=(parent,) * count)
    with pytest.raises(PlanError, match=f"can't run a '{kind.__name__}'.*trident/job/"):
        topology.start()
