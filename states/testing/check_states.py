"""Checks of map states over a backing map."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import repeat
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from trident.states.backing_map import IBackingMap
from trident.states.control import ControlRecord
from trident.states.errors import SerializationError
from trident.states.keys import encode_key
from trident.states.map_state import Key
from trident.states.maps.factory import NonTransactionalMap, OpaqueMap, TransactionalMap
from trident.states.maps.stored_map import StoredMap
from trident.states.maps.sweeping import ExpirySweep
from trident.states.table.table import LayeredMap
from trident.states.testing.checks import ODD_KEYS, ODD_VALUES, Checks, record, wrong_answers
from trident.states.testing.machine import StatesMachine
from trident.states.updaters import CombinerValueUpdater

SETTINGS = settings(
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Added:
    """A combiner, as ``trident.Sum`` is one."""

    adds = True

    def combine(self, left: Any, right: Any) -> Any:
        return left + right


def add(state: StoredMap, keys: Sequence[Key], amounts: Iterable[int]) -> None:
    state.multiUpdate(keys, [CombinerValueUpdater(Added(), amount) for amount in amounts])


def get(state: StoredMap, *keys: Any) -> list[Any]:
    return state.multiGet([(key,) for key in keys])


def batch(state: StoredMap, own: ControlRecord, **amounts: int) -> None:
    """Begin, update, write and announce one attempt, as a topology does."""
    state.control.begin(own)
    state.beginCommit(own)
    add(state, [(key,) for key in amounts], amounts.values())
    state.commit(own)
    state.control.announce(state.control.ready(own))


def aged(
    state: StoredMap, txid: int, reached: int | None, sweeps: ExpirySweep | None, **times: int
) -> None:
    """Run a batch that adds 1 to each key at its time, to expire 10 ms later, and then sweeps.

    The batch before has reached `reached`. A first attempt has done all this too, and then failed.
    """
    for attempt in (0, 1):
        own = replace(
            record(txid, attempt, "log", **{f"t{n}": 1 for n in range(1, txid)}), reached=reached
        )
        state.control.begin(own)
        state.beginCommit(own)
        add(state, [(key,) for key in times], repeat(1, len(times)))
        state.expire(10, {encode_key((key,)): at for key, at in times.items()})
        state.commit(own)
        if sweeps is not None and reached is not None:
            sweeps.go_on(own, reached, 100)
    own = replace(own, reaches=max(times.values()))
    state.control.announce(replace(state.control.ready(own), reaches=own.reaches))


class SuiteMachine(StatesMachine):
    """Plays the misfortunes of batches on the maps of a suite, and on the layers over them."""

    checks: ClassVar[Checks]

    def make_map(self) -> IBackingMap:
        return self.checks.make_map_of(self.state.kept_as.type)

    def reopen(self, backing: IBackingMap) -> IBackingMap:
        return self.checks.reopen(backing)

    def layers(self, backing: IBackingMap) -> IBackingMap | LayeredMap:
        return self.checks.layers(backing)


class StateChecks(Checks):
    """States over the map: an opaque one is exact whatever fails and whatever a replay brings."""

    @pytest.fixture
    def state(self, backing: IBackingMap) -> StoredMap:
        return OpaqueMap(self.layers(backing))

    @pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap])
    def test_states_hold_what_was_committed(self, kind: type[StoredMap]) -> None:
        """The misfortunes are the same each time; a layer that has to be the only writer caches."""
        members = {"checks": self, "state": kind, "cache_size": int(not self.shared)}
        machine = type("Machine", (SuiteMachine,), members)
        run_state_machine_as_test(machine, settings=settings(SETTINGS, max_examples=self.runs))

    def test_keys_may_be_arrays_and_structs(self, state: StoredMap) -> None:
        keys: list[Any] = [([1, None],), ([1],), ({"a": ["b"]}, 2), (1,), (True,), (1.0,)]
        for txid in (1, 2):
            state.beginCommit(txid)
            add(state, keys[:1], [1])
            add(state, keys, range(0, 60, 10))
            state.commit(txid)
        assert state.multiGet(keys) == [2, 20, 40, 60, 80, 100], (
            "a field of a key may be a list or a dict; where keys come as tuples, compare and look "
            "them up by encode_key(key)"
        )

    def test_a_state_keeps_every_key(self, state: StoredMap) -> None:
        numbers = [*range(len(ODD_KEYS))]
        state.beginCommit(1)
        state.multiPut(ODD_KEYS, numbers)
        state.commit(1)
        wrong = wrong_answers("the key", ODD_KEYS, numbers, state.multiGet(ODD_KEYS))
        assert not wrong, wrong

    @pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
    def test_a_state_keeps_every_value(self, kind: type[StoredMap]) -> None:
        with closing(kind(self.layers(self.make_map_of(kind.kept_as.type)))) as state:
            for value in ODD_VALUES:
                if not self.keeps(value):
                    with pytest.raises(SerializationError):
                        self._put_twice(state, [value])
            self._put_twice(state, [value for value in ODD_VALUES if self.keeps(value)])

    def test_many_keys_are_written(self, state: StoredMap) -> None:
        amounts = {f"key {number}": number for number in range(2000)}
        batch(state, record(1), **amounts)
        batch(state, record(2), **amounts)
        assert get(state, "key 7", "key 1999") == [14, 3998]

    def test_partial_results_are_combined(self, state: StoredMap) -> None:
        for txid, expected in ((1, [1, 2]), (2, [2, 5])):
            state.beginCommit(txid)
            assert state.multiCombine([b"a", b"b"], [1, 2], Added()) == expected
            state.multiFold([b"c", b"b"], [1, 1], Added())
            state.multiFold([b"c"], [1], Added())
            state.commit(txid)
        assert get(state, "a", "b", "c") == [2, 6, 4]

    def test_what_has_expired_is_absent_and_counts_from_nothing(self, state: StoredMap) -> None:
        if not self.keeps("a value with its moment"):
            return
        aged(state, 1, None, None, a=1000, b=1005)
        assert get(state, "a", "b") == [1, 1]
        aged(state, 2, 1005, None, b=1010)
        assert get(state, "a", "b") == [None, 2]
        aged(state, 3, 1010, None, a=1009)
        assert get(state, "a", "b") == [1, 2]
        aged(state, 4, 1010, None, c=1050)
        assert get(state, "a", "b", "c") == [None, None, 1]

    def test_what_has_expired_leaves_the_store_and_nothing_else_does(
        self, state: StoredMap
    ) -> None:
        if not self.keeps("a value with its moment") or not ExpirySweep.can_sweep(state):
            return
        sweeps = ExpirySweep(state)
        aged(state, 1, None, sweeps, a=1000, b=1000, c=1005, d=1005)
        aged(state, 2, 1005, sweeps, e=1013)
        assert get(state, "a", "b", "c", "d", "e") == [None, None, 1, 1, 1]
        aged(state, 3, 1013, sweeps, a=1014, e=1014)
        keys = [b"a", b"b", b"c", b"d", b"e"]
        found = [each is not None for each in state.tables.reading.read(keys)]
        assert found == [True, False, True, True, True]
        aged(state, 4, 1014, sweeps, d=1016)
        assert get(state, "a", "b", "c", "d", "e") == [1, None, None, 2, 2]
        aged(state, 5, 1016, sweeps, e=1016)
        found = [each is not None for each in state.tables.reading.read(keys)]
        assert found == [True, False, False, True, True]

    def _put_twice(self, state: StoredMap, values: list[Any]) -> None:
        """Put values at keys of their own, in two batches, so that each is a previous one too."""
        keys = [("value", number) for number in range(len(values))]
        for txid in (1, 2):
            state.beginCommit(txid)
            state.multiPut(keys, values)
            state.commit(txid)
            wrong = wrong_answers("the value at", keys, values, state.multiGet(keys))
            assert not wrong, wrong
