"""The local engine of one batch group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from trident.batch.outcome import Outcome
from trident.groups import StateNode, close_states
from trident.local.batch import Batch
from trident.local.interpret import Program
from trident.plan.nodes import Node, StateUpdateNode
from trident.plan.plan import BatchGroup
from trident.rows import Row
from trident.states.backing_map import WrappedMap
from trident.states.cached import CachedMap
from trident.states.control import ControlRecord
from trident.states.counted import CountedMap
from trident.states.resolution import Cut
from trident.states.state import State
from trident.states.values import StateType

# An attempt that was overtaken can't commit whatever it reads; its reads need no limit.
_NO_HORIZON = 2**63


class LocalGroupEngine:
    """Runs the batches of a group in the process and thread that calls it.

    All updates of a batch are written after its last step, so that a step that fails has written
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
        self._sources = group.sources
        self._states = states
        self._program = Program(group.nodes, conf=conf)
        self._program.prepare()

    def run(self, record: ControlRecord, emitted: Mapping[str, list[Row]]) -> Outcome:
        """Process one attempt; see `GroupEngine.run`."""
        before = _counted(self._states.values())
        started = perf_counter()
        begun: dict[StateUpdateNode, State] = {}

        def updated(node: StateUpdateNode) -> State:
            if node not in begun:
                begun[node] = self._states[node]
                begun[node].beginCommit(record)
            return begun[node]

        def queried(node: StateNode) -> Any:
            return _as_before(self._states[node], node, record)

        sources: dict[Node, list[Row]] = {
            source: emitted.get(source.stream_id, []) for source in self._sources
        }
        batch = Batch(record.token.txid, record.token, sources, queried, updated)
        self._program.run(batch)
        computed = perf_counter()
        for state in begun.values():
            state.commit(record)
        seconds = {"compute": computed - started, "write": perf_counter() - computed}
        after = _counted(self._states.values())
        read, written, hits = (now - then for now, then in zip(after, before, strict=True))
        return Outcome(sum(map(len, emitted.values())), read, written, hits, seconds)

    def close(self) -> None:
        """Clean the operations up and close the states."""
        self._program.close()
        close_states(self._states.values())


def _as_before(state: State, node: StateNode, record: ControlRecord) -> Any:
    """What a query inside the batch reads: an opaque state as of the batch before."""
    if isinstance(node, StateUpdateNode) and getattr(state, "kind", None) is StateType.OPAQUE:
        committed = getattr(state, "committed", None)
        if committed is not None:
            return committed(Cut(record.token.txid - 1, _NO_HORIZON, record.exceptions))
    return state


def _counted(states: Iterable[State]) -> tuple[int, int, int]:
    """Keys read and written, and cache hits, since the states were made."""
    read = written = hits = 0
    for state in states:
        backing = getattr(state, "backing", None)
        while backing is not None:
            if isinstance(backing, CountedMap):
                read += backing.counts.keys_read
                written += backing.counts.keys_written
            if isinstance(backing, CachedMap):
                hits += backing.hits
            backing = backing.inner if isinstance(backing, WrappedMap) else None
    return read, written, hits
