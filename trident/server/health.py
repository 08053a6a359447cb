"""Whether runs are alive and stores can be reached, checked with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from trident.drpc.query import IdleObjects
from trident.figures.reasons import message_of
from trident.plan.nodes import StateNode
from trident.plan.plan import Plan
from trident.shared_call import SharedCall
from trident.states.errors import MovedStateError
from trident.states.state import State

LIMIT = 2.0
"""Seconds in which a store has to answer."""
FRESH = 1.0
"""Seconds for which its answer is given to others who ask."""


class Health:
    """The health of what a server serves.

    Each store is asked for the control record of each state in it, by one thread at most, and once
    a second at most, however many ask. A state in memory, or that is no map, isn't asked.
    """

    def __init__(self, runs: Iterable[Any], plans: Iterable[Plan]) -> None:
        self._runs = tuple(runs)
        nodes = [node for plan in plans for node in plan.states]
        self._probes = tuple(_Probe(node) for node in nodes if _is_stored(node))

    async def check(self) -> dict[str, Any]:
        """Return what is found, in two seconds at most.

        ``status`` is ``"ok"``, or ``"failing"`` where a group has failed or a store does not
        answer. ``groups`` has the status of each group. ``states`` has the location of each state
        that was asked, and its error, None where it has none.
        """
        groups = [
            {"group": name, "status": status}
            for run in self._runs
            for name, status in run.status.items()
        ]
        states = await asyncio.gather(*[probe.check() for probe in self._probes])
        failing = any(each["status"] == "failed" for each in groups)
        failing = failing or any(each["error"] for each in states)
        return {"status": "failing" if failing else "ok", "groups": groups, "states": states}

    def close(self) -> None:
        for probe in self._probes:
            probe.close()


class _Probe:
    """Asks the store of one state."""

    def __init__(self, node: StateNode) -> None:
        self._name = node.state.name
        self._store = ""
        # A thread that waits for the store closes the state itself, if the store ever answers.
        self._states = IdleObjects[State](
            lambda: node.state.factory.makeState({}, None, 0, 1), _close_quietly
        )
        self._read = SharedCall(self._read_record, FRESH)

    async def check(self) -> dict[str, Any]:
        try:
            error = await self._read.within(LIMIT)
        except TimeoutError as late:
            error = str(late)
        return {"state": self._name, "store": self._store, "error": error}

    def close(self) -> None:
        self._states.close()

    def _read_record(self) -> str | None:
        """Read the state's control record; return what that fails with."""
        try:
            state = self._states.take()
            try:
                if state.control is not None:
                    self._store = state.control.where
                    with suppress(MovedStateError):  # readers go there
                        state.control.read()
            finally:
                self._states.give_back(state)
        except BaseException as error:
            return message_of(error)
        return None


def _close_quietly(state: State) -> None:
    with suppress(Exception):
        state.close()


def _is_stored(node: StateNode) -> bool:
    """Whether a state is a map in a store outside of this process."""
    factory = node.state.factory
    return factory.opens is not None and (factory.map_type is None or factory.map_type.lasts)
