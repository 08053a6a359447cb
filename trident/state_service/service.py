"""Answers requests for the states of a plan, in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock

from trident.drpc.queued_service import MOST_WAITING, TIMEOUT, QueuedService
from trident.plan.plan import Plan
from trident.state_service.reads import StateObjects, StateReads
from trident.state_service.requests import StateRequest
from trident.state_service.served_states import ServedState, served_states

SEVERAL = "state:batchGet"
"""What errors call requests for several states, and the queue of those without one of their own."""
_MOST_QUEUES = 64
"""How many sets of states have a queue of their own."""


class StateService(QueuedService):
    """Answers requests for the states of a plan, wherever its run is.

    A state is opened when it is first asked for. Requests for one state that come together read it
    once. A state that takes long, or is away, delays only its own requests. The same holds for a
    set of states.

    `runs_here` says whether its run is in this process, with its states in memory.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        runs_here: bool = True,
        most_keys: int = 10_000,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.states: Mapping[str, ServedState] = served_states(plan, runs_here=runs_here)
        self._objects = {
            name: StateObjects(state) for name, state in self.states.items() if not state.left_out
        }
        queues = {
            queue_of(name): StateReads(queue_of(name), {name: objects}, most_keys)
            for name, objects in self._objects.items()
        }
        self._several = StateReads(SEVERAL, self._objects, most_keys)
        self._most_waiting = most_waiting
        self._adding = Lock()
        self._sets: set[str] = set()
        queues[SEVERAL] = self._several
        super().__init__(queues, most_waiting)

    def ask(self, asked: StateRequest, timeout: float | None = None) -> str:
        """Answer one request; the parameters and errors are those of :meth:`execute`."""
        return self.execute(self._queue(asked), asked.encode(), timeout)

    async def ask_async(self, asked: StateRequest, timeout: float | None = None) -> str:
        return await self.execute_async(self._queue(asked), asked.encode(), timeout)

    def close(self, drain: float = TIMEOUT) -> None:
        super().close(drain)
        for objects in self._objects.values():
            objects.close()

    def _queue(self, asked: StateRequest) -> str:
        """Return the queue of a request, in which none for other states can delay it."""
        if asked.form != "states":
            return queue_of(asked.state)
        own = f"{SEVERAL} {asked.state}"
        with self._adding:
            if own not in self._sets:
                if len(self._sets) >= _MOST_QUEUES:
                    return SEVERAL
                self._add(own, self._several, self._most_waiting)
                self._sets.add(own)
        return own


def queue_of(state: str) -> str:
    """Return the name of a state's queue, and of the state in ``allow=``."""
    return f"state/{state}"


def holder(services: Sequence[StateService], state: str) -> StateService | None:
    """Return the first service that has a state of that name."""
    return next((service for service in services if state in service.states), None)
