"""Look-ups that stand in a row: none takes what another finds, so they are made at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trident.operations.builtin import MapGet
from trident.plan.nodes import Node, StateQueryNode
from trident.plan.places import calls_of


def row_of(
    node: StateQueryNode, consumers: Callable[[Node], Sequence[Node]]
) -> tuple[StateQueryNode, ...]:
    """The look-ups of a row, up to a step; the step alone where it is in none.

    In a row follow each other look-ups by `MapGet`, each of another state, in stores that make one
    wait, for fields that are there before the first. So a batch waits for one round trip, however
    many states it asks, where their stores read in steps.

    Parameters
    ----------
    node : StateQueryNode
        The step.
    consumers : callable
        From a step to those that take its output.

    Examples
    --------
    >>> from trident import TridentTopology
    >>> topology = TridentTopology()
    >>> counts = topology.newStaticState("redis://one/0?prefix=counts", name="counts")
    >>> totals = topology.newStaticState("redis://one/0?prefix=totals", name="totals")
    >>> query = topology.newDRPCStream("both").stateQuery(counts, "args", MapGet(), "count")
    >>> query = query.stateQuery(totals, "args", MapGet(), "total")
    >>> plan = topology.plan()
    >>> [look_up.outputs.names for look_up in row_of(plan.nodes[-1], plan.consumers)]
    [('count',), ('total',)]
    """
    before = node.parent
    if isinstance(before, StateQueryNode) and list(consumers(before)) == [node]:
        row = row_of(before, consumers)
        if _joins(row, node):
            return (*row, node)
    return (node,)


def _joins(row: Sequence[StateQueryNode], node: StateQueryNode) -> bool:
    there = row[0].parent.fields
    return (
        all(type(each.function) is MapGet and _waits(each) for each in (*row, node))
        and all(name in there for name in node.inputs)
        and node.state not in [each.state for each in row]
    )


def _waits(node: StateQueryNode) -> bool:
    """Whether a state's store is asked over a network, as far as is known."""
    calls = calls_of(node.state.state.factory)
    return calls is not None and calls.asks
