"""A group's states, as the batch runner sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.log.entry import LogEntry
from trident.states.control import Control, ControlRecord
from trident.states.errors import LineageError
from trident.states.values import StateType, Token


@dataclass(frozen=True, slots=True)
class BatchState:
    """One state of a group.

    Parameters
    ----------
    control : Control or None
        The state's control record; None for a state that keeps none.
    kind : StateType or None
        How it keeps its values; None for a state that isn't a map.
    """

    control: Control | None
    kind: StateType | None


class GroupStates:
    """All states of a group; every step is taken at each of them, in the order of their names.

    Parameters
    ----------
    states : mapping of str to BatchState
        The states by name.
    """

    def __init__(self, states: Mapping[str, BatchState]) -> None:
        self.controls = {
            name: control
            for name, state in sorted(states.items())
            if (control := state.control) is not None
        }
        for name, control in self.controls.items():
            control.name = name
        self.inexact = sorted(
            name for name, state in states.items() if state.kind is not StateType.OPAQUE
        )
        """The states in which a batch that was partly written can't be undone."""

    def check_unowned(self, lineage: str) -> None:
        """Raise LineageError where a state belongs to a log; a new log has `lineage`."""
        for control in self.controls.values():
            found = control.read()
            if found is not None:
                raise LineageError(control.place, found.lineage, lineage)

    def catch_up(self, entry: LogEntry) -> None:
        """Tell every state what `entry` knows to be committed; raises as :meth:`begin`."""
        adopted = frozenset(entry.adopted)
        for name, control in self.controls.items():
            control.catch_up(
                entry.lineage,
                entry.committed,
                entry.exceptions,
                listed=entry.states.get(name),
                adopted=adopted,
            )

    def own(self, entry: LogEntry) -> None:
        """Give states that Storm wrote their first record, so that they can be read at once."""
        record = ControlRecord(entry.lineage, Token(entry.committed, 0), entry.committed)
        for control in self.controls.values():
            if control.read() is None:
                control.begin(record)

    def begin(self, record: ControlRecord, entry: LogEntry) -> None:
        """Begin `record` at every state; raises as :meth:`Control.begin`."""
        adopted = frozenset(entry.adopted)
        for name, control in self.controls.items():
            control.begin(record, listed=entry.states.get(name), adopted=adopted)

    def ready(self, record: ControlRecord) -> None:
        """Confirm that every state still holds what `record` wrote, or raise."""
        for control in self.controls.values():
            control.ready(record)

    def announce(self, record: ControlRecord) -> None:
        """Tell every state that `record` is committed, where it still stands."""
        for control in self.controls.values():
            control.announce(record)
