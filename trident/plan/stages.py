"""Stages: the steps between two exchanges, which run together in each partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trident.errors import PlanError
from trident.operations.interfaces import CombinerAggregator, operation_name
from trident.plan.nodes import (
    AggregateNode,
    HintNode,
    JoinNode,
    MergeNode,
    NameNode,
    Node,
    PartitionNode,
    StateUpdateNode,
)

_ONE_PARTITION = ("global", "batchGlobal")


@dataclass(frozen=True)
class PlanStage:
    """Steps that run together.

    Parameters
    ----------
    number : int
        From 1, in order of creation.
    nodes : tuple of Node
        Its steps in order of creation; an aggregate is in the stage that gives its result.
    exchange : str
        How tuples come in; empty where they begin here.
    partitions : int or None
        How many partitions it runs in; None where the engine chooses.
    """

    number: int
    nodes: tuple[Node, ...]
    exchange: str
    partitions: int | None


def stages(nodes: Iterable[Node]) -> tuple[PlanStage, ...]:
    """The stages of a batch group or a query.

    Parameters
    ----------
    nodes : iterable of Node
        Its steps, in order of creation.

    Raises
    ------
    PlanError
        Where two states of one stage need different numbers of partitions.
    """
    members: list[list[Node]] = []
    of_node: dict[Node, list[Node]] = {}
    for node in nodes:
        parents = [parent for parent in node.parents if parent in of_node]
        if not parents or exchange(node) or _is_alone(node, of_node[parents[0]]):
            members.append([])
            of_node[node] = members[-1]
        else:
            of_node[node] = of_node[parents[0]]
        of_node[node].append(node)
    found = []
    for number, steps in enumerate(members, 1):
        single = _is_single(steps)
        how = exchange(steps[0]) or ("to one partition" if single else "")
        found.append(PlanStage(number, tuple(steps), how, 1 if single else _partitions(steps)))
    return tuple(found)


def exchange(node: Node) -> str:
    """How tuples move on their way into a step; empty where they stay in their partition."""
    if isinstance(node, MergeNode):
        return "union"
    if isinstance(node, JoinNode):
        return f"by {' = '.join(dict.fromkeys(map(str, node.keys)))}"
    if isinstance(node, AggregateNode):
        return f"by {node.group}" if node.group else "to one partition"
    if not isinstance(node, PartitionNode):
        return ""
    if node.how == "partitionBy":
        return f"by {node.by}"
    if node.grouping is not None:
        return f"by {operation_name(node.grouping)}"
    return "to one partition" if node.how in _ONE_PARTITION else node.how


def combines_first(node: Node) -> bool:
    """Whether a step aggregates in each partition before its exchange, and after it."""
    return isinstance(node, AggregateNode) and isinstance(node.aggregator, CombinerAggregator)


def is_keyed(node: StateUpdateNode) -> bool:
    """Whether the step directly before brings the tuples of a key into one partition."""
    before = unlabelled(node.parent)
    if isinstance(before, AggregateNode):
        return True
    return isinstance(before, PartitionNode) and before.how in ("partitionBy", *_ONE_PARTITION)


def unlabelled(node: Node) -> Node:
    """The nearest step, from this one back, that is no hint and no label."""
    while isinstance(node, HintNode | NameNode):
        node = node.parent
    return node


def _is_alone(node: Node, before: list[Node]) -> bool:
    """Whether a step begins a stage of one partition: a state update does where no exchange has
    brought the tuples of a key together."""
    return isinstance(node, StateUpdateNode) and not is_keyed(node) and not _is_single(before)


def _is_single(nodes: list[Node]) -> bool:
    """Whether a stage has one partition whatever its hints say."""
    first = nodes[0]
    if isinstance(first, StateUpdateNode):
        return not is_keyed(first)
    if isinstance(first, AggregateNode):
        return not first.group
    return isinstance(first, PartitionNode) and first.how in _ONE_PARTITION


def _partitions(nodes: list[Node]) -> int | None:
    states = [node.state for node in nodes if isinstance(node, StateUpdateNode)]
    required = {s.required_partitions: s.name for s in states if s.required_partitions}
    if len(required) > 1:
        names = " and ".join(f"{name!r} ({count})" for count, name in required.items())
        what = f"states {names} need different numbers of partitions in one stage"
        raise PlanError(what, "", (), "Put a partitionBy() between them.")
    hints = [node.parallelism for node in nodes if isinstance(node, HintNode)]
    return next(iter(required), max(hints, default=None))
