"""The states of an attempt: what its queries read, and those that it has begun to update."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trident.job.job import Update
from trident.kernels.task import Task
from trident.states.control import ControlRecord
from trident.states.maps.reading import as_before
from trident.states.state import State


class BegunStates:
    """The states of one attempt."""

    def __init__(
        self, updates: Iterable[Update], states: Mapping[str, State], record: ControlRecord
    ) -> None:
        self._updates = {update.state.name: update for update in updates}
        self._states = states
        self._record = record
        self._begun: dict[str, State] = {}

    def queried(self, name: str) -> Any:
        """What queries of a state read: of one that the batch updates, as it was before."""
        state = self._states[name]
        return as_before(state, self._record) if name in self._updates else state

    def begin(self, name: str) -> State:
        """Return the state, which has begun the attempt by then."""
        if name not in self._begun:
            self._begun[name] = self._states[name]
            self._begun[name].beginCommit(self._record)
        return self._begun[name]

    def commit(self) -> None:
        """Write what is pending; of a value that can't be stored the step is named."""
        task = Task(self._record.token.txid, self._record, 0, 1)
        for name, state in self._begun.items():
            with task.at(self._updates[name].name):
                state.commit(self._record)
