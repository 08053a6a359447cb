"""A step in one line, for explanations, progress and errors: as the call that declared it."""

from __future__ import annotations

from functools import singledispatch

from trident.errors import PlanError
from trident.operations.interfaces import operation_name
from trident.plan.nodes import (
    AggregateNode,
    DRPCNode,
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    MergeNode,
    NameNode,
    NativeNode,
    NewValuesNode,
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
from trident.tuples.fields import Fields


@singledispatch
def describe(node: Node) -> str:
    """One line for one step.

    Examples
    --------
    >>> from trident.tuples.fields import Fields
    >>> from trident.plan.nodes import HintNode, DRPCNode
    >>> from trident.plan.call_site import CallSite
    >>> origin = CallSite("app.py", 3, "newDRPCStream")
    >>> describe(DRPCNode(id=1, origin=origin, function="words"))
    'newDRPCStream("words")'
    """
    what = f"{node.origin.call} at {node.origin}: nobody has told how to describe a"
    advice = "Register its description in trident/plan/describe.py."
    raise PlanError(what, type(node).__name__, (), advice)


@describe.register
def _(node: SourceNode) -> str:
    mode = "" if node.output_mode == "append" else f', outputMode="{node.output_mode}"'
    return f'newStream("{node.stream_id}", {type(node.source).__name__}{mode})'


@describe.register
def _(node: DRPCNode) -> str:
    return f'newDRPCStream("{node.function}")'


@describe.register
def _(node: EachNode) -> str:
    return _call("each", node.inputs, operation_name(node.function), node.outputs)


@describe.register
def _(node: FilterNode) -> str:
    return _call(node.origin.call, node.inputs, operation_name(node.filter))


@describe.register
def _(node: MapNode) -> str:
    return _call("map", None, operation_name(node.function), node.outputs)


@describe.register
def _(node: FlatMapNode) -> str:
    return _call("flatMap", None, operation_name(node.function), node.outputs)


@describe.register
def _(node: PeekNode) -> str:
    return _call("peek", None, operation_name(node.consumer))


@describe.register
def _(node: ProjectNode) -> str:
    return f"project({node.keep})"


@describe.register
def _(node: NativeNode) -> str:
    return _call(node.origin.call, node.inputs, node.expression.label, node.outputs)


@describe.register
def _(node: PartitionNode) -> str:
    return f"{node.how}({node.by or ''})"


@describe.register
def _(node: PartitionAggregateNode) -> str:
    call = _call("partitionAggregate", node.inputs, operation_name(node.aggregator), node.outputs)
    return _grouped(node.group, call)


@describe.register
def _(node: AggregateNode) -> str:
    call = _call("aggregate", node.inputs, operation_name(node.aggregator), node.outputs)
    return _grouped(node.group, call)


@describe.register
def _(node: StateUpdateNode) -> str:
    if node.origin.call == "partitionPersist":
        updater = operation_name(node.updater)
        return _call("partitionPersist", node.inputs, updater, node.outputs, f'"{node.state.name}"')
    return f'persist("{node.state.name}", {type(node.updater).__name__})'


@describe.register
def _(node: NewValuesNode) -> str:
    return f'newValuesStream("{node.parent.state.name}")'


@describe.register
def _(node: StaticStateNode) -> str:
    return f'newStaticState("{node.state.name}")'


@describe.register
def _(node: StateQueryNode) -> str:
    state, function = f'"{node.state.state.name}"', operation_name(node.function)
    return _call("stateQuery", node.inputs, function, node.outputs, state)


@describe.register
def _(node: MergeNode) -> str:
    return f"merge({', '.join(str(parent.id) for parent in node.parents)})"


@describe.register
def _(node: HintNode) -> str:
    return f"parallelismHint({node.parallelism})"


@describe.register
def _(node: NameNode) -> str:
    return f'name("{node.label}")'


def _call(
    method: str,
    inputs: Fields | None,
    operation: str,
    outputs: Fields | None = None,
    first: str = "",
) -> str:
    parts = [first, _some(inputs), operation, _some(outputs)]
    return f"{method}({', '.join(part for part in parts if part)})"


def _some(fields: Fields | None) -> str:
    if not fields:
        return ""
    return str(fields) if len(fields) == 1 else f"[{fields}]"


def _grouped(group: Fields | None, call: str) -> str:
    return f"groupBy({group}).{call}" if group else call
