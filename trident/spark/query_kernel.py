"""Queries within a batch: in the tasks of a stage where these can reach the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trident.kernels.block import Block
from trident.kernels.kernel import Kernel
from trident.kernels.query_kernel import QueryKernel
from trident.kernels.task import Task
from trident.open_states import as_before
from trident.states.state import State, StateFactory


@dataclass(frozen=True)
class TaskQueryKernel(Kernel):
    """Looks the tuples of each block up in a state that tasks can reach.

    Parameters
    ----------
    query : QueryKernel
        The query.
    factory : StateFactory
        Makes the state, in the task.
    updated : bool
        Whether the same batch updates the state, so that it is read as it was before.
    """

    query: QueryKernel
    factory: StateFactory
    updated: bool

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        with task.at(self.step):
            state = self.factory.makeState({}, None, task.partition, task.partitions)
        try:
            for block in blocks:
                yield self.query.apply(view_of(state, task, updated=self.updated), block, task)
        finally:
            state.close()


def view_of(state: State, task: Task, *, updated: bool) -> Any:
    """What a query reads: of a state that its batch updates, the values as of the batch before."""
    if not updated:
        return state
    assert task.record is not None
    return as_before(state, task.record)
