"""Whether Spark can be told the type of everything that leaves a Python stage."""

from __future__ import annotations

from trident.plan.nodes import (
    AggregateNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    NameNode,
    NativeNode,
    Node,
    PartitionAggregateNode,
    PartitionNode,
    PeekNode,
    ProjectNode,
    SourceNode,
    StateQueryNode,
    StateUpdateNode,
    StaticStateNode,
)
from trident.plan.types import field_type
from trident.spark.group import GroupPlan, is_on_driver
from trident.spark.natives import combines_in_python, is_native

FUSED = (
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    NameNode,
    PartitionAggregateNode,
    PeekNode,
    ProjectNode,
    StateQueryNode,
)
"""Python steps that go on in the stage of the step before."""


def check_types(group: GroupPlan) -> None:
    """Every column that leaves a Python stage has a type.

    Raises
    ------
    FieldError
        For one that has none, with where it comes from and how to declare it.
    """
    untyped: dict[Node, set[str]] = {}
    for node in group.nodes:
        fresh = _made_in_python(node)
        before: set[str] = set()
        for parent in node.parents:
            if isinstance(parent, StaticStateNode):
                continue
            if _leaves(group, parent, node):
                for name in _leaving(group, parent, node):
                    if name in untyped[parent]:
                        field_type(parent, name)
            else:
                before |= untyped[parent] - fresh
        unknown = {name for name in fresh if node.fields.types[name] is None}
        if isinstance(node, AggregateNode) and combines_in_python(node):
            for name in unknown:
                field_type(node, name)
        if isinstance(node, StateUpdateNode | SourceNode) and group.consumers(node):
            for name in unknown & set(group.needed[node]):
                field_type(node, name)
        untyped[node] = (before | unknown) & set(node.fields)


def _made_in_python(node: Node) -> set[str]:
    """The columns whose type only the plan can tell."""
    match node:
        case NativeNode() | SourceNode(clock="dataframe"):
            return set()
        case AggregateNode() if is_native(node.aggregator):
            return set()
        case _:
            return set(node.facts.makes)


def _leaves(group: GroupPlan, parent: Node, node: Node) -> bool:
    """Whether what `node` takes of `parent` has to be a DataFrame."""
    if group.is_shared(parent):
        return True
    if isinstance(node, PartitionNode) and group.is_routed_later(node):
        return False
    if isinstance(node, StateQueryNode) and is_on_driver(node.state.state):
        return True
    if isinstance(node, AggregateNode) and combines_in_python(node):
        return False
    return not isinstance(node, FUSED)


def _leaving(group: GroupPlan, parent: Node, node: Node) -> tuple[str, ...]:
    if isinstance(node, StateUpdateNode):
        return node.inputs.names
    return group.needed[parent]
