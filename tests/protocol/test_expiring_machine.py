"""The protocol's misfortunes where entries expire, and every driver sweeps before it commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.protocol.memory import MemoryMachine
from tests.states.abilities import ExpiringMap, FencedMap, PlainMap
from trident.states.control import ControlRecord
from trident.states.cut import Cut
from trident.states.errors import FailedException, StaleBatchError, StateError
from trident.states.keys import CONTROL_KEY, encode_key
from trident.states.maps.sweeping import ExpirySweep
from trident.states.testing.machine import Appended, DriverAttempt, StateTask, Values
from trident.states.values import Token

LIFE = 4
"""How many emissions a value lives."""


class ListingMap(FencedMap):
    """One with a fence that lists its entries."""

    def pages(self) -> Iterator[list[tuple[bytes, bytes]]]:
        yield [(k, value) for k, (value, _) in self.server.entries.items() if k != CONTROL_KEY]


class Expiring(MemoryMachine):
    """Of a batch the time is its emission; what the batches come to counts from committed ones."""

    store = ListingMap
    sweeps: ClassVar[type[ExpirySweep]] = ExpirySweep

    def __init__(self) -> None:
        self.reached = [0]
        self.stored: tuple[dict[str, tuple[int | None, int]], ...] = {}, {}
        super().__init__()

    def record(self, token: Token, emission: int | None = None) -> ControlRecord:
        found = super().record(token)
        return replace(found, reached=self.reached[-1], reaches=emission)

    def begun(self, task: StateTask) -> None:
        content, time = task.attempt.content[task.state], task.attempt.emission
        times = {encode_key((key,)): time for key, adds in content.items() if adds}
        if times:
            task.map.expire(LIFE, times)

    def sweep(self, attempt: DriverAttempt, state: int) -> None:
        swept = self.state(self.backing(attempt, state))
        if self.sweeps.can_sweep(swept):
            self.sweeps(swept).go_on(attempt.record, attempt.record.reached or 0, 100)

    def _commit(self, attempt: DriverAttempt, announced: int) -> None:
        if attempt.done != {0, 1}:
            return
        try:
            for state in (0, 1):
                self.sweep(attempt, state)
        except (FailedException, StaleBatchError):
            return
        super()._commit(attempt, announced)

    def _after(self, attempt: DriverAttempt) -> Values:
        before, now = self.reached[-1], attempt.emission
        for stored, content in zip(self.stored, attempt.content, strict=True):
            for key, adds in content.items():
                value, until = stored.pop(key, (None, 0))
                if adds:
                    kept = value if until > max(before, now) else None
                    stored[key] = Appended(now, adds).update(kept), now + LIFE
        self.reached.append(max(before, now))
        one, other = (
            {key: value or 0 for key, (value, until) in stored.items() if until > self.reached[-1]}
            for stored in self.stored
        )
        return one, other


class ExpiringVersions(Expiring):
    store = ExpiringMap


class ExpiringUnswept(Expiring):
    store = PlainMap


class ExpiringCached(Expiring):
    cache_size = 2


SETTINGS = settings(
    max_examples=settings.default.max_examples // 2,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("machine", [Expiring, ExpiringVersions, ExpiringUnswept, ExpiringCached])
def test_states_hold_and_readers_see_what_has_not_expired(machine: Any) -> None:
    run_state_machine_as_test(machine, settings=SETTINGS)


class Hasty(ExpirySweep):
    """Takes the time of the attempt for what the log has reached."""

    def go_on(self, record: ControlRecord, reached: int, count: int) -> None:
        super().go_on(record, record.reaches or reached, count)


class Careless(ExpirySweep):
    """Removes what the attempt itself has written as well."""

    def _removable_keys(self, found: Any, cut: Cut) -> list[bytes]:
        return super()._removable_keys(found, cut.endless())


class Forgetful(Expiring):
    """Counts the time of attempts that were never committed."""

    def record(self, token: Token, emission: int | None = None) -> ControlRecord:
        found = super().record(token, emission)
        return replace(found, reached=max(found.reached or 0, len(self.emissions) - 1))


BROKEN: dict[str, tuple[type[Expiring], dict[str, Any]]] = {
    "a sweep goes by what the log has reached": (Expiring, {"sweeps": Hasty}),
    "what the attempt has written stays": (Expiring, {"sweeps": Careless}),
    "only committed batches reach a time": (Forgetful, {}),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_states_go_wrong_without(rule: str) -> None:
    machine, replaced = BROKEN[rule]
    search = settings(SETTINGS, max_examples=300, phases=[Phase.generate])
    with pytest.raises((AssertionError, StateError)):
        run_state_machine_as_test(type("Without", (machine,), replaced), settings=search)
