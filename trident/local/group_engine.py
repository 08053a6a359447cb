"""The local engine of one batch group."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from time import perf_counter
from typing import Any, cast

from trident.batch.computed import Computed, DeferredUpdate, written
from trident.batch.counters import Counters, counted_apart
from trident.batch.open_states import close_states
from trident.batch.outcome import Outcome
from trident.job.job import Job
from trident.kernels.origins import with_origin
from trident.local.begun_states import BegunStates
from trident.local.program import Program
from trident.local.program_input import ProgramInput
from trident.operations.origins import origin_of
from trident.plan.nodes import StateNode
from trident.sources.emission import Emission, Emitted, Emitting
from trident.sources.source import Tuples
from trident.states.control import ControlRecord
from trident.states.state import State
from trident.tuples.block import NOTHING, Block, joined


class LocalGroupEngine:
    """Runs the batches of a group in the process and thread that calls it.

    Updates are written after the last step of a batch, so that a step that fails has written
    nothing.

    Parameters
    ----------
    job : Job
        What is run for a batch; its operations are prepared at once.
    states : mapping of node to State
        Its states, one object each; closed with the engine.
    conf : mapping, optional
        What operations are prepared with.
    """

    def __init__(
        self,
        job: Job,
        states: Mapping[StateNode, State],
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self.acts_on_nothing = job.acts_on_nothing
        self._streams = [source.stream for source in job.sources]
        self._states = {node.state.name: state for node, state in states.items()}
        self._counters = Counters(states.values())
        self._updated, self._asked = counted_apart(states)
        self._emitting: dict[str, Emitting] = {}
        self._program = Program(job, conf)
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

    def run(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Outcome:
        """Process one attempt; see `GroupEngine.run`."""
        before = self._counters.counts()
        started = perf_counter()
        sources = self._blocks(emitted)
        begun = BegunStates(self._program.job, self._states, record)
        given = ProgramInput(record.token.txid, record, sources, begun.queried, begun.updated)
        self._program.run(given)
        computed = perf_counter()
        begun.commit()
        seconds = {"compute": computed - started, "write": perf_counter() - computed}
        counts = self._counters.since(before)
        tuples = sum(block.length for block in sources.values())
        return Outcome(tuples, *counts, seconds, "local", self._program.counted())

    def compute(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Computed:
        """Run all steps of a batch but its updates; see `OverlappingEngine.compute`."""
        before, started = self._asked.counts(), perf_counter()
        sources = self._blocks(emitted)
        updates: list[DeferredUpdate] = []
        self._program.run(
            ProgramInput(
                record.token.txid, record, sources, self._states.__getitem__, deferred=updates
            )
        )
        tuples = sum(block.length for block in sources.values())
        counts = self._asked.since(before)
        seconds = {"compute": perf_counter() - started}
        counted = self._program.counted()
        return Computed(tuple(updates), Outcome(tuples, *counts, seconds, "local", counted))

    def write(self, record: ControlRecord, computed: Computed) -> Outcome:
        """Make the updates of a computed batch; see `OverlappingEngine.write`."""
        outcome = written(computed, record, self._states, self._updated, self._program.update)
        return outcome + Outcome(counters=self._program.counted())

    def _blocks(self, emitted: Mapping[str, Tuples]) -> dict[str, Block]:
        return {stream: cast(Block, emitted.get(stream, NOTHING)) for stream in self._streams}

    def close(self) -> None:
        """Clean the operations up, and close emitters and states."""
        with ExitStack() as closing:
            closing.callback(close_states, self._states.values())
            for emitting in self._emitting.values():
                closing.callback(emitting.close)
            closing.callback(self._program.close)
