"""Where a step runs, and how what a user's operation raises is blamed on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import length_hint
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

from trident.failures import OperationError, operation_error, shown_tuple
from trident.kernels.block import NOTHING, Block
from trident.plan.describe import describe
from trident.plan.nodes import Node
from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn
from trident.states.errors import FailedException, SerializationError, StateError

# The runner decides on failed attempts and on what states say, a reader on when to begin again.
_PASSING = (FailedException, StateError, BatchMovedOn, OperationError)


@dataclass(frozen=True)
class Place:
    """A step as errors name it.

    Parameters
    ----------
    step : str
        The step as in ``explain()``.
    declared : str
        ``file:line`` of the call that declared it.
    """

    step: str
    declared: str


def place_of(node: Node) -> Place:
    """A step of the plan as errors name it."""
    return Place(describe(node), str(node.origin))


class Task(NamedTuple):
    """One partition of a batch, or of a query.

    Parameters
    ----------
    batch : object
        What aggregators are told: the txid, or the request's number.
    record : ControlRecord or None
        What every state of the group has begun; its token is the attempt. None for a query.
    partition : int
        The partition, from 0.
    partitions : int
        How many there are.
    """

    batch: object
    record: ControlRecord | None
    partition: int
    partitions: int

    def at(
        self,
        place: Place,
        names: Sequence[str] = (),
        block: Block = NOTHING,
        pending: Iterator[Any] | None = None,
    ) -> _Blaming:
        """A context that names the step, and the tuple at hand, in what an operation raises.

        What the protocol acts upon passes as it is.

        Parameters
        ----------
        place : Place
            The step.
        names : sequence of str
            The fields that the operation is handed.
        block : Block
            The tuples that it is handed.
        pending : iterator
            Over something of the block's length; how far it has come tells the tuple at hand,
            which costs nothing. None names no tuple.
        """
        return _Blaming(self, place, names, block, pending)


class _Blaming(NamedTuple):
    task: Task
    place: Place
    names: Sequence[str]
    block: Block
    pending: Iterator[Any] | None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            return
        passes = isinstance(error, _PASSING) and not isinstance(error, SerializationError)
        if isinstance(error, Exception) and not passes:
            self._raise(error)

    def _raise(self, error: Exception) -> NoReturn:
        record = self.task.record
        raise operation_error(
            error,
            step=self.place.step,
            declared=self.place.declared,
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
