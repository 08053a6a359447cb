"""The states that a query reads, opened in sets, each for one thread at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from trident.batch.open_states import close_states, make_states
from trident.plan.nodes import StateNode
from trident.plan.plan import DRPCQuery, Plan
from trident.states.maps.reading import read_committed
from trident.states.state import State

T = TypeVar("T")
Views = Mapping[str, Any]
"""What a query reads of each of its states, by name."""


class StateSets:
    """The states of a query; any number of threads may read, each of them a set of its own."""

    def __init__(self, plan: Plan, query: DRPCQuery, conf: Mapping[str, Any] | None) -> None:
        groups = _groups(plan, query)
        self._nodes = tuple(groups)

        def make() -> list[tuple[str, State]]:
            return [(groups[node], state) for node, state in make_states(groups, conf).items()]

        self._sets = IdleObjects(make, lambda states: close_states(state for _, state in states))

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def read(self, ask: Callable[[Views], T]) -> T:
        """Call `ask` with views of the states as of one moment, perhaps several times."""
        if not self._nodes:
            return ask({})
        states = self._sets.take()
        names = [node.state.name for node in self._nodes]
        try:
            return read_committed(states, lambda views: ask(dict(zip(names, views, strict=True))))
        finally:
            self._sets.give_back(states)

    def close(self) -> None:
        """Close the idle sets; a thread that still asks closes the one that it uses."""
        self._sets.close()


def _groups(plan: Plan, query: DRPCQuery) -> dict[StateNode, str]:
    """The states of a query, each with the name of the group whose batches update it."""
    groups = {}
    for node in query.states:
        group = plan.group_of(node)
        groups[node] = f"group {group.id}" if group else f"state {node.state.name}"
    return groups


class IdleObjects(Generic[T]):
    """Lends an idle object to each thread that asks, or a new one where all are in use."""

    def __init__(self, make: Callable[[], T], close: Callable[[T], object]) -> None:
        self._make = make
        self._close_one = close
        self._idle: deque[T] = deque()
        self._closed = False

    def take(self) -> T:
        """Return an object for the caller alone; raises what making it does."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def give_back(self, used: T) -> None:
        """Let another thread use it."""
        self._idle.append(used)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close those that are idle, and each other one when it is given back."""
        self._closed = True
        while self._idle:
            try:
                idle = self._idle.pop()
            except IndexError:  # another thread has closed the last
                return
            self._close_one(idle)
