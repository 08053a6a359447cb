"""The input of one run of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from trident.batch.computed import DeferredUpdate
from trident.kernels.task import Task
from trident.operations.counters import CounterBook
from trident.operations.dead_letters import Letter
from trident.operations.emitted import Row
from trident.states.control import ControlRecord
from trident.states.state import State
from trident.tuples.block import Block

Rows = list[Row]


def _no_state(name: str) -> NoReturn:
    raise LookupError(f"the state {name!r} was not given to this run")


class ProgramInput(NamedTuple):
    """One run of a program: an attempt of a batch, or a query.

    Aggregators get the `id`: the txid, or the request's number. `record` is None for a query. For a
    state's name `queried` returns the view that its queries read, and `updated` the state, begun.
    With a list `deferred`, updates are noted there instead of made; then no step may take their new
    values. Bad tuples are counted in `counters`, and become `letters`.
    """

    id: object
    record: ControlRecord | None = None
    sources: Mapping[str, Block] = MappingProxyType({})
    queried: Callable[[str], Any] = _no_state
    updated: Callable[[str], State] = _no_state
    deferred: list[DeferredUpdate] | None = None
    counters: CounterBook | None = None
    letters: list[Letter] | None = None

    def task(self, partition: int, partitions: int) -> Task:
        """What a kernel knows of its partition."""
        return Task(self.id, self.record, partition, partitions, self.counters, self.letters)
