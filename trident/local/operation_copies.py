"""The user's operations in a program: each partition of a step has one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

from trident.errors import OperationTypeError
from trident.operations.counters import CounterBook
from trident.operations.interfaces import Operation, TridentOperationContext
from trident.plan.nodes import Node


class OperationCopies:
    """Hands operations out while a program is compiled; prepares them, and cleans them up.

    A step with one partition runs the very object that the topology was given: it need not be
    copyable, and a test can look into it. Where there are several partitions each runs a copy, as
    each task does on Spark.
    """

    def __init__(self) -> None:
        self.counters = CounterBook()
        self._made: list[tuple[Operation, TridentOperationContext]] = []
        self._prepared = ExitStack()

    def of(self, node: Node, count: int) -> list[Any]:
        """The operation of a step for each of its partitions, in their order.

        Parameters
        ----------
        node : Node
            The step.
        count : int
            How many partitions it runs in.

        Returns
        -------
        list of Operation or None
            None for each where the step has no operation.

        Raises
        ------
        OperationTypeError
            Where there are several partitions and the operation can't be copied.
        """
        operation = node.facts.operation
        if not isinstance(operation, Operation):
            return [None] * count
        own = [operation] if count == 1 else [_copy(operation, node, count) for _ in range(count)]
        for index, each in enumerate(own):
            self._made.append((each, TridentOperationContext(index, count, self.counters)))
        return own

    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Prepare each, once; where one fails, those that were prepared are cleaned up."""
        with ExitStack() as prepared:
            for operation, context in self._made:
                operation.prepare(conf, context)
                prepared.callback(operation.cleanup)
            self._prepared = prepared.pop_all()

    def cleanup(self) -> None:
        """Clean up what was prepared, the last first; an error of one doesn't stop the others."""
        self._prepared.close()


def _copy(operation: Operation, node: Node, count: int) -> Operation:
    try:
        return deepcopy(operation)
    except Exception as error:
        what = (
            f"{node.origin.call} at {node.origin}: can't be copied for each of its {count} "
            f"partitions ({error}):"
        )
        advice = "Make what can't be copied, such as connections and locks, in prepare()."
        raise OperationTypeError(what, node.call_text, (), advice) from error
