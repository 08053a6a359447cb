"""From a node of the plan to the step that runs it within a partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trident.kernels.conforming import conform_step
from trident.kernels.folds import AggregateStep, CombineStep, FoldStep, ReduceStep
from trident.kernels.lookup import Lookup
from trident.kernels.step import TupleStep
from trident.kernels.steps import EachStep, FilterStep, FlatMapStep, MapStep, PeekStep
from trident.kernels.task import Place
from trident.kernels.update import Update
from trident.operations.interfaces import CombinerAggregator, ReducerAggregator
from trident.plan.nodes import (
    AggregateNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    MapNode,
    PartitionAggregateNode,
    PeekNode,
    StateQueryNode,
    StateUpdateNode,
)
from trident.tuples.fields import Fields

TupleNode = EachNode | FilterNode | MapNode | FlatMapNode | PeekNode
"""What looks at each tuple by itself."""
FoldNode = PartitionAggregateNode | AggregateNode


def tuple_step(node: TupleNode, operation: Any, place: Place, needed: Iterable[str]) -> TupleStep:
    """The step of a node that looks at each tuple by itself.

    Parameters
    ----------
    node : Node
        The node.
    operation : Operation
        What it runs: the node's own operation, or a copy.
    place : Place
        The node, for errors.
    needed : iterable of str
        The fields of its output that later steps need.
    """
    carried = tuple(name for name in needed if name in node.parent.fields)
    match node:
        case EachNode():
            inputs = node.parent.fields.select(node.inputs)
            return EachStep(place, operation, inputs, carried, node.outputs.names)
        case FilterNode():
            return FilterStep(place, operation, node.parent.fields.select(node.inputs), carried)
        case MapNode():
            return MapStep(place, operation, node.parent.fields, (), node.fields.names)
        case FlatMapNode():
            return FlatMapStep(place, operation, node.parent.fields, (), node.fields.names)
        case PeekNode():
            return PeekStep(place, operation, node.parent.fields, carried)


def fold_step(node: FoldNode, operation: Any, place: Place, *, zero: bool = True) -> FoldStep:
    """The step of an aggregate over the tuples of a partition; see `CombineStep` for `zero`."""
    group = node.group.names if node.group else ()
    given = place, operation, group, node.parent.fields.select(node.inputs), node.outputs.names
    if isinstance(operation, CombinerAggregator):
        return CombineStep(*given, zero=zero)
    return (ReduceStep if isinstance(operation, ReducerAggregator) else AggregateStep)(*given)


def final_step(node: FoldNode, operation: CombinerAggregator[Any], place: Place) -> CombineStep:
    """The step that combines the aggregates of several partitions."""
    group, outputs = node.group.names if node.group else (), node.outputs.names
    return CombineStep(place, operation, group, Fields(*outputs), outputs, partial=True)


def lookup_of(node: StateQueryNode, operation: Any, place: Place, needed: Iterable[str]) -> Lookup:
    """What the query of a node does."""
    carried = tuple(name for name in needed if name in node.parent.fields)
    inputs = node.parent.fields.select(node.inputs)
    return Lookup(place, operation, inputs, carried, node.outputs.names)


def update_of(
    node: StateUpdateNode, operation: Any, place: Place, kept: tuple[str, ...] | None
) -> Update:
    """What the update of a node does; see `Update` for what is `kept`."""
    inputs, check = node.parent.fields.select(node.inputs), conform_step(node, place)
    return Update(place, operation, inputs, node.fields.names, check, kept)
