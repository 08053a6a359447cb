"""The local engine of one batch group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import cast

from trident.batch.computed import (
    BegunStates,
    Computed,
    DeferredUpdate,
    Postponed,
    write_updates,
)
from trident.batch.outcome import Counters, Outcome, counted_apart
from trident.batch.states import close_states
from trident.job.job import Job
from trident.local.program import Program
from trident.local.program_input import ProgramInput
from trident.operations.counters import CounterBook, summed
from trident.operations.origins import origin_of, with_origin
from trident.plan.nodes import StateNode
from trident.plan.overlap import begins_first
from trident.plan.plan import BatchGroup
from trident.sources.emission import Emission, Emitted, Emitting
from trident.sources.source import Tuples
from trident.states.control import ControlRecord
from trident.states.state import State
from trident.tuples.block import NOTHING, Block, joined


class LocalGroupEngine:
    """Runs the batches of a group in the process and thread that calls it.

    Updates are written after the last step of a batch, so nothing is written if a step fails. Steps
    run before the batch begins, unless one reads what the batch updates.

    The constructor prepares the steps of its job. The states, one object each, are closed with it.
    """

    def __init__(self, group: BatchGroup, job: Job, states: Mapping[StateNode, State]) -> None:
        self.acts_on_nothing = bool(group.acting_on_nothing)
        self._begins_first = begins_first(group) is not None
        self._states = {node.state.name: state for node, state in states.items()}
        self._counters = Counters(states.values())
        self._updated, self._queried = counted_apart(states)
        self._emitting: dict[str, Emitting] = {}
        self._program = Program(job)
        self._program.prepare()

    def read(self, emission: Emission) -> tuple[Block, list[Emitted]]:
        """Emit partitions of a spout, one after the other; see `GroupEngine.read`."""
        source = self._program.job.source(emission.stream)
        if emission.stream not in self._emitting:
            self._emitting[emission.stream] = Emitting(emission, source.name)
        emitting = self._emitting[emission.stream]
        blocks: list[Block] = []
        emitted = []
        needed = source.columns.names
        for made, each in emitting.emit(emission, emission.assignments):
            origin = origin_of(emission.stream, each.id)
            blocks.extend(with_origin(block, needed, origin) for block in made)
            emitted.append(each)
        return joined(blocks), emitted

    def compute(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Computed | Postponed:
        """Run all steps of a batch but its updates; see `GroupEngine.compute`."""
        sources = self._blocks(emitted)
        tuples = sum([block.length for block in sources.values()])
        if self._begins_first:
            return Postponed("local", tuples, partial(self._run, sources, tuples))
        before, started = self._queried.counts(), perf_counter()
        updates: list[DeferredUpdate] = []
        bad = CounterBook()  # its own, as the batch before may be written and counted meanwhile
        queried, txid = self._states.__getitem__, record.token.txid
        given = ProgramInput(txid, record, sources, queried, deferred=updates, counters=bad)
        with self._counting():
            self._program.run(given)
        counts = self._queried.since(before)
        seconds = {"compute": perf_counter() - started}
        counted = summed(self._program.counted(), bad.take())
        return Computed(tuple(updates), Outcome(tuples, *counts, seconds, "local", counted))

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Make the updates of a batch; see `GroupEngine.write`."""
        with self._counting():
            if isinstance(computed, Postponed):
                return computed.run(record)
            update = self._program.update
            outcome = write_updates(computed, record, self._states, self._updated, update)
        counted = self._program.counted()
        return outcome + Outcome(counters=counted) if counted else outcome

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Do nothing: tuples are kept nowhere else."""

    def _run(self, sources: Mapping[str, Block], tuples: int, record: ControlRecord) -> Outcome:
        """Run all steps of a batch that has begun, and write what they update."""
        before, started = self._counters.counts(), perf_counter()
        begun = BegunStates(self._program.job.updates, self._states, record)
        bad, txid = CounterBook(), record.token.txid
        given = ProgramInput(txid, record, sources, begun.queried, begun.begin, counters=bad)
        self._program.run(given)
        computed = perf_counter()
        begun.commit()
        seconds = {"compute": computed - started, "write": perf_counter() - computed}
        counts = self._counters.since(before)
        counted = summed(self._program.counted(), bad.take())
        reached = self._counters.reached(record.token)
        return Outcome(tuples, *counts, seconds, "local", counted, reached)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Forget the counts of operations if the attempt fails."""
        try:
            yield
        except BaseException:
            self._program.counted()
            raise

    def _blocks(self, emitted: Mapping[str, Tuples]) -> dict[str, Block]:
        streams = [source.stream for source in self._program.job.sources]
        return {stream: cast(Block, emitted.get(stream, NOTHING)) for stream in streams}

    def close(self) -> None:
        """Clean the operations up, and close emitters and states."""
        with ExitStack() as closing:
            closing.callback(close_states, self._states.values())
            for emitting in self._emitting.values():
                closing.callback(emitting.close)
            closing.callback(self._program.close)
