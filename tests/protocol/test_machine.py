"""The protocol's misfortunes on the library's own classes, for every ability."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.protocol import broken
from tests.protocol.memory import MemoryMachine
from tests.states.abilities import ComparedMap, EntryMap, FencedMap, PlainMap, VersionedMap
from trident.errors import StateError
from trident.states import TransactionalMap
from trident.states.testing.machine import StatesMachine

BUDGET = 300
"""How many runs may pass before a rule that was taken out shows."""
SETTINGS = settings(
    max_examples=settings.default.max_examples // 4,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Fenced(MemoryMachine):
    store = FencedMap


class Entry(MemoryMachine):
    store = EntryMap


class Versioned(MemoryMachine):
    store = VersionedMap


class Plain(MemoryMachine):
    store = PlainMap


class FencedCached(Fenced):
    cache_size = 2


class Compared(Entry):
    """The version of an entry is its value."""

    store = ComparedMap


class VersionedCached(Versioned):
    cache_size = 2


class TransactionalFenced(Fenced):
    state = TransactionalMap


class TransactionalEntry(Entry):
    state = TransactionalMap


class TransactionalCached(FencedCached):
    state = TransactionalMap


@pytest.mark.parametrize(
    "machine",
    [
        Fenced,
        Entry,
        Versioned,
        Plain,
        FencedCached,
        VersionedCached,
        TransactionalFenced,
        TransactionalEntry,
        TransactionalCached,
        Compared,
    ],
)
def test_states_hold_what_was_committed(machine: type[StatesMachine]) -> None:
    run_state_machine_as_test(machine, settings=SETTINGS)


BROKEN: dict[str, tuple[type[StatesMachine], dict[str, Any]]] = {
    "the fence": (Fenced, {"store": broken.UnfencedMap}),
    "writes conditional on the entry": (Entry, {"store": broken.UnconditionalEntryMap}),
    "the highest version wins": (Versioned, {"store": broken.LastWriteMap}),
    "attempts": (Fenced, {"state": broken.MapWithoutAttempts}),
    "prev is committed": (Fenced, {"state": broken.MapWithoutPrev}),
    "begin compares": (Fenced, {"control": broken.UncomparedControl}),
    "ready": (Fenced, {"control": broken.UnreadyControl}),
    "announce only our own": (Fenced, {"control": broken.CarelessControl}),
    "one cut for all states": (Fenced, {"read": staticmethod(broken.each_by_itself)}),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_states_go_wrong_without(rule: str) -> None:
    machine, replaced = BROKEN[rule]
    without = type("Without", (machine,), replaced)
    search = settings(SETTINGS, max_examples=BUDGET, phases=[Phase.generate])
    # A state that no longer fits the log is noticed too: that stops a run for no reason.
    with pytest.raises((AssertionError, StateError)):
        run_state_machine_as_test(without, settings=search)


def test_a_backend_that_ignores_the_fence_shows() -> None:
    class Unfenced(MemoryMachine):
        def make_map(self) -> FencedMap:
            return broken.UnfencedMap()

    search = settings(SETTINGS, max_examples=BUDGET, phases=[Phase.generate])
    with pytest.raises((AssertionError, StateError)):
        run_state_machine_as_test(Unfenced, settings=search)
