"""What Spark can't run of a group, found when it is started."""

from __future__ import annotations

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from trident.errors import FieldError, OperationTypeError
from trident.plan.field_type import field_type
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
    StaticStreamNode,
)
from trident.plan.plan import BatchGroup, Plan
from trident.spark.compile import check_steps
from trident.spark.group import GroupPlan, is_on_driver
from trident.spark.natives import combines_in_python, is_native
from trident.spark.settings import default_partitions
from trident.spouts.classic import has_partitions

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
"""The steps in Python whose kernels join the stage of the step before."""

_OURS = "__trident"


def checked(plan: Plan, group: BatchGroup, spark: SparkSession) -> GroupPlan:
    """Return a group as Spark runs it, as far as is known before a batch.

    Raises
    ------
    PlanError
        For a step that Spark can't run, or an operation that can't be sent to its workers.
    FieldError
        For a field whose name Spark can't take, or whose type it needs to know.
    """
    check_steps(group.nodes)
    prepared = GroupPlan(plan, group, default_partitions(spark))
    check_names(prepared, spark)
    check_pickling(prepared)
    check_types(prepared)
    return prepared


def check_names(group: GroupPlan, spark: SparkSession) -> None:
    """No step has a field that is named like a column of the engine's.

    Nor two whose names differ only in case, unless Spark heeds that.

    Raises
    ------
    FieldError
        For a step that has, with where it was declared.
    """
    for node in group.nodes:
        for name in node.fields:
            if name.lower().startswith(_OURS):
                what = f"{node.origin.call} at {node.origin}: on Spark no field can be named"
                raise FieldError(what, name, (), f"Names that begin with {_OURS} are taken.")
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        return
    for node in group.nodes:
        known: dict[str, str] = {}
        for name in node.fields:
            other = known.setdefault(name.lower(), name)
            if other != name:
                what = (
                    f"{node.origin.call} at {node.origin}: Spark doesn't tell {name!r} from the "
                    "field"
                )
                advice = "Rename one of them, or set spark.sql.caseSensitive to true."
                raise FieldError(what, other, (), advice)


def check_pickling(group: GroupPlan) -> None:
    """All operations, factories of states and spouts pickle that are used on executors.

    Raises
    ------
    OperationTypeError
        For one that doesn't, with its step and line. Spark would print a traceback at the first
        batch and name neither.
    """
    for node in group.nodes:
        for sent in _sent(group, node):
            try:
                cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
            except Exception as error:
                what = f"{node.origin.call} at {node.origin}: can't be sent to executors ({error}):"
                made = "getEmitter()" if isinstance(node, SourceNode) else "prepare()"
                advice = f"Make what can't be pickled, such as connections and locks, in {made}."
                raise OperationTypeError(what, node.call_text, (), advice) from error


def _sent(group: GroupPlan, node: Node) -> tuple[object, ...]:
    if isinstance(node, StateUpdateNode):
        return () if is_on_driver(node.state) else (node.updater, node.state.factory)
    if isinstance(node, StateQueryNode):
        return () if group.asks_here(node) else (node.function, node.state.state.factory)
    if isinstance(node, SourceNode):
        return (node.source,) if has_partitions(node.source) else ()
    if isinstance(node, NativeNode):
        return ()  # Spark runs it, and the driver tells Spark what it is
    return (node.facts.operation,)


def check_types(group: GroupPlan) -> None:
    """Every column that leaves a stage of Python has a type.

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
                leaving = group.needed[parent]
                for name in node.inputs.names if isinstance(node, StateUpdateNode) else leaving:
                    if name in untyped[parent]:
                        field_type(parent, name)
            else:
                before |= untyped[parent] - fresh
        unknown = {name for name in fresh if node.fields.types[name] is None}
        if isinstance(node, AggregateNode) and combines_in_python(node):
            for name in unknown:
                field_type(node, name)
        leaves = isinstance(node, StateUpdateNode | SourceNode) and group.consumers(node)
        if leaves or (isinstance(node, StateQueryNode) and group.asks_here(node)):
            for name in unknown & set(group.needed[node]):
                field_type(node, name)
        untyped[node] = (before | unknown) & set(node.fields)
    if group.group.requests is not None:
        for name in untyped[group.nodes[-1]]:
            field_type(group.nodes[-1], name)


def _made_in_python(node: Node) -> set[str]:
    """The columns whose types the plan has to know, as Spark doesn't."""
    match node:
        case NativeNode() | SourceNode(clock="dataframe") | StaticStreamNode():
            return set()
        case AggregateNode() if is_native(node.aggregator):
            return set()
        case _:
            return set(node.facts.makes)


def _leaves(group: GroupPlan, parent: Node, node: Node) -> bool:
    """Whether `node` needs the output of `parent` as a DataFrame."""
    if group.is_shared(parent):
        return True
    if isinstance(node, PartitionNode) and group.is_routed_later(node):
        return False
    if isinstance(node, StateQueryNode) and group.asks_here(node):
        return True
    if isinstance(node, AggregateNode) and combines_in_python(node):
        return False
    return not isinstance(node, FUSED)
