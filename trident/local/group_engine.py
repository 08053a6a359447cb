"""The local engine of one batch group."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from time import perf_counter
from typing import Any, cast

from trident.batch.computed import Computed, DeferredUpdate, Postponed, written
from trident.batch.counters import Counters, counted_apart
from trident.batch.open_states import close_states
from trident.batch.outcome import Outcome
from trident.kernels.origins import with_origin
from trident.kernels.task import Task, step_name
from trident.local.program import Program
from trident.local.program_input import ProgramInput
from trident.operations.origins import origin_of
from trident.plan.nodes import Node, StateNode, StateUpdateNode
from trident.plan.overlap import begins_first
from trident.plan.plan import BatchGroup
from trident.sources.emission import Emission, Emitted, Emitting
from trident.sources.source import Tuples
from trident.states.control import ControlRecord
from trident.states.maps.reading import as_before
from trident.states.state import State
from trident.tuples.block import NOTHING, Block, joined


def _commit(begun: Mapping[StateUpdateNode, State], record: ControlRecord) -> None:
    """Write what is pending; of a value that can't be stored the step is named."""
    task = Task(record.token.txid, record, 0, 1)
    for node, state in begun.items():
        with task.at(step_name(node)):
            state.commit(record)


class LocalGroupEngine:
    """Runs the batches of a group in the process and thread that calls it.

    Updates are written after the last step of a batch, so that a step that fails has written
    nothing. Steps run before the batch begins, unless one reads what the batch updates.

    Parameters
    ----------
    group : BatchGroup
        The group; its steps are prepared at once.
    states : mapping of node to State
        Its states, one object each; closed with the engine.
    conf : mapping, optional
        What operations are prepared with.

    Raises
    ------
    PlanError
        For a step that runs on Spark only.
    """

    def __init__(
        self,
        group: BatchGroup,
        states: Mapping[StateNode, State],
        conf: Mapping[str, Any] | None = None,
    ) -> None:
        self.acts_on_nothing = bool(group.acting_on_nothing)
        self._begins_first = begins_first(group) is not None
        self._sources = group.sources
        self._states = states
        self._counters = Counters(states.values())
        self._updated, self._asked = counted_apart(states)
        self._emitting: dict[str, Emitting] = {}
        self._program = Program(group.nodes, conf=conf)
        self._program.prepare()

    def read(self, emission: Emission) -> tuple[Block, list[Emitted]]:
        """Emit partitions of a spout, one after the other; see `GroupEngine.read`."""
        [source] = [each for each in self._sources if each.stream_id == emission.stream]
        if emission.stream not in self._emitting:
            self._emitting[emission.stream] = Emitting(emission, step_name(source))
        emitting = self._emitting[emission.stream]
        blocks: list[Block] = []
        emitted = []
        needed = self._program.needed_of(source)
        for made, each in emitting.emit(emission, emission.assignments):
            origin = origin_of(emission.stream, each.id)
            blocks.extend(with_origin(block, needed, origin) for block in made)
            emitted.append(each)
        return joined(blocks), emitted

    def compute(
        self, record: ControlRecord, emitted: Mapping[str, Tuples]
    ) -> Computed | Postponed:
        """Run all steps of a batch but its updates; see `GroupEngine.compute`."""
        sources = self._blocks(emitted)
        tuples = sum([block.length for block in sources.values()])
        if self._begins_first:
            return Postponed("local", tuples, partial(self._run, sources, tuples))
        before, started = self._asked.counts(), perf_counter()
        updates: list[DeferredUpdate] = []
        self._program.run(
            ProgramInput(
                record.token.txid, record, sources, self._states.__getitem__, deferred=updates
            )
        )
        counts = self._asked.since(before)
        seconds = {"compute": perf_counter() - started}
        counted = self._program.counted()
        return Computed(tuple(updates), Outcome(tuples, *counts, seconds, "local", counted))

    def write(self, record: ControlRecord, computed: Computed | Postponed) -> Outcome:
        """Make the updates of a batch; see `GroupEngine.write`."""
        if isinstance(computed, Postponed):
            return computed.run(record)
        outcome = written(computed, record, self._states, self._updated, self._program.update)
        counted = self._program.counted()
        return outcome + Outcome(counters=counted) if counted else outcome

    def drop(self, emitted: Mapping[str, Tuples]) -> None:
        """Do nothing: tuples are kept nowhere else."""

    def _run(self, sources: Mapping[Node, Block], tuples: int, record: ControlRecord) -> Outcome:
        """Run all steps of a batch that has begun, and write what they update."""
        before, started = self._counters.counts(), perf_counter()
        begun: dict[StateUpdateNode, State] = {}

        def updated(node: StateUpdateNode) -> State:
            if node not in begun:
                begun[node] = self._states[node]
                begun[node].beginCommit(record)
            return begun[node]

        def queried(node: StateNode) -> Any:
            state = self._states[node]
            return as_before(state, record) if isinstance(node, StateUpdateNode) else state

        self._program.run(ProgramInput(record.token.txid, record, sources, queried, updated))
        computed = perf_counter()
        _commit(begun, record)
        seconds = {"compute": computed - started, "write": perf_counter() - computed}
        counts = self._counters.since(before)
        return Outcome(tuples, *counts, seconds, "local", self._program.counted())

    def _blocks(self, emitted: Mapping[str, Tuples]) -> dict[Node, Block]:
        return {
            source: cast(Block, emitted.get(source.stream_id, NOTHING)) for source in self._sources
        }

    def close(self) -> None:
        """Clean the operations up, and close emitters and states."""
        with ExitStack() as closing:
            closing.callback(close_states, self._states.values())
            for emitting in self._emitting.values():
                closing.callback(emitting.close)
            closing.callback(self._program.close)
