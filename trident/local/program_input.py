"""What a program is run with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from trident.batch.computed import DeferredUpdate
from trident.kernels.task import Task
from trident.operations.emitted import Row
from trident.plan.nodes import Node, StateUpdateNode, StaticStateNode
from trident.states.control import ControlRecord
from trident.states.state import State
from trident.tuples.block import Block

Rows = list[Row]


def _no_state(node: Node) -> NoReturn:
    raise LookupError(f"{node!r} was not given to this run")


class ProgramInput(NamedTuple):
    """One run of a program: an attempt of a batch, or a query.

    Parameters
    ----------
    id : object
        What aggregators are told: the txid, or the request's number.
    record : ControlRecord or None
        What every state has begun; None for a query.
    sources : mapping of Node to Block
        The tuples of each source.
    queried : callable
        From the node of a state to what queries of it read.
    updated : callable
        From a state update to the state, begun.
    deferred : list of DeferredUpdate or None
        Where updates are noted in place of being made; no step may take their new values.
    """

    id: object
    record: ControlRecord | None = None
    sources: Mapping[Node, Block] = MappingProxyType({})
    queried: Callable[[StateUpdateNode | StaticStateNode], Any] = _no_state
    updated: Callable[[StateUpdateNode], State] = _no_state
    deferred: list[DeferredUpdate] | None = None

    def task(self, partition: int, partitions: int) -> Task:
        """What one partition of a step is told."""
        return Task(self.id, self.record, partition, partitions)
