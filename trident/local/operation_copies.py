"""The user's operations in a program: each partition of a step has one of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from trident.errors import OperationTypeError
from trident.kernels.task import StepName
from trident.operations.counters import CounterBook
from trident.operations.interfaces import Operation, TridentOperationContext


class Running(Protocol):
    """Runs an operation: a kernel, in any form."""

    @property
    def step(self) -> StepName:
        """The step, for errors."""

    @property
    def operation(self) -> Any:
        """The operation that the user gave."""


R = TypeVar("R", bound=Running)


class OperationCopies:
    """Copies kernels with their operations for each partition; prepares and cleans these up.

    A step with one partition runs the very object that the topology was given: it need not be
    copyable, and a test can look into it. With several partitions each runs a copy, as each task
    does on Spark.
    """

    def __init__(self) -> None:
        self.counters = CounterBook()
        self._made: list[tuple[Operation, TridentOperationContext]] = []
        self._prepared = ExitStack()

    def of(self, kernel: R, count: int) -> list[R]:
        """The kernel for each partition; an operation that can't be copied is refused."""
        operation = kernel.operation
        if not isinstance(operation, Operation):
            return [kernel] * count
        made = [kernel] if count == 1 else [_copied(kernel, count) for _ in range(count)]
        for index, each in enumerate(made):
            context = TridentOperationContext(index, count, self.counters)
            self._made.append((each.operation, context))
        return made

    def prepare(self, conf: Mapping[str, Any]) -> None:
        """Prepare each, once; if one fails, clean up those that were prepared."""
        with ExitStack() as prepared:
            for operation, context in self._made:
                operation.prepare(conf, context)
                prepared.callback(operation.cleanup)
            self._prepared = prepared.pop_all()

    def cleanup(self) -> None:
        """Clean up what was prepared, the last first; an error of one doesn't stop the others."""
        self._prepared.close()


def _copied(kernel: R, count: int) -> R:
    try:
        return replace(kernel, operation=deepcopy(kernel.operation))  # type: ignore[type-var]
    except Exception as error:
        step = kernel.step
        what = (
            f"{step.call} at {step.declared}: can't be copied for each of its {count} "
            f"partitions ({error}):"
        )
        advice = "Make what can't be copied, such as connections and locks, in prepare()."
        raise OperationTypeError(what, step.text, (), advice) from error
