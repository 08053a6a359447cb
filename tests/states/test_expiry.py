"""Values expire at their moment, for batches and for queries, however often a batch is tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.states.abilities import ExpiringMap, FencedMap, TroubledServer
from trident.backends import sqlite
from trident.errors import UsageError
from trident.states import (
    KeepUntil,
    MapState,
    NonTransactionalMap,
    OpaqueMap,
    PickleSerializer,
    Serializer,
    TransactionalMap,
    ValueUpdater,
)
from trident.states.keys import encode_key
from trident.states.maps.stored_map import StoredMap
from trident.states.maps.sweeping import ExpirySweep
from trident.states.serializers import JSONSerializer
from trident.states.testing.checks import record

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
SOON = NOON + timedelta(minutes=1)


class Clock:
    """What tells states the moment."""

    def __init__(self) -> None:
        self.moment = NOON

    def __call__(self) -> datetime:
        return self.moment


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("trident.states.cut.now", made)
    return made


class Visit(ValueUpdater):
    """Counts visits, each of which keeps the key a minute longer."""

    def __init__(self, until: datetime) -> None:
        self.until = until

    def update(self, stored: Any) -> Any:
        return KeepUntil((stored or 0) + 1, self.until)


def put(state: MapState, txid: int, **values: Any) -> None:
    state.beginCommit(txid)
    state.multiPut([(key,) for key in values], list(values.values()))
    state.commit(txid)


def get(state: MapState, *keys: str) -> list[Any]:
    return state.multiGet([(key,) for key in keys])


@pytest.mark.parametrize("serializer", [JSONSerializer(), PickleSerializer()])
@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_a_value_is_there_until_its_moment(
    clock: Clock, kind: type[StoredMap], serializer: Serializer
) -> None:
    state = kind(FencedMap(TroubledServer()), serializer)
    put(state, 1, a=KeepUntil(5, SOON), b=7)
    assert get(state, "a", "b") == [5, 7]
    clock.moment = SOON - timedelta(microseconds=1)
    assert get(state, "a") == [5]
    clock.moment = SOON
    assert get(state, "a", "b") == [None, 7]


@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_an_updater_is_handed_the_value_itself_and_none_once_it_has_expired(
    clock: Clock, kind: type[StoredMap]
) -> None:
    state = kind(FencedMap(TroubledServer()))
    for txid, (moment, visits) in enumerate(
        [(NOON, 1), (SOON - timedelta(seconds=1), 2), (SOON + timedelta(hours=1), 1)], 1
    ):
        clock.moment = moment
        state.beginCommit(txid)
        visit = Visit(moment + timedelta(minutes=1))
        assert state.multiUpdate([("a",)], [visit]) == [visits]
        assert state.multiGet([("a",)]) == [visits]
        state.commit(txid)
    assert get(state, "a") == [1]


def test_a_key_that_is_updated_twice_in_a_batch_is_handed_its_value_each_time(
    clock: Clock,
) -> None:
    state = OpaqueMap(FencedMap(TroubledServer()))
    state.beginCommit(1)
    assert state.multiUpdate([("a",), ("a",)], [Visit(SOON), Visit(SOON)]) == [1, 2]
    assert state.multiUpdate([("a",)], [Visit(SOON)]) == [3]


def test_after_an_attempt_that_failed_the_value_before_has_its_own_moment(clock: Clock) -> None:
    state = OpaqueMap(FencedMap(TroubledServer()))
    put(state, 1, a=KeepUntil(5, SOON), b=6)
    state.beginCommit(2)
    state.multiPut([("a",), ("b",)], [KeepUntil(8, NOON), KeepUntil(9, NOON)])
    attempt = state._attempt
    assert attempt is not None
    attempt.flush(set())  # written, and never committed
    state.beginCommit(2)
    assert get(state, "a", "b") == [5, 6]
    clock.moment = SOON  # an attempt judges by when it has begun
    assert get(state, "a", "b") == [5, 6]
    state.multiPut([("c",)], [1])
    state.commit(2)
    assert get(state, "a", "b", "c") == [None, 6, 1]


def test_a_batch_that_runs_again_judges_by_its_own_moment(clock: Clock) -> None:
    state = OpaqueMap(FencedMap(TroubledServer()))
    put(state, 1, a=KeepUntil(5, SOON))
    state.beginCommit(2)
    assert state.multiUpdate([("a",)], [Visit(SOON)]) == [6]
    clock.moment = SOON
    state.beginCommit(2)
    assert state.multiUpdate([("a",)], [Visit(SOON + timedelta(minutes=1))]) == [1]
    state.commit(2)
    assert get(state, "a") == [1]


def test_what_has_expired_is_not_listed(clock: Clock, tmp_path: Path) -> None:
    state = sqlite.opaque(tmp_path / "counts.db", prefix="kept").makeState()
    put(state, 1, a=KeepUntil(5, SOON), b=7, c=KeepUntil([1], SOON))
    assert sorted(state.getTuples()) == [("a", 5), ("b", 7), ("c", [1])]
    clock.moment = SOON
    assert list(state.getTuples()) == [("b", 7)]
    state.close()


@pytest.mark.parametrize("each", [True, False], ids=["of each key", "of all"])
def test_a_time_that_is_yet_to_come_counts_as_the_latest_that_the_attempt_may_have(
    each: bool,
) -> None:
    state = OpaqueMap(FencedMap(TroubledServer()))
    own = replace(record(1), reaches=1000)
    state.control.begin(own)
    state.beginCommit(own)
    state.expire(10, {encode_key(("a",)): 2**62} if each else 2**62)
    state.multiPut([("a",)], [1])
    state.commit(own)
    assert state.reached(own.token) == 1000
    for reached, expected in [(1009, 1), (1010, None)]:
        state.beginCommit(replace(record(2), reached=reached))
        assert get(state, "a") == [expected]


@pytest.mark.parametrize("before", [5, KeepUntil(5, SOON)], ids=["endless", "of one's own"])
def test_in_a_store_of_versions_a_late_write_brings_back_nothing_that_is_alive(before: Any) -> None:
    backing = ExpiringMap()
    state, key = OpaqueMap(backing), encode_key(("a",))
    written = []
    for own in [record(1), record(2, 0), record(2, 1)]:
        state.control.begin(own)
        state.beginCommit(own)
        state.multiPut([("a",)], [before if own.token.txid == 1 else KeepUntil(6, NOON)])
        state.commit(own)
        written += backing.multiGet([key])
    noon = round(NOON.timestamp() * 1000)
    swept = replace(record(3, t2=1), reached=noon)
    state.control.begin(swept)
    ExpirySweep(state).go_on(swept, noon, 10)
    backing.multiPutAt([key], [written[1]], 2**62 | 2 << 12)  # had been held up since batch 2
    state.beginCommit(swept)
    assert get(state, "a") == [None]


@pytest.mark.parametrize("until", [NOON.replace(tzinfo=None), NOON.date(), 60])
def test_a_moment_has_a_time_zone(until: Any) -> None:
    with pytest.raises(UsageError, match="KeepUntil: until= takes a datetime with a time zone"):
        KeepUntil(5, until)
