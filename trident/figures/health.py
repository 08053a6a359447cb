"""Whether runs are alive and stores can be reached, asked with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock
from typing import Any

from trident.figures.reasons import message_of
from trident.plan.nodes import StateNode
from trident.plan.plan import Plan
from trident.shared_call import SharedCall
from trident.states.errors import MovedStateError
from trident.states.state import State

LIMIT = 2.0
"""Seconds in which a store has to answer."""
FRESH = 1.0
"""Seconds for which its answer is told to others who ask."""


class Health:
    """The health of what a server serves.

    Each store is asked for the control record of each state in it, by one thread at most, and once
    a second at most, however many ask. A state in memory, or that is no map, isn't asked.
    """

    def __init__(self, runs: Iterable[Any], plans: Iterable[Plan]) -> None:
        self._runs = tuple(runs)
        nodes = [node for plan in plans for node in plan.states]
        self._probes = tuple(_Probe(node) for node in nodes if _is_stored(node))

    async def asked(self) -> dict[str, Any]:
        """Return what is found, in two seconds at most.

        ``status`` is ``"ok"``, or ``"failing"`` where a group has failed or a store does not
        answer; ``groups`` has the status of each, ``states`` of each that was asked where it is,
        and what is wrong, None where nothing is.
        """
        groups = [
            {"group": name, "status": status}
            for run in self._runs
            for name, status in run.status.items()
        ]
        states = await asyncio.gather(*[probe.told() for probe in self._probes])
        failing = any(each["status"] == "failed" for each in groups)
        failing = failing or any(each["error"] for each in states)
        return {"status": "failing" if failing else "ok", "groups": groups, "states": states}

    def close(self) -> None:
        for probe in self._probes:
            probe.close()


class _Probe:
    """Asks the store of one state."""

    def __init__(self, node: StateNode) -> None:
        self._node = node
        self._state: State | None = None
        self._where = ""
        self._closed = False
        self._lock = Lock()
        self._call = SharedCall(self._look, FRESH)

    async def told(self) -> dict[str, Any]:
        try:
            error = await self._call.within(LIMIT)
        except TimeoutError as late:
            error = str(late)
        return {"state": self._node.state.name, "store": self._where, "error": error}

    def close(self) -> None:
        with self._lock:
            self._closed = True
        if not self._call.under_way:  # else the thread closes it, if the store ever answers
            self._close_state()

    def _look(self) -> str | None:
        try:
            if self._state is None:
                self._state = self._node.state.factory.makeState({}, None, 0, 1)
            control = self._state.control
            if control is not None:
                self._where = control.where
                with suppress(MovedStateError):  # readers go there
                    control.read()
        except BaseException as error:
            return message_of(error)
        finally:
            with self._lock:
                closed = self._closed
            if closed:
                self._close_state()
        return None

    def _close_state(self) -> None:
        state, self._state = self._state, None
        if state is not None:
            with suppress(Exception):
                state.close()


def _is_stored(node: StateNode) -> bool:
    """Whether a state is a map in a store outside of this process."""
    factory = node.state.factory
    return factory.opens is not None and (factory.map_type is None or factory.map_type.lasts)
