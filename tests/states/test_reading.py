"""Readers outside the batch see whole committed batches."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest

from tests.states import maps
from tests.states.abilities import FencedMap, TroubledServer
from tests.states.maps import STORES, AddingMap, DictMap
from trident.backends.memory import MemoryMap, MemoryMapState
from trident.errors import NoStateError, StateError, StateUnavailableError
from trident.states import (
    CachedMap,
    ITupleCollection,
    MapState,
    NonTransactionalMap,
    OpaqueMap,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
    Token,
    TransactionalMap,
    read_committed,
    read_latest,
)
from trident.states.control import ControlRecord
from trident.states.maps.stored_map import StoredMap

EVERY_STORE = pytest.mark.parametrize("store", STORES)


def record(txid: int, attempt: int = 0, **retried: int) -> ControlRecord:
    given = {int(name.removeprefix("t")): attempt for name, attempt in retried.items()}
    return ControlRecord("log-1", Token(txid, attempt), txid - 1, given)


def write(state: MapState, begun: ControlRecord, **values: Any) -> None:
    assert state.control is not None
    state.control.begin(begun)
    state.beginCommit(begun)
    state.multiPut([(key,) for key in values], list(values.values()))
    state.commit(begun)


def announce(*states: MapState, begun: ControlRecord) -> None:
    for state in states:
        assert state.control is not None
        assert state.control.announce(begun)


def read(*states: MapState, keys: Sequence[str] = ("a",), groups: str = "") -> list[list[Any]]:
    asked = [(key,) for key in keys]
    named = list(zip(groups or "g" * len(states), states, strict=True))
    return read_committed(named, lambda views: [view.multiGet(asked) for view in views])


@EVERY_STORE
def test_a_batch_shows_once_it_is_announced(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    write(state, record(1), a=1)
    assert read(state) == [[None]]
    announce(state, begun=record(1))
    assert read(state) == [[1]]
    write(state, record(2), a=2)
    assert read(state) == [[1]]
    announce(state, begun=record(2))
    assert read(state) == [[2]]


@EVERY_STORE
def test_what_a_failed_attempt_left_never_shows(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    write(state, record(1), a=1, b=1)
    announce(state, begun=record(1))
    write(state, record(2), a=2, b=2)
    write(state, record(2, 1), b=3)
    assert read(state, keys="ab") == [[1, 1]]
    announce(state, begun=record(2, 1))
    assert read(state, keys="ab") == [[1, 3]]
    write(state, record(3, t2=1), c=1)
    assert read(state, keys="abc") == [[1, 3, None]]


def test_two_states_of_a_group_show_the_same_batch() -> None:
    first, second = OpaqueMap(DictMap()), OpaqueMap(DictMap())
    for txid in (1, 2):
        write(first, record(txid), a=txid)
        write(second, record(txid), a=txid)
        announce(first, begun=record(txid))
        assert read(first, second) == [[txid - 1 or None], [txid - 1 or None]]
        announce(second, begun=record(txid))
        assert read(first, second) == [[txid], [txid]]


def test_states_of_two_groups_each_show_their_own_last_batch() -> None:
    first, second = OpaqueMap(DictMap()), OpaqueMap(DictMap())
    write(first, record(7), a=1)
    announce(first, begun=record(7))
    write(second, record(1), a=2)
    announce(second, begun=record(1))
    assert read(first, second, groups="gh") == [[1], [2]]


def test_a_state_in_memory_never_begun_has_no_say_in_its_group() -> None:
    first, never = OpaqueMap(DictMap()), OpaqueMap(MemoryMap(uuid4().hex))
    write(first, record(7), a=1)
    announce(first, begun=record(7))
    assert read(first, never) == [[1], [None]]


def test_a_state_that_is_begun_while_its_group_is_read_shows_its_committed_attempt() -> None:
    class Hooked(DictMap):
        def getControl(self) -> bytes | None:
            for begun in pending:
                write(new, begun, a=begun.token.attempt)
                announce(new, begun=begun)
            pending.clear()
            return super().getControl()

    pending: list[ControlRecord] = []
    old, new = OpaqueMap(Hooked()), OpaqueMap(MemoryMap(uuid4().hex))
    write(old, record(1, 1), a=7)
    announce(old, begun=record(1, 1))
    pending.append(record(1, 1))
    assert read(new, old) == [[1], [7]]


@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
@EVERY_STORE
def test_a_state_that_has_not_begun_is_no_empty_one(
    store: type[DictMap], kind: type[StoredMap]
) -> None:
    state = kind(store())
    for ask in (lambda: read(state), lambda: state.multiGet([("a",)]), state.get):
        with pytest.raises(NoStateError, match="there is no state, or it has not begun"):
            ask()
    state.beginCommit(1)
    assert state.multiGet([("a",)]) == [None]


@EVERY_STORE
def test_a_state_that_waits_for_its_first_batch_is_empty(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    state.control.catch_up(record(1), lambda found: None)
    assert read(state) == [[None]]
    write(state, record(1), a=1)
    announce(state, begun=record(1))
    assert read(state) == [[1]]


def test_a_state_that_waits_is_of_the_batch_that_its_group_has_committed() -> None:
    first, new = OpaqueMap(DictMap()), OpaqueMap(DictMap())
    write(first, record(7), a=7)
    announce(first, begun=record(7))
    new.control.catch_up(record(8), lambda found: None)
    assert read(first, new) == [[7], [None]]
    write(first, record(8), a=8)
    assert read(first, new) == [[7], [None]]


def test_an_unused_state_in_memory_is_empty_and_one_beside_others_a_mistake() -> None:
    own = uuid4().hex
    assert read(MemoryMapState.Factory(own).makeState()) == [[None]]
    OpaqueMap(MemoryMap(own, prefix="count")).beginCommit(1)
    with pytest.raises(NoStateError, match="without a prefix.*States there.*: 'count'"):
        read(MemoryMapState.Factory(own).makeState())


def test_of_many_states_the_nearest_are_named() -> None:
    others = [f"state-{number}" for number in range(300)]
    text = str(NoStateError("here", "cuont", [*others, "count"]))
    assert "the prefixes: 'count', 'state-0'" in text
    assert "and 291 more" in text
    assert len(text) < 800


def test_readers_beside_a_writer_always_see_whole_batches() -> None:
    state = MemoryMapState.Factory().makeState()
    keys = [(str(n),) for n in range(20)]
    done, seen = Event(), []

    def watch() -> None:
        while not done.is_set():
            values = read_committed([("g", state)], lambda views: views[0].multiGet(keys))
            seen.append(values)

    reader = Thread(target=watch)
    reader.start()
    for txid in range(1, 300):
        state.beginCommit(txid)
        state.multiPut(keys, [txid if txid % 3 else None] * len(keys))
        state.commit(txid)
    done.set()
    reader.join()
    assert all(len(set(values)) == 1 for values in seen)


def test_a_query_starts_over_when_a_batch_moves_on() -> None:
    state, seen = OpaqueMap(DictMap()), []
    write(state, record(1), a=1)
    announce(state, begun=record(1))

    def query(views: list[ReadOnlyMapState]) -> list[Any]:
        if not seen:
            for txid in (2, 3):
                write(state, record(txid), a=txid)
                announce(state, begun=record(txid))
        seen.append(1)
        return views[0].multiGet([("a",)])

    assert read_committed([("g", state)], query) == [3]
    assert len(seen) == 2


def test_a_query_that_never_catches_up_is_an_error() -> None:
    state = OpaqueMap(DictMap())
    write(state, record(1), a=1)
    txids = iter(range(2, 100))

    def query(views: list[ReadOnlyMapState]) -> list[Any]:
        for txid in (next(txids), next(txids)):
            write(state, record(txid), a=txid)
        return views[0].multiGet([("a",)])

    with pytest.raises(StateUnavailableError, match="4 tries"):
        read_committed([("g", state)], query, restarts=3)


@pytest.mark.parametrize("cached", [False, True])
def test_a_value_removed_for_good_meanwhile_is_not_taken_for_absent(cached: bool) -> None:
    server, calls = TroubledServer(), []
    state = OpaqueMap(FencedMap(server))
    reader = OpaqueMap(CachedMap(FencedMap(server), 9)) if cached else state
    write(state, record(1), a=1)
    announce(state, begun=record(1))
    write(state, record(2), a=None)

    def query(views: list[ReadOnlyMapState]) -> list[Any]:
        if not calls:
            announce(state, begun=record(2))
            write(state, record(3), b=1)
        calls.append(1)
        return views[0].multiGet([("a",)])

    assert read_committed([("g", reader)], query) == [None]
    assert len(calls) == 2


def test_a_query_goes_past_the_cache() -> None:
    shared = maps.FencedMap()
    state = OpaqueMap(CachedMap(shared, 10))
    write(state, record(1), a=1)
    announce(state, begun=record(1))
    shared.stored[b"a"] = b"[1,7,null]"
    assert read(state) == [[7]]


@pytest.mark.parametrize("inside", [True, False], ids=["inside a batch", "outside"])
def test_the_store_is_asked_for_each_key_once(inside: bool) -> None:
    state = OpaqueMap(FencedMap(TroubledServer()))
    write(state, record(1), a=1, b=2)
    announce(state, begun=record(1))
    if inside:
        state.control.begin(record(2))
        state.beginCommit(record(2))
    before = state.counts.keys_read
    assert state.multiGet([(key,) for key in "abaacb"]) == [1, 2, 1, 1, None, 2]
    assert state.counts.keys_read - before == 3


def test_pending_updates_do_not_show() -> None:
    state = MemoryMapState.Factory().makeState()
    state.beginCommit(1)
    state.multiPut([("a",)], [1])
    assert read(state) == [[None]]
    assert state.multiGet([("a",)]) == [1]


@pytest.mark.parametrize("kind", [TransactionalMap, NonTransactionalMap])
def test_other_kinds_may_show_a_batch_early(kind: type[OpaqueMap]) -> None:
    state = kind(DictMap())
    write(state, record(1), a=1)
    assert read(state) == [[1]]


@pytest.mark.parametrize(
    "kind",
    [MemoryMapState.Factory().makeState, lambda: OpaqueMap(DictMap())],
)
def test_views_offer_what_their_state_does_and_can_not_be_written(kind: Any) -> None:
    state = kind()
    state.beginCommit(1)
    state.set(5)
    state.multiPut([("a",)], [1])
    state.commit(1)

    def query(views: list[Any]) -> None:
        [view] = views
        assert isinstance(view, ReadOnlyMapState)
        assert isinstance(view, ReadOnlySnapshottable)
        assert isinstance(view, ITupleCollection)
        assert view.get() == 5
        if state.lists:
            assert sorted(view.getTuples()) == [("$GLOBAL$", 5), ("a", 1)]
        else:
            for each in (view, state):
                with pytest.raises(StateError, match="can't list its entries; look up keys"):
                    list(each.getTuples())
        with pytest.raises(StateError, match="read-only"):
            view.beginCommit(1)

    read_committed([("g", state)], query)


def test_tuples_are_of_the_committed_batch() -> None:
    state = MemoryMapState.Factory().makeState()
    write(state, record(1), a=1)
    announce(state, begun=record(1))
    write(state, record(2), a=2, b=1)
    assert list(state.getTuples()) == [("a", 1)]


def test_a_state_without_batches_is_handed_over_as_it_is() -> None:
    class Fixed(ReadOnlyMapState):
        def multiGet(self, keys: Any) -> list[Any]:
            return [42 for _ in keys]

        def beginCommit(self, batch: Any) -> None: ...

        def commit(self, batch: Any) -> None: ...

    fixed = Fixed()
    assert read_committed([("g", fixed)], lambda views: views[0] is fixed)


def test_a_group_with_an_adding_store_shows_whole_batches() -> None:
    state = OpaqueMap(AddingMap())
    write(state, record(1), a=1)
    assert read(state) == [[None]]


def latest(*states: MapState, keys: Sequence[str] = ("a",)) -> list[list[Any]]:
    asked = [(key,) for key in keys]
    return read_latest(states, lambda views: [view.multiGet(asked) for view in views])


@EVERY_STORE
def test_the_latest_value_is_that_of_the_batch_under_way(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    write(state, record(1), a=1)
    assert latest(state) == [[1]]
    announce(state, begun=record(1))
    assert latest(state) == [[1]]
    write(state, record(2), b=2)
    assert latest(state, keys="abc") == [[1, 2, None]]


@EVERY_STORE
def test_the_latest_value_is_none_that_an_attempt_left_which_has_failed(
    store: type[DictMap],
) -> None:
    state = OpaqueMap(store())
    write(state, record(1), a=1, b=1)
    announce(state, begun=record(1))
    write(state, record(2), a=2, b=2)
    write(state, record(2, 1), a=3)
    assert latest(state, keys="ab") == [[3, 1]]
    announce(state, begun=record(2, 1))
    write(state, record(3, t2=1), b=4)
    assert latest(state, keys="ab") == [[3, 4]]


def test_the_latest_values_of_two_states_may_be_of_different_batches() -> None:
    one, other = OpaqueMap(MemoryMap(uuid4().hex)), OpaqueMap(MemoryMap(uuid4().hex))
    for state in (one, other):
        write(state, record(1), a=1)
        announce(state, begun=record(1))
    write(one, record(2), a=2)
    assert latest(one, other) == [[2], [1]]
    assert read(one, other) == [[1], [1]]


@pytest.mark.parametrize("kind", [TransactionalMap, NonTransactionalMap])
def test_the_latest_value_of_a_map_that_isnt_opaque_is_the_one_that_is_there(kind: Any) -> None:
    state = kind(MemoryMap(uuid4().hex))
    assert latest(state) == [[None]]
    write(state, record(1), a=1)
    assert latest(state) == [[1]]


def test_the_latest_value_of_a_state_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NoStateError):
        latest(OpaqueMap(DictMap()))
