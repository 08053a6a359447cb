"""Queries within a batch: in the tasks of a stage where these can reach the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from trident.kernels.kernel import Kernel
from trident.kernels.query_row import QueryRow
from trident.kernels.task import Task
from trident.states.maps.reading import view_before
from trident.states.state import State, StateFactory
from trident.tuples.block import Block


@dataclass(frozen=True)
class TaskQueryKernel(Kernel):
    """Looks tuples up in states made in the task, as before where the batch updates them too."""

    row: QueryRow
    states: tuple[tuple[StateFactory, bool], ...]

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        with ExitStack() as closing:
            views = []
            for query, (factory, updated) in zip(self.row.queries, self.states, strict=True):
                with task.at(query.step):
                    state = factory.makeState({}, None, task.partition, task.partitions)
                closing.callback(state.close)
                views.append(view_state(state, task, updated=updated))
            for block in blocks:
                yield self.row.apply(views, block, task)


def view_state(state: State, task: Task, *, updated: bool) -> Any:
    """What a query reads: of a state that its batch updates, the values as of the batch before."""
    if not updated:
        return state
    assert task.record is not None
    return view_before(state, task.record)
