"""The rows of the protocol's two tables, one test each, on the library's own classes."""

from __future__ import annotations

from functools import partial

import pytest

from tests.protocol.broken import CacheFirst
from tests.states.abilities import EntryMap, FencedMap, PlainMap, TroubledServer, VersionedMap
from trident.errors import StaleBatchError
from trident.states import (
    CachedMap,
    ControlRecord,
    IBackingMap,
    OpaqueMap,
    OpaqueValue,
    PutUpdater,
    Token,
    TransactionalMap,
)
from trident.states.cut import BatchMovedOn, Cut
from trident.states.kinds import OPAQUE
from trident.states.maps.stored_map import StoredMap
from trident.states.testing.unlucky import UnluckyStore

BEFORE = Cut.before(ControlRecord("log", Token(9, 1), 8, {7: 1}))


class Append(PutUpdater):
    def update(self, stored: str | None) -> str:
        return f"{stored or ''}{self.value}"


def begin(
    backing: IBackingMap,
    txid: int,
    attempt: int = 0,
    kind: type[StoredMap] = OpaqueMap,
    **retried: int,
) -> tuple[StoredMap, ControlRecord]:
    """Begin an attempt that appends its txid to key k; what it read, it has read."""
    known = {int(name[1:]): attempt for name, attempt in retried.items()}
    record = ControlRecord("log", Token(txid, attempt), txid - 1, known)
    state = kind(backing)
    state.control.begin(record)
    return task(backing, record, kind), record


def task(
    backing: IBackingMap, record: ControlRecord, kind: type[StoredMap] = OpaqueMap
) -> StoredMap:
    state = kind(backing)
    state.beginCommit(record)
    state.multiUpdate([("k",)], [Append(f"{record.token.txid};")])
    return state


def run(backing: IBackingMap, txid: int, attempt: int = 0) -> None:
    state, record = begin(backing, txid, attempt)
    state.commit(record)
    state.control.announce(record)


def value(backing: IBackingMap) -> object:
    return OpaqueMap(backing).multiGet([("k",)])[0]


# What a stored opaque value means.


def test_absent_is_none() -> None:
    assert OPAQUE.read([None], BEFORE) == [None]


@pytest.mark.parametrize("token", [(9, 2), (10, 0)])
def test_a_later_token_means_that_we_were_overtaken(token: tuple[int, int]) -> None:
    with pytest.raises(BatchMovedOn):
        OPAQUE.read([OpaqueValue(*token, "curr", "prev")], BEFORE)


@pytest.mark.parametrize("attempt", [0, 1])
def test_an_attempt_of_this_batch_means_prev(attempt: int) -> None:
    assert OPAQUE.read([OpaqueValue(9, attempt, "curr", "prev")], BEFORE) == ["prev"]


@pytest.mark.parametrize("token", [(8, 0), (7, 1), (1, 0)])
def test_a_committed_attempt_means_curr(token: tuple[int, int]) -> None:
    assert OPAQUE.read([OpaqueValue(*token, "curr", "prev")], BEFORE) == ["curr"]


@pytest.mark.parametrize("token", [(8, 1), (7, 0), (7, 2), (1, 1)])
def test_a_failed_attempt_means_prev(token: tuple[int, int]) -> None:
    assert OPAQUE.read([OpaqueValue(*token, "curr", "prev")], BEFORE) == ["prev"]


# What each ability is worth: a task of a failed attempt writes when the next batch has committed.


@pytest.mark.parametrize("kind", [FencedMap, EntryMap, VersionedMap])
def test_a_late_task_changes_nothing_in_a_store_that_is(kind: type[PlainMap]) -> None:
    server = UnluckyStore(partial(kind, TroubledServer()))
    backing = server.open()
    run(backing, 1)
    late, record = begin(backing, 2)
    server.hold()
    with pytest.raises(Exception, match="no answer came"):
        late.commit(record)
    duplicate = task(backing, record)
    state, again = begin(backing, 2, 1)
    state.commit(again)
    state.control.announce(again)
    state, third = begin(backing, 3, t2=1)
    state.commit(third)
    state.control.announce(third)
    server.release()
    with pytest.raises(StaleBatchError):
        duplicate.commit(record)
    assert value(backing) == "1;2;3;"


def test_conflict_with_an_earlier_attempt_is_computed_again() -> None:
    server = UnluckyStore(partial(EntryMap, TroubledServer()))
    backing = server.open()
    run(backing, 1)
    late, record = begin(backing, 2)
    server.hold()
    with pytest.raises(Exception, match="no answer came"):
        late.commit(record)
    state, again = begin(backing, 2, 1)
    server.release()
    state.commit(again)
    state.control.announce(again)
    assert value(backing) == "1;2;"


def test_a_store_of_two_methods_checks_the_token_before_it_writes() -> None:
    backing = PlainMap()
    run(backing, 1)
    late, record = begin(backing, 2)
    run(backing, 2, 1)
    with pytest.raises(StaleBatchError):
        late.commit(record)
    assert value(backing) == "1;2;"


def test_a_store_of_two_methods_leaves_a_write_on_its_way_open() -> None:
    server = UnluckyStore(partial(PlainMap, TroubledServer()))
    backing = server.open()
    run(backing, 1)
    late, record = begin(backing, 2)
    server.hold()
    with pytest.raises(Exception, match="no answer came"):
        late.commit(record)
    state, again = begin(backing, 2, 1)
    state.commit(again)
    state.control.announce(again)
    server.release()
    assert value(backing) == "1;", "the value of batch 2 is lost: what the guarantee warns of"


# Caches, in one process that writes a state alone.


def _after_a_refused_write(cache: CachedMap) -> object:
    run(cache, 1)
    late, record = begin(cache, 2)
    on_time = task(cache, record)
    on_time.commit(record)
    on_time.control.announce(record)
    run(cache, 3)
    with pytest.raises(StaleBatchError):
        late.commit(record)
    run(cache, 4)
    return value(cache)


def test_a_refused_write_is_not_cached() -> None:
    assert _after_a_refused_write(CachedMap(FencedMap(), 10)) == "1;2;3;4;"


def test_a_cache_filled_before_the_write_loses_a_batch() -> None:
    assert _after_a_refused_write(CacheFirst(FencedMap(), 10)) == "1;2;4;"


def test_a_cache_does_not_hide_what_a_server_lost() -> None:
    server = TroubledServer()
    cache = CachedMap(FencedMap(server), 10)
    for txid in 1, 2:
        state, record = begin(cache, txid, kind=TransactionalMap)
        state.commit(record)
    server.fail_over(lost=1)
    state, again = begin(cache, 2, 1, kind=TransactionalMap)
    state.commit(again)
    assert TransactionalMap(FencedMap(server)).multiGet([("k",)]) == ["1;2;"]
