"""Which fields of each step's output anything after it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch

from trident.fields import Fields
from trident.plan.nodes import (
    AggregateNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    MapNode,
    MergeNode,
    NativeNode,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    StateQueryNode,
    StateUpdateNode,
)
from trident.plan.plan import Plan


def needed_fields(plan: Plan) -> Mapping[Node, Fields]:
    """The fields each step must really deliver, in the order of its output.

    A query's result is needed whole; a stream that ends without a state needs nothing.

    Examples
    --------
    >>> from trident import Count, FixedBatchSpout, MemoryMapState, Split, TridentTopology
    >>> topology = TridentTopology()
    >>> stream = topology.newStream("s", FixedBatchSpout("id long, text string", 3))
    >>> counts = (stream.each("text", Split(), "word").groupBy("word")
    ...     .persistentAggregate(MemoryMapState.Factory(), Count(), "count"))
    >>> [str(fields) for fields in needed_fields(topology.plan()).values()]
    ['text', 'word', 'word, count', '']
    """
    needed: dict[Node, set[str]] = {node: set() for node in plan.nodes}
    for query in plan.drpc.values():
        needed[query.result].update(query.result.fields)
    for node in reversed(plan.nodes):
        for position, parent in enumerate(node.parents):
            wanted = read_from(node, frozenset(needed[node]), position)
            needed[parent].update(name for name in wanted if name in parent.fields)
    return {
        node: node.fields.select([name for name in node.fields if name in names])
        for node, names in needed.items()
    }


@singledispatch
def read_from(node: Node, needed: frozenset[str], position: int) -> Iterable[str]:
    """The fields a step reads from a parent, when these fields of its own are needed."""
    return needed


@read_from.register
def _(node: EachNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return needed.union(node.inputs)


@read_from.register
def _(node: FilterNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return needed.union(node.inputs)


@read_from.register
def _(node: StateQueryNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return needed.union(node.inputs)


@read_from.register(MapNode)
@read_from.register(FlatMapNode)
@read_from.register(PeekNode)
def _(node: MapNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return node.parent.fields


@read_from.register
def _(node: NativeNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return node.parent.fields if node.inputs is None else needed.union(node.inputs)


@read_from.register
def _(node: PartitionNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return needed.union(node.by or ())


@read_from.register(AggregateNode)
@read_from.register(PartitionAggregateNode)
def _(node: AggregateNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return (*(node.group or ()), *node.inputs)


@read_from.register
def _(node: StateUpdateNode, needed: frozenset[str], position: int) -> Iterable[str]:
    return (*(node.group or ()), *node.inputs)


@read_from.register
def _(node: MergeNode, needed: frozenset[str], position: int) -> Iterable[str]:
    columns = zip(node.fields, node.parents[position].fields, strict=True)
    return [theirs for ours, theirs in columns if ours in needed]
