"""How many partitions each step has: the greatest hint between one exchange and the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    HintNode,
    MergeNode,
    NameNode,
    Node,
    PartitionNode,
    SourceNode,
    StateUpdateNode,
)

_GATHERING = ("global", "batchGlobal")


def partition_counts(nodes: Sequence[Node]) -> Mapping[Node, int]:
    """The number of partitions after each node; 1 where no hint says more.

    A hint counts for all steps back to the last exchange, merge or source. What is gathered into
    one partition stays there until the next exchange.

    Parameters
    ----------
    nodes : sequence of Node
        Some component, in order of creation.
    """
    start: dict[Node, Node] = {}
    for node in nodes:
        [*parents] = [parent for parent in node.parents if parent in start]
        start[node] = node if _exchanges(node) or not parents else start[parents[0]]

    hints: dict[Node, int] = {}
    for node in nodes:
        if isinstance(node, HintNode):
            hints[start[node]] = max(node.parallelism, hints.get(start[node], 1))
        if isinstance(node, StateUpdateNode) and node.state.required_partitions:
            hints[start[node]] = node.state.required_partitions

    counts: dict[Node, int] = {}
    for node in nodes:
        first = start[node]
        if first is not node:
            counts[node] = counts[first]
        elif gathers(node):
            counts[node] = 1
        else:
            merged = [counts[parent] for parent in node.parents if isinstance(node, MergeNode)]
            counts[node] = max([hints.get(node, 1), *merged])
    return counts


def gathers(node: Node) -> bool:
    """Whether a node brings all tuples into one partition."""
    if isinstance(node, PartitionNode):
        return node.how in _GATHERING
    return isinstance(node, AggregateNode) and node.group is None


def keyed(update: StateUpdateNode) -> bool:
    """Whether a state update may run in several partitions: directly after an exchange by key."""
    before = update.parent
    while isinstance(before, HintNode | NameNode):
        before = before.parent
    if isinstance(before, PartitionNode):
        return before.how == "partitionBy"
    return isinstance(before, AggregateNode) and before.group is not None


def _exchanges(node: Node) -> bool:
    return isinstance(node, SourceNode | DRPCNode | PartitionNode | AggregateNode | MergeNode)
