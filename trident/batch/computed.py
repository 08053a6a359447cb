"""A batch that only has to be written: the updates of states, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

from trident.batch.outcome import Counters, Outcome
from trident.job.job import Update
from trident.kernels.task import Task
from trident.states.control import ControlRecord
from trident.states.maps.reading import view_before
from trident.states.state import State
from trident.tuples.block import Block


class DeferredUpdate(NamedTuple):
    """The tuples of one partition that will update a state, in whichever attempt."""

    update: Update
    block: Block
    partition: int = 0
    partitions: int = 1


@dataclass(frozen=True)
class Computed:
    """A batch whose steps have all run but the updates of states, which are in their order."""

    updates: tuple[DeferredUpdate, ...]
    outcome: Outcome

    @property
    def engine(self) -> str:
        """The engine that has computed it, and will write it."""
        return self.outcome.engine

    @cached_property
    def nbytes(self) -> int:
        """Roughly how many bytes it takes in memory."""
        return sum(update.block.nbytes for update in self.updates)


NOTHING_COMPUTED = Computed((), Outcome())


@dataclass(frozen=True)
class Postponed:
    """A batch whose steps run after it has begun, as tasks write it, or a step reads what it
    updates."""

    engine: str
    tuples: int
    run: Callable[[ControlRecord], Outcome]
    nbytes = 0
    """Nothing is kept for it in this process."""


class Computing:
    """A batch whose steps run in a thread; until they end it counts as `expected` bytes."""

    def __init__(self, running: Future[Computed | Postponed], expected: int) -> None:
        self._running = running
        self._expected = expected

    @property
    def nbytes(self) -> int:
        """Roughly how many bytes are kept until it is written."""
        if not self._running.done() or self._running.exception() is not None:
            return self._expected
        return self._running.result().nbytes

    def result(self) -> Computed | Postponed:
        """Wait for its steps; raise what they failed with."""
        return self._running.result()

    def wait(self) -> None:
        """Wait for the end of its steps, even if they fail."""
        wait([self._running])


class BegunStates:
    """The states of one attempt: what its queries read, and those that it has begun to
    update."""

    def __init__(
        self, updates: Iterable[Update], states: Mapping[str, State], record: ControlRecord
    ) -> None:
        self._updates = {update.state.name: update for update in updates}
        self._states = states
        self._record = record
        self._begun: dict[str, State] = {}

    def queried(self, name: str) -> Any:
        """What queries of a state read; if the batch updates it, as it was before."""
        state = self._states[name]
        return view_before(state, self._record) if name in self._updates else state

    def begin(self, name: str) -> State:
        """Return the state, which has begun the attempt."""
        if name not in self._begun:
            self._begun[name] = self._states[name]
            self._begun[name].beginCommit(self._record)
        return self._begun[name]

    def commit(self) -> None:
        """Write all updates; name the step in the error of a value that can't be stored."""
        task = Task(self._record.token.txid, self._record, 0, 1)
        for name, state in self._begun.items():
            with task.at(self._updates[name].name):
                state.commit(self._record)


Apply = Callable[[DeferredUpdate, State, Task], Any]
"""Updates a state, which has begun the attempt, with the tuples of a partition."""


def write_updates(
    computed: Computed,
    record: ControlRecord,
    states: Mapping[str, State],
    counters: Counters,
    apply: Apply,
) -> Outcome:
    """Update the states, which have begun `record`, and write them."""
    before, started = counters.counts(), perf_counter()
    begun = BegunStates([each.update for each in computed.updates], states, record)
    for deferred in computed.updates:
        update = deferred.update
        task = Task(record.token.txid, record, deferred.partition, deferred.partitions)
        with task.at(update.name):
            state = begun.begin(update.state.name)
        apply(deferred, state, task)
    begun.commit()
    counts, seconds = counters.since(before), {"write": perf_counter() - started}
    reached = counters.reached(record.token)
    return computed.outcome + Outcome(0, *counts, seconds, reached=reached)
