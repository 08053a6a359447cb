"""Makes the kernel of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trident.kernels.aggregate_kernels import (
    AggregateKernel,
    AggregatorKernel,
    CombinerKernel,
    ReducerKernel,
)
from trident.kernels.grouping_kernel import GroupingKernel
from trident.kernels.join_kernel import JoinKernel
from trident.kernels.kernel import TupleKernel
from trident.kernels.query_kernel import QueryKernel
from trident.kernels.query_row import QueryRow
from trident.kernels.task import step_name
from trident.kernels.tuple_kernels import (
    EachKernel,
    FilterKernel,
    FlatMapKernel,
    MapKernel,
    PeekKernel,
)
from trident.kernels.type_check import type_check
from trident.kernels.update_kernel import UpdateKernel
from trident.operations.interfaces import CombinerAggregator, ReducerAggregator
from trident.operations.origins import ORIGIN
from trident.plan.nodes import (
    AggregatingNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    JoinNode,
    MapNode,
    PartitionNode,
    PeekNode,
    StateQueryNode,
    StateUpdateNode,
)
from trident.tuples.fields import Fields

TupleNode = EachNode | FilterNode | MapNode | FlatMapNode | PeekNode
"""The steps that work on each tuple by itself."""


def tuple_kernel(node: TupleNode, operation: Any, needed: Iterable[str]) -> TupleKernel:
    """The kernel of a step that works on each tuple by itself.

    Parameters
    ----------
    node : Node
        The step.
    operation : Operation
        What it runs: the step's own operation, or a copy of it.
    needed : iterable of str
        The fields of its output that later steps read.
    """
    step, given = step_name(node), node.parent.fields
    carried = tuple(name for name in needed if name in given or name == ORIGIN)
    replaced = tuple(name for name in carried if name == ORIGIN)
    match node:
        case EachNode():
            inputs = given.select(node.inputs)
            return EachKernel(step, operation, inputs, carried, node.outputs.names)
        case FilterNode():
            return FilterKernel(step, operation, given.select(node.inputs), carried)
        case MapNode():
            return MapKernel(step, operation, given, replaced, node.fields.names)
        case FlatMapNode():
            return FlatMapKernel(step, operation, given, replaced, node.fields.names)
        case PeekNode():
            return PeekKernel(step, operation, given, carried)


def grouping_kernel(
    node: PartitionNode, operation: Any, needed: Iterable[str], count: int
) -> GroupingKernel:
    """The kernel of a grouping of the user's into `count` partitions; see `tuple_kernel` for the
    other parameters."""
    return GroupingKernel(step_name(node), operation, node.parent.fields, tuple(needed), count)


def join_kernel(node: JoinNode, needed: Iterable[str]) -> JoinKernel:
    """The kernel of a join; see `tuple_kernel` for what is `needed`."""
    keys = tuple(key.names for key in node.keys)
    columns = {name: node.columns[name] for name in needed}
    return JoinKernel(step_name(node), keys, node.required, columns)


def aggregate_kernel(
    node: AggregatingNode, operation: Any, *, zero: bool = True
) -> AggregateKernel:
    """The kernel that aggregates tuples; see `CombinerKernel` for `zero`."""
    group, inputs = node.group or Fields(), node.parent.fields.select(node.inputs)
    given = step_name(node), operation, group.names, inputs, node.outputs.names
    if isinstance(operation, CombinerAggregator):
        return CombinerKernel(*given, zero=zero)
    return (ReducerKernel if isinstance(operation, ReducerAggregator) else AggregatorKernel)(*given)


def final_kernel(node: AggregatingNode, operation: Any) -> CombinerKernel:
    """The kernel that combines the aggregates of several partitions, where these combine first."""
    group, outputs = node.group or Fields(), node.outputs.names
    step = step_name(node)
    return CombinerKernel(step, operation, group.names, Fields(*outputs), outputs, partial=True)


def query_kernel(node: StateQueryNode, operation: Any, needed: Iterable[str]) -> QueryKernel:
    """The kernel of a query; see `tuple_kernel` for the parameters."""
    carried = tuple(name for name in needed if name in node.parent.fields or name == ORIGIN)
    inputs = node.parent.fields.select(node.inputs)
    return QueryKernel(step_name(node), operation, inputs, carried, node.outputs.names)


def query_row(
    nodes: Sequence[StateQueryNode],
    operations: Sequence[Any],
    needed: Mapping[Any, Iterable[str]],
) -> QueryRow:
    """Look-ups that stand in a row, or a single one.

    Parameters
    ----------
    nodes : sequence of StateQueryNode
        The steps.
    operations : sequence of QueryFunction
        What each of them runs.
    needed : mapping of node to iterable of str
        The fields of each step's output that a later step needs.
    """
    queries = [
        query_kernel(node, own, needed[node]) for node, own in zip(nodes, operations, strict=True)
    ]
    return QueryRow(tuple(queries), tuple(map(type_check, nodes)))


def update_kernel(
    node: StateUpdateNode, operation: Any, kept: tuple[str, ...] | None
) -> UpdateKernel:
    """The kernel of a state update; see `UpdateKernel` for what is `kept`."""
    inputs, check = node.parent.fields.select(node.inputs), type_check(node)
    return UpdateKernel(step_name(node), operation, inputs, node.fields.names, check, kept)
