"""Queries of a state inside a batch: in a stage where the state can be reached from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trident.kernels.block import Block
from trident.kernels.conforming import ConformStep
from trident.kernels.lookup import Lookup
from trident.kernels.step import Step
from trident.kernels.task import Task
from trident.plan_states import as_before
from trident.spark.kernels import prepared
from trident.states.state import State, StateFactory


@dataclass(frozen=True)
class QueryStep(Step):
    """Looks the tuples of each block up in a state that tasks can reach.

    Parameters
    ----------
    lookup : Lookup
        What is asked.
    factory : StateFactory
        Makes the state, in the task.
    updated : bool
        Whether the same batch updates the state, so that it is read as it was before.
    """

    lookup: Lookup
    factory: StateFactory
    updated: bool

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        with task.at(self.place):
            state = self.factory.makeState({}, None, task.partition, task.partitions)
        try:
            for block in blocks:
                yield self.lookup.apply(view_of(state, task, updated=self.updated), block, task)
        finally:
            state.close()


def view_of(state: State, task: Task, *, updated: bool) -> Any:
    """What a query reads of a state that its batch updates, or doesn't."""
    if not updated:
        return state
    assert task.record is not None
    return as_before(state, task.record)


def answered(
    lookup: Lookup, view: Any, block: Block, check: ConformStep | None, task: Task
) -> Block:
    """Each tuple of a block with each of its answers; for states on the driver."""
    with prepared(lookup.place, lookup.operation, task):
        made = lookup.apply(view, block, task)
    return made if check is None else check.apply(made, task)
