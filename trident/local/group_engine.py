"""The local engine of one batch group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import Any, cast

from trident.batch.outcome import Outcome
from trident.kernels.block import NOTHING, Block, joined
from trident.kernels.emission import Emission, Emitted, Emitting
from trident.kernels.task import step_name
from trident.local.program import Program
from trident.local.program_input import DeferredUpdate, ProgramInput
from trident.open_states import Counters, as_before, close_states
from trident.operations.counters import summed
from trident.plan.nodes import Node, StateNode, StateUpdateNode
from trident.plan.plan import BatchGroup
from trident.spouts.source import Tuples
from trident.states.control import ControlRecord
from trident.states.state import State


class LocalBatch:
    """A batch of which all steps but the updates of states have run.

    Parameters
    ----------
    states : mapping of node to State
        The group's states.
    counters : Counters
        What they read and write.
    updates : sequence of DeferredUpdate
        The updates.
    tuples : int
        The tuples that came from the sources.
    seconds : float
        How long the steps took.
    program : Program
        The steps.
    """

    def __init__(
        self,
        states: Mapping[StateNode, State],
        counters: Counters,
        updates: Sequence[DeferredUpdate],
        tuples: int,
        seconds: float,
        program: Program,
    ) -> None:
        self._states = states
        self._counters = counters
        self._updates = updates
        self._tuples = tuples
        self._seconds = seconds
        self._program = program
        self._counted = program.counted()

    def write(self, record: ControlRecord) -> Outcome:
        """Update the states, which have begun `record`, and write them."""
        before = self._counters.counts()
        started = perf_counter()
        begun: dict[StateUpdateNode, State] = {}
        for node, kernel, block, task in self._updates:
            task = task._replace(record=record)
            if node not in begun:
                with task.at(kernel.step):
                    self._states[node].beginCommit(record)
                begun[node] = self._states[node]
            kernel.apply(begun[node], block, task)
        for state in begun.values():
            state.commit(record)
        seconds = {"compute": self._seconds, "write": perf_counter() - started}
        read, written, hits = self._counters.since(before)
        counted = summed(self._counted, self._program.counted())
        return Outcome(self._tuples, read, written, hits, seconds, "local", counted)


class LocalGroupEngine:
    """Runs the batches of a group in the process and thread that calls it.

    Updates are written after the last step of a batch, so that a step that fails has written
    nothing.

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
        self._sources = group.sources
        self._states = states
        self._counters = Counters(states.values())
        self._emitting: dict[str, Emitting] = {}
        self._program = Program(group.nodes, conf=conf)
        self._program.prepare()

    def read(self, emission: Emission) -> tuple[Block, list[Emitted]]:
        """Emit partitions of a spout, one after the other; see `GroupEngine.read`."""
        if emission.stream not in self._emitting:
            [source] = [each for each in self._sources if each.stream_id == emission.stream]
            self._emitting[emission.stream] = Emitting(emission, step_name(source))
        emitting = self._emitting[emission.stream]
        blocks: list[Block] = []
        emitted = []
        for made, each in emitting.emit(emission, emission.assignments):
            blocks.extend(made)
            emitted.append(each)
        return joined(blocks), emitted

    def run(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> Outcome:
        """Process one attempt; see `GroupEngine.run`."""
        before = self._counters.counts()
        started = perf_counter()
        begun: dict[StateUpdateNode, State] = {}

        def updated(node: StateUpdateNode) -> State:
            if node not in begun:
                begun[node] = self._states[node]
                begun[node].beginCommit(record)
            return begun[node]

        def queried(node: StateNode) -> Any:
            state = self._states[node]
            return as_before(state, record) if isinstance(node, StateUpdateNode) else state

        sources = self._blocks(emitted)
        given = ProgramInput(record.token.txid, record, sources, queried, updated)
        self._program.run(given)
        computed = perf_counter()
        for state in begun.values():
            state.commit(record)
        seconds = {"compute": computed - started, "write": perf_counter() - computed}
        read, written, hits = self._counters.since(before)
        tuples = sum(block.length for block in sources.values())
        counted = self._program.counted()
        return Outcome(tuples, read, written, hits, seconds, "local", counted)

    def compute(self, record: ControlRecord, emitted: Mapping[str, Tuples]) -> LocalBatch:
        """Run all steps of a batch but its updates; nothing is read of what they update.

        Parameters
        ----------
        record : ControlRecord
            The attempt, as it will be begun.
        emitted : mapping of str to Tuples
            As for :meth:`run`.
        """
        started = perf_counter()
        sources = self._blocks(emitted)
        updates: list[DeferredUpdate] = []
        self._program.run(
            ProgramInput(
                record.token.txid, record, sources, self._states.__getitem__, deferred=updates
            )
        )
        tuples = sum(block.length for block in sources.values())
        seconds = perf_counter() - started
        return LocalBatch(self._states, self._counters, updates, tuples, seconds, self._program)

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
