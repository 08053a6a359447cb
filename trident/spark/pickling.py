"""Whether what runs on executors can be sent there."""

from __future__ import annotations

from pyspark import cloudpickle

from trident.errors import OperationTypeError
from trident.plan.describe import describe
from trident.plan.nodes import NativeNode, Node, StateQueryNode, StateUpdateNode
from trident.spark.group import GroupPlan, is_on_driver


def check_pickling(group: GroupPlan) -> None:
    """Every operation that runs on executors pickles, as do the factories of states used there.

    Raises
    ------
    OperationTypeError
        For one that doesn't, with its step and line. Spark would print a traceback at the first
        batch and name neither.
    """
    for node in group.nodes:
        for sent in _sent(node):
            try:
                cloudpickle.dumps(sent)  # type: ignore[no-untyped-call]
            except Exception as error:
                what = f"{node.origin.call} at {node.origin}: can't be sent to executors ({error}):"
                advice = "Make what can't be pickled, such as connections and locks, in prepare()."
                raise OperationTypeError(what, describe(node), (), advice) from error


def _sent(node: Node) -> tuple[object, ...]:
    if isinstance(node, StateUpdateNode):
        return () if is_on_driver(node.state) else (node.updater, node.state.factory)
    if isinstance(node, StateQueryNode):
        state = node.state.state
        return () if is_on_driver(state) else (node.function, state.factory)
    if isinstance(node, NativeNode):
        return ()  # Spark runs it, and the driver tells Spark what it is
    return (node.facts.operation,)
