"""What the original does in numbers, and what it gets wrong and this library does not."""

from __future__ import annotations

import pytest

from tests.states.maps import STORES, Count, DictMap, FencedMap
from trident.backends.memory import MemoryMapState
from trident.errors import FailedException, StaleBatchError
from trident.states import (
    CachedMap,
    CombinerValueUpdater,
    ControlRecord,
    IBackingMap,
    MapState,
    MicroBatchMap,
    NonTransactionalMap,
    OpaqueMap,
    Token,
    TransactionalMap,
    WrappedMap,
)
from trident.states.kinds import PLAIN
from trident.states.table.build import layered, layers
from trident.states.table.table import LayeredMap, Table

EVERY_STORE = pytest.mark.parametrize("store", STORES)


def add(state: MapState, key: str, amount: int) -> int:
    [value] = state.multiUpdate([(key,)], [CombinerValueUpdater(Count(), amount)])
    assert isinstance(value, int)
    return value


def run(state: MapState, txid: int, *amounts: int, key: str = "a") -> list[int]:
    state.beginCommit(txid)
    values = [add(state, key, amount) for amount in amounts]
    state.commit(txid)
    return values


def get(state: MapState, key: str = "a") -> object:
    [value] = state.multiGet([(key,)])
    return value


@EVERY_STORE
def test_s4_opaque_counts_within_a_batch_over_a_replay_and_the_next(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    state.beginCommit(1)
    assert get(state) is None
    assert add(state, "a", 1) == 1
    assert get(state) == 1
    assert add(state, "a", 2) == 3
    assert get(state) == 3
    state.commit(1)
    state.beginCommit(1)
    assert get(state) is None
    assert add(state, "a", 2) == 2
    state.commit(1)
    state.beginCommit(2)
    assert get(state) == 2
    assert add(state, "a", 3) == 5
    assert add(state, "a", 1) == 6
    state.commit(2)
    assert get(state) == 6


@EVERY_STORE
def test_s5_transactional_leaves_a_replay_alone(store: type[DictMap]) -> None:
    state = TransactionalMap(store())
    state.beginCommit(1)
    assert get(state) is None
    assert add(state, "a", 1) == 1
    assert add(state, "a", 2) == 3
    state.commit(1)
    state.beginCommit(1)
    assert get(state) == 3
    assert add(state, "a", 1) == 3
    assert add(state, "a", 2) == 3
    state.commit(1)
    assert run(state, 2, 3, 1) == [6, 7]


def test_s6_removal_is_undone_by_a_replay_and_kept_by_the_next_batch() -> None:
    state = MemoryMapState.Factory().makeState()
    keys = [("a",), ("b",)]
    state.beginCommit(1)
    state.multiPut(keys, [1, 2])
    state.commit(1)
    state.beginCommit(2)
    state.multiRemove([("a",)])
    assert state.multiGet(keys) == [None, 2]
    state.commit(2)
    state.beginCommit(2)
    assert state.multiGet(keys) == [1, 2]
    state.multiRemove([("a",)])
    state.commit(2)
    state.beginCommit(3)
    assert state.multiGet(keys) == [None, 2]


def test_s9_opaque_entries_over_replays_and_gaps() -> None:
    state = MemoryMapState.Factory().makeState()
    seen = []
    for txid, amounts in [(1, [1]), (1, [2]), (2, [3]), (2, [4]), (2, [5]), (9, [1]), (10, [1, 1])]:
        run(state, txid, *amounts)
        [entry] = state.backing.multiGet([b"a"])
        seen.append((entry.txid, entry.curr, entry.prev))
    state.beginCommit(10)
    state.multiPut([("a",)], [500])
    state.commit(10)
    [entry] = state.backing.multiGet([b"a"])
    seen.append((entry.txid, entry.curr, entry.prev))
    assert seen == [
        (1, 1, None),
        (1, 2, None),
        (2, 5, 2),
        (2, 6, 2),
        (2, 7, 2),
        (9, 8, 7),
        (10, 10, 8),
        (10, 500, 8),
    ]


def test_s10_a_batch_behind_the_entries_is_refused() -> None:
    state = OpaqueMap(DictMap({b"a": b"[7,1,null]"}))
    state.beginCommit(6)
    with pytest.raises(StaleBatchError):
        get(state)
    with pytest.raises(StaleBatchError):
        add(state, "a", 1)


@EVERY_STORE
def test_s11_an_earlier_batch_is_refused(store: type[DictMap]) -> None:
    state = TransactionalMap(store())
    run(state, 2, 5)
    with pytest.raises(StaleBatchError):
        state.beginCommit(1)
    assert get(state) == 5


def test_s12_a_put_replaces_even_what_this_batch_wrote() -> None:
    store = DictMap()
    state = TransactionalMap(store)
    run(state, 2, 5)
    state.beginCommit(2)
    state.multiPut([("a",)], [99])
    state.commit(2)
    assert store.stored[b"a"] == b"[2,99]"


@EVERY_STORE
def test_s13_non_transactional_counts_a_replay_again(store: type[DictMap]) -> None:
    state = NonTransactionalMap(store())
    assert run(state, 1, 2) == [2]
    assert run(state, 1, 2) == [4]


@EVERY_STORE
@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_s14_a_key_given_twice_is_updated_twice(
    store: type[DictMap], kind: type[OpaqueMap]
) -> None:
    state = kind(store())
    state.beginCommit(1)
    updaters = [CombinerValueUpdater(Count(), 1), CombinerValueUpdater(Count(), 2)]
    assert state.multiUpdate([("a",), ("a",)], updaters) == [1, 3]
    state.commit(1)
    assert get(state) == 3


@EVERY_STORE
def test_s15_a_late_write_of_an_overtaken_worker_is_refused(store: type[DictMap]) -> None:
    shared = store()
    late, worker = OpaqueMap(shared), OpaqueMap(shared)
    run(worker, 4, 10)
    late.beginCommit(5)
    add(late, "a", 1)
    run(worker, 5, 1)
    run(worker, 6, 100)
    with pytest.raises(StaleBatchError):
        late.commit(5)
    assert run(worker, 7, 1000) == [1111]


@EVERY_STORE
def test_s16_a_replay_without_a_key_takes_back_what_it_had_added(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    state.beginCommit(2)
    add(state, "the", 1)
    add(state, "dog", 1)
    state.commit(2)
    run(state, 2, 1, key="the")
    assert run(state, 3, 1, key="dog") == [1]


@EVERY_STORE
def test_s18_a_replay_with_other_tuples_starts_from_the_batch_before(store: type[DictMap]) -> None:
    state = OpaqueMap(store())

    def combine(txid: int, **counts: int) -> list[int]:
        state.beginCommit(txid)
        keys = [word.encode() for word in counts]
        values = state.multiCombine(keys, list(counts.values()), Count())
        state.commit(txid)
        return values

    assert combine(1, the=2, man=1) == [2, 1]
    assert combine(2, the=1, dog=1) == [3, 1]
    assert combine(2, the=3) == [5]
    state.beginCommit(3)
    assert state.multiGet([("the",), ("man",), ("dog",), ("zzz",)]) == [5, 1, None, None]


class Watched(WrappedMap):
    """Remembers what was asked."""

    def __init__(self, inner: DictMap) -> None:
        super().__init__(inner)
        self.asked: list[list[bytes]] = []
        self.put: list[int] = []

    def multiGet(self, keys):  # type: ignore[no-untyped-def]
        self.asked.append(list(keys))
        return self.inner.multiGet(keys)

    def multiPut(self, keys, values):  # type: ignore[no-untyped-def]
        self.put.append(len(keys))
        self.inner.multiPut(keys, values)


def begun(backing: IBackingMap | LayeredMap) -> Table:
    """The table of a state over a map, in the middle of a batch."""
    record = ControlRecord("log", Token(2, 0), 1)
    assert layers(backing)[1].putControl(record.encode(), None)
    table = layered(backing, PLAIN).writing
    table.begin(record)
    return table


def test_s19_a_cache_answers_for_the_keys_used_last_and_for_absent_ones() -> None:
    store = FencedMap()
    watched = Watched(store)
    cache = CachedMap(watched, 2)
    table = begun(cache)
    assert table.read([b"a", b"b"]) == [None, None]
    store.stored[b"a"] = b"7"
    assert table.read([b"a"]) == [None]
    assert not table.write([b"c"], [b"1"])
    assert table.read([b"a", b"b", b"c"]) == [None, None, b"1"]
    assert watched.asked == [[b"a", b"b"], [b"b"]]
    assert (cache.hits, cache.misses) == (3, 3)


def test_s20_large_calls_are_split_in_order() -> None:
    watched = Watched(DictMap())
    table = begun(MicroBatchMap(watched, max_get=3, max_put=2))
    keys = [b"%d" % n for n in range(7)]
    assert not table.write(keys, keys)
    assert table.read(keys) == keys
    assert watched.put == [2, 2, 2, 1]
    assert [len(asked) for asked in watched.asked] == [3, 3, 1]


def test_s21_memory_lists_what_has_a_value() -> None:
    state = MemoryMapState.Factory().makeState()
    state.beginCommit(1)
    state.multiPut([("a",), ("b",)], [1, 2])
    state.commit(1)
    state.beginCommit(2)
    state.multiRemove([("a",)])
    assert state.get() is None
    state.set(5)
    assert sorted(state.getTuples()) == [("$GLOBAL$", 5), ("b", 2)]
    state.commit(2)
    assert sorted(state.getTuples()) == [("$GLOBAL$", 5), ("b", 2)]


@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap])
def test_s23_a_failed_write_is_not_believed(kind: type[OpaqueMap]) -> None:
    store = FencedMap(fail_puts=1)
    state = kind(CachedMap(store, 10))
    state.beginCommit(1)
    assert add(state, "a", 5) == 5
    with pytest.raises(FailedException):
        state.commit(1)
    assert b"a" not in store.stored
    assert run(state, 1, 5) == [5]
    assert run(state, 2, 1) == [6]
    assert get(kind(store)) == 6


def test_a_token_and_its_record_begin_the_same_attempt() -> None:
    state = MemoryMapState.Factory().makeState()
    run(state, 1, 1)
    record = state.control.read()
    assert record is not None
    state.beginCommit(record)
    state.commit(record.token)
    state.beginCommit(Token(1, 0))
    state.commit(record)
    with pytest.raises(StaleBatchError):
        state.beginCommit(Token(1, 1))


@pytest.mark.parametrize(("txid", "value"), [(8, "v0"), (9, "v1"), (100, "v1")])
def test_s1_an_entry_of_this_batch_gives_what_was_before_it(txid: int, value: str) -> None:
    state = OpaqueMap(DictMap({b"a": b'[8,"v1","v0"]'}))
    state.beginCommit(txid)
    assert get(state) == value


@EVERY_STORE
def test_a_batch_passed_over_without_a_commit_does_not_count(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    run(state, 1, 1)
    state.beginCommit(2)
    add(state, "a", 10)
    assert run(state, 3, 100) == [101]


def test_a_replay_passed_over_leaves_what_was_committed() -> None:
    state = OpaqueMap(DictMap())
    run(state, 1, 1)
    state.beginCommit(1)
    assert run(state, 2, 10) == [11]
