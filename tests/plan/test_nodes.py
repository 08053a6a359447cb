"""What every kind of step has to tell, and what becomes of one that doesn't."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property
from inspect import isabstract
from typing import Any

import pytest

from tests.api.topologies import sentences
from tests.plan.declared import DECLARED
from tests.plan.node_classes import names, node_classes
from trident.api.topology import TridentTopology
from trident.errors import FieldError, PlanError
from trident.operations.callables import Native
from trident.operations.interfaces import Operation
from trident.plan.nodes import PASSES_ON, DeadLettersNode, Node, StepNode
from trident.tuples.fields import Fields


class Silent(StepNode):
    """Says nothing of itself but how it is declared."""

    call_text = "silent()"


class Nameless(StepNode):
    """Says nothing of how it is declared."""

    facts = PASSES_ON


class Odd(StepNode):
    """Says what a node has to, but no engine knows it."""

    facts = PASSES_ON
    call_text = "odd()"


class Greedy(Odd):
    """Reads what isn't there."""

    facts = replace(PASSES_ON, reads=Fields("nothing"))


class Inventive(Odd):
    """Makes a field without saying so."""

    @cached_property
    def fields(self) -> Fields:
        return self.parent.fields + "made"


def with_step(kind: type[StepNode]) -> TridentTopology:
    topology = TridentTopology()
    topology._builder.add(kind, parent=sentences(topology)._node)
    return topology


def test_every_kind_of_step_is_explained_and_drawn() -> None:
    shown = {type(node) for declare in DECLARED for node in declare().plan().nodes}
    missing = node_classes() - shown - {DeadLettersNode}  # which a start adds
    assert not missing, f"tests/plan/declared.py: declare a topology with {names(missing)}"


@pytest.mark.parametrize("kind", sorted(node_classes(), key=lambda kind: kind.__name__))
def test_every_kind_of_step_says_itself_what_it_reads_makes_and_runs(kind: type[Node]) -> None:
    speaker = next(each for each in kind.__mro__ if "facts" in vars(each))
    alone = speaker is kind or isabstract(speaker)  # not what another kind of step says
    assert alone, f"trident/plan/nodes.py: {kind.__name__} says what another does"


@pytest.mark.parametrize("declare", DECLARED)
def test_a_step_says_every_operation_that_it_was_given(declare: Any) -> None:
    for node in declare().plan().nodes:
        given = [getattr(node, each.name) for each in fields(node)]
        operations = [each for each in given if isinstance(each, Operation | Native)]
        said = [] if node.facts.operation is None else [node.facts.operation]
        assert operations == said, f"{node}: its facts leave out what it runs"


@pytest.mark.parametrize("declare", DECLARED)
def test_a_step_says_every_field_that_it_was_told_to_read(declare: Any) -> None:
    for node in declare().plan().nodes:
        told = {
            name
            for each in fields(node)
            if each.name in ("inputs", "group", "by")
            for name in getattr(node, each.name) or ()
        }
        assert told <= set(node.facts.reads), f"{node}: its facts leave out what it reads"


@pytest.mark.parametrize(("kind", "unsaid"), [(Silent, "facts"), (Nameless, "call_text")])
def test_a_step_that_does_not_say_what_it_is_cannot_be_made(kind: Any, unsaid: str) -> None:
    with pytest.raises(TypeError, match=f"class {kind.__name__} .*{unsaid}"):
        with_step(kind)


@pytest.mark.parametrize(("kind", "field"), [(Greedy, "nothing"), (Inventive, "made")])
def test_a_step_that_takes_what_is_not_there_is_refused(kind: Any, field: str) -> None:
    with pytest.raises(FieldError, match=f"a {kind.__name__} takes an unknown field '{field}'"):
        with_step(kind)


class Joined(Node):
    """Has several parents, of which an engine must not take the first alone."""

    parent: Node
    fields = Fields("made")
    facts = replace(PASSES_ON, makes=fields)
    call_text = "joined()"

    @property
    def parents(self) -> tuple[Node, ...]:
        return (self.parent, self.parent)


@pytest.mark.parametrize("kind", [Odd, Joined])
def test_a_step_of_a_query_that_the_local_engine_does_not_know_is_named(kind: Any) -> None:
    topology = TridentTopology()
    topology._builder.add(kind, parent=topology.newDRPCStream("f")._node)
    with pytest.raises(PlanError, match=f"can't run a '{kind.__name__}'.*trident/job/"):
        topology.start()
