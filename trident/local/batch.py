"""What a run of a compiled program is given, and how its steps blame a user's exception."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from trident.failures import describe, operation_error
from trident.plan.describe import describe as describe_step
from trident.plan.nodes import Node, StateUpdateNode, StaticStateNode
from trident.rows import Row
from trident.states.cut import BatchMovedOn
from trident.states.errors import FailedException, SerializationError, StateError
from trident.states.state import State
from trident.states.values import Token

Rows = list[Row]
Partitions = list[Rows]


def _no_state(node: Node) -> NoReturn:
    raise LookupError(f"{node!r} was not given to this run")


@dataclass(frozen=True, slots=True)
class Batch:
    """One run of a program: an attempt of a batch, or a query.

    Parameters
    ----------
    id : object
        What aggregators are told: the txid, or the request's number.
    token : Token or None
        The attempt; None for a query.
    sources : mapping of Node to list of tuple
        The tuples of each source.
    queried : callable
        From the node of a state to what queries of it read.
    updated : callable
        From a state update to the state, begun.
    """

    id: object
    token: Token | None = None
    sources: Mapping[Node, Rows] = field(default_factory=dict)
    queried: Callable[[StateUpdateNode | StaticStateNode], Any] = _no_state
    updated: Callable[[StateUpdateNode], State] = _no_state


def blame(
    error: Exception,
    node: Node,
    batch: Batch,
    partition: int,
    row: Sequence[Any] | None = None,
    fields: Sequence[str] | None = None,
) -> NoReturn:
    """Raise `OperationError` for what a step raised.

    What the protocol acts upon passes as it is: failed attempts, state errors, and a reader that
    has to begin again.

    Parameters
    ----------
    error : Exception
        As caught.
    node, batch, partition
        Where: the step, the run, the partition from 0.
    row, fields
        The tuple at hand and its fields, by default the parent's.
    """
    passes = isinstance(error, FailedException | StateError | BatchMovedOn)
    if passes and not isinstance(error, SerializationError):
        raise error
    names = node.parents[0].fields.names if fields is None and node.parents else fields or ()
    raise operation_error(
        error,
        step=describe_step(node),
        declared=str(node.origin),
        token=batch.token,
        partition=partition,
        row=None if row is None else describe(names, row),
    ) from None
