"""A task runs a step in one partition, and names the step in what its operation raises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import length_hint
from typing import Any, NamedTuple, NoReturn

from trident.operation_error import OperationError, operation_error, shown_tuple
from trident.operations.counters import CounterBook
from trident.operations.dead_letters import Letter
from trident.plan.nodes import Node
from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn
from trident.states.errors import FailedException, SerializationError, StateError
from trident.tuples.block import NOTHING, Block

# These errors pass unchanged: the runner acts on failed attempts and errors of states, and a reader
# of committed values begins again after BatchMovedOn.
_PASSING = (FailedException, StateError, BatchMovedOn, OperationError)


class UnnamedError(Exception):
    """Carries what an operation raised to a caller that catches it; to name the step takes long."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


@dataclass(frozen=True)
class StepName:
    """A step as errors name it: as in ``explain()``, and where it was declared, by which call."""

    text: str
    declared: str
    call: str = ""


def step_name(node: Node) -> StepName:
    """A step of the plan as errors name it."""
    return StepName(node.call_text, str(node.origin), node.origin.call)


class Task(NamedTuple):
    """One partition of a batch, or of a query, whose `record` is None and `batch` the request's
    number."""

    batch: object
    record: ControlRecord | None
    partition: int
    partitions: int
    counters: CounterBook | None = None
    letters: list[Letter] | None = None
    unnamed: bool = False
    """Whether what operations raise becomes an `UnnamedError`."""

    def at(
        self,
        step: StepName,
        names: Sequence[str] = (),
        block: Block = NOTHING,
        pending: Iterator[Any] | None = None,
    ) -> _NamingStep:
        """Names the step, and the tuple that `pending` has reached, in errors of the operation."""
        return _NamingStep(self, step, names, block, pending)


class _NamingStep(NamedTuple):
    task: Task
    step: StepName
    names: Sequence[str]
    block: Block
    pending: Iterator[Any] | None

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        passes = isinstance(error, _PASSING) and not isinstance(error, SerializationError)
        if isinstance(error, Exception) and not passes:
            if self.task.unnamed:
                raise error if isinstance(error, UnnamedError) else UnnamedError(error) from None
            self._raise(error)

    def _raise(self, error: Exception) -> NoReturn:
        record = self.task.record
        raise operation_error(
            error,
            step=self.step.text,
            declared=self.step.declared,
            token=record.token if record else None,
            partition=self.task.partition,
            row=self._row(),
        ) from None

    def _row(self) -> str | None:
        if self.pending is None:
            return None
        position = self.block.length - length_hint(self.pending) - 1
        if position < 0:
            return None
        return shown_tuple(self.names, self.block.tuple_at(position, self.names))
