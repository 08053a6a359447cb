"""Updates are remembered, written once, by the way the store offers."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from tests.states.abilities import FencedMap as ServedMap
from tests.states.abilities import TroubledServer
from tests.states.maps import (
    STORES,
    AddingMap,
    Count,
    DictMap,
    EntryMap,
    FencedMap,
    FieldsMap,
    VersionedMap,
)
from trident.backends import hbase, memcached, postgres, redis, sqlite
from trident.backends.memory import LRUMemoryMapState, MemoryMapState
from trident.errors import (
    CorruptStateError,
    FailedException,
    LongOverflowError,
    OtherLogError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
)
from trident.states import (
    CachedMap,
    CombinerValueUpdater,
    MapState,
    MapStateFactory,
    MicroBatchMap,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    PickleSerializer,
    PutUpdater,
    SnapshottableMap,
    StateType,
    Token,
    TransactionalMap,
    ValueUpdater,
    WrappedMap,
    decode_key,
    encode_key,
    encode_keys,
)
from trident.states.control import ControlRecord
from trident.states.store import OpenedStore
from trident.states.table.build import layers

EVERY_STORE = pytest.mark.parametrize("store", STORES)


def put(state: MapState, txid: int, **values: object) -> None:
    state.beginCommit(txid)
    state.multiPut([(key,) for key in values], list(values.values()))
    state.commit(txid)


def get(state: MapState, *keys: str) -> list[object]:
    return state.multiGet([(key,) for key in keys])


def test_a_key_is_read_and_written_once_an_attempt() -> None:
    state = OpaqueMap(DictMap())
    state.beginCommit(1)
    before = state.counts
    for _ in range(3):
        state.multiCombine([b"a", b"b"], [1, 1], Count())
    state.commit(1)
    after = state.counts
    assert (after.gets - before.gets, after.puts - before.puts) == (1, 1)
    assert (after.keys_read - before.keys_read, after.keys_written - before.keys_written) == (2, 2)


@EVERY_STORE
@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_empty_calls_ask_nothing_of_the_store(store: type[DictMap], kind: type[OpaqueMap]) -> None:
    state = kind(store())
    state.beginCommit(1)
    record = state.control.read()
    assert record is not None
    state.beginCommit(record)
    before = state.counts
    assert state.multiGet([]) == state.multiUpdate([], []) == []
    assert state.multiCombine([], [], Count()) == []
    state.multiPut([], [])
    state.multiFold([], [], Count())
    state.multiRemove([])
    state.commit(record)
    assert state.counts == before


def test_one_shot_iterables_will_do() -> None:
    state = OpaqueMap(DictMap())

    def keys() -> Iterator[tuple[str]]:
        yield from [("a",), ("b",)]

    state.beginCommit(1)
    assert state.multiUpdate(keys(), (PutUpdater(n) for n in (1, 2))) == [1, 2]
    state.multiPut(keys(), iter([3, 4]))
    assert state.multiGet(keys()) == [3, 4]
    state.multiRemove(iter([("a",)]))
    state.commit(1)
    assert state.multiGet(keys()) == [None, 4]


@pytest.mark.parametrize("call", ["multiUpdate", "multiPut", "multiCombine", "multiFold"])
def test_an_update_outside_a_batch_is_an_error(call: str) -> None:
    state = OpaqueMap(DictMap())
    arguments = ([b"a"], [1], Count()) if call in ("multiCombine", "multiFold") else ([], [])
    with pytest.raises(StateError, match="beginCommit first"):
        getattr(state, call)(*arguments)


def test_a_commit_of_another_batch_is_an_error() -> None:
    state = OpaqueMap(DictMap())
    with pytest.raises(StateError, match="beginCommit first"):
        state.commit(1)
    state.beginCommit(1)
    with pytest.raises(StateError, match="commit what was begun"):
        state.commit(2)


@pytest.mark.parametrize("batch", [None, "1", 1.0, True])
def test_a_batch_of_another_type_is_an_error(batch: object) -> None:
    with pytest.raises(StateError, match="an int, a Token or a ControlRecord"):
        OpaqueMap(DictMap()).beginCommit(batch)  # type: ignore[arg-type]


def test_keys_and_updaters_must_be_as_many() -> None:
    state = OpaqueMap(DictMap())
    state.beginCommit(1)
    with pytest.raises(StateError, match="2 keys came with 1"):
        state.multiPut([("a",), ("b",)], [1])


@EVERY_STORE
def test_after_a_failed_flush_nothing_is_pending(store: type[DictMap]) -> None:
    shared = store()
    state = NonTransactionalMap(shared)
    put(state, 1, a=1)
    state.beginCommit(2)
    state.multiPut([("a",)], [2])
    state.tables.writing.begin(ControlRecord("other", Token(2, 0)))
    with pytest.raises(StaleBatchError):
        state.commit(2)
    assert get(state, "a") == [1]
    with pytest.raises(StateError, match="beginCommit first"):
        state.commit(2)


def test_a_state_of_a_topology_is_not_begun_with_an_int() -> None:
    state = OpaqueMap(DictMap())
    state.control.begin(ControlRecord("log-1", Token(4, 0), 3))
    with pytest.raises(OtherLogError):
        state.beginCommit(5)


@EVERY_STORE
def test_a_token_that_was_never_begun_is_refused(store: type[DictMap]) -> None:
    with pytest.raises(StaleBatchError):
        OpaqueMap(store()).beginCommit(Token(1, 0))


@EVERY_STORE
def test_a_write_without_a_control_record_is_refused(store: type[DictMap]) -> None:
    shared = store()
    state = OpaqueMap(shared)
    state.beginCommit(ControlRecord("log-1", Token(1, 0)))
    state.multiPut([("a",)], [1])
    with pytest.raises(StateUnavailableError, match="no longer knows that batch 1 began"):
        state.commit(Token(1, 0))
    assert not shared.stored


@EVERY_STORE
def test_a_store_that_went_back_before_the_begin_fails_the_attempt(store: type[DictMap]) -> None:
    shared = store()
    state = OpaqueMap(shared)
    state.control.begin(ControlRecord("log-1", Token(1, 0)))
    before = dict(shared.stored)
    state.control.begin(ControlRecord("log-1", Token(1, 1)))
    state.beginCommit(Token(1, 1))
    state.multiPut([("a",)], [1])
    shared.stored.clear()
    shared.stored.update(before)
    with pytest.raises(StateUnavailableError, match="no longer knows that batch 1 began"):
        state.commit(Token(1, 1))
    assert shared.stored == before


@EVERY_STORE
def test_a_late_attempt_of_the_same_batch_is_refused(store: type[DictMap]) -> None:
    shared = store()
    late, next_attempt = OpaqueMap(shared), OpaqueMap(shared)
    late.beginCommit(1)
    late.multiPut([("a",)], [1])
    put(next_attempt, 1, b=2)
    with pytest.raises(StaleBatchError):
        late.commit(1)
    assert get(next_attempt, "a", "b") == [None, 2]


@EVERY_STORE
def test_two_tasks_of_one_attempt_write_the_same(store: type[DictMap]) -> None:
    shared = store()
    first, second = OpaqueMap(shared), OpaqueMap(shared)
    put(first, 1, a=1)
    record = ControlRecord("stand-alone", Token(2, 0), 1)
    first.control.begin(record)
    for state in (first, second):
        state.beginCommit(record)
        assert state.multiCombine([b"a"], [10], Count()) == [11]
    first.commit(record)
    second.commit(record)
    first.control.announce(record)
    assert get(OpaqueMap(shared), "a") == [11]


def test_a_conflicting_entry_is_computed_again() -> None:
    shared = EntryMap()
    state = NonTransactionalMap(shared)
    state.beginCommit(1)
    state.multiUpdate([("a",), ("b",)], [CombinerValueUpdater(Count(), n) for n in (1, 2)])
    state.multiFold([b"a"], [10], Count())
    shared.stored[b"a"] = b"100"
    state.commit(1)
    assert get(state, "a", "b") == [111, 2]


def test_a_conflict_with_a_task_of_the_same_attempt_adds_nothing() -> None:
    shared = EntryMap()
    first, second = TransactionalMap(shared), TransactionalMap(shared)
    record = ControlRecord("stand-alone", Token(1, 0))
    first.control.begin(record)
    for state in (first, second):
        state.beginCommit(record)
        state.multiCombine([b"a"], [1], Count())
    first.commit(record)
    second.commit(record)
    assert shared.stored[b"a"] == b"[1,1]"


def test_a_conflict_with_a_later_batch_is_stale() -> None:
    shared = EntryMap()
    state = OpaqueMap(shared)
    state.beginCommit(1)
    state.multiPut([("a",)], [1])
    shared.stored[b"a"] = b"[9,9,null]"
    with pytest.raises(StaleBatchError):
        state.commit(1)
    assert shared.stored[b"a"] == b"[9,9,null]"


def test_an_entry_that_changes_for_ever_fails_the_attempt() -> None:
    class Restless(EntryMap):
        def multiPutVersioned(self, keys, values, versions):  # type: ignore[no-untyped-def]
            return [False] * len(keys)

    state = NonTransactionalMap(Restless())
    state.beginCommit(1)
    state.multiPut([("a",)], [1])
    with pytest.raises(FailedException, match="somebody else"):
        state.commit(1)


def test_a_versioned_write_carries_its_token() -> None:
    shared = VersionedMap()
    state = OpaqueMap(shared)
    put(state, 5, a=1)
    put(state, 5, a=1)
    assert shared.versions[b"a"] == 2**62 | 5 << 12 | 1


def test_a_store_adds_by_itself_what_nobody_asks_for() -> None:
    state = OpaqueMap(AddingMap())
    state.beginCommit(1)
    before = state.counts
    state.multiFold([b"a", b"b", b"a"], [1, 2, 3], Count())
    state.multiFold([b"a"], [10], Count())
    state.commit(1)
    assert state.counts.gets == before.gets
    assert get(state, "a", "b") == [14, 2]


@pytest.mark.parametrize("store", [AddingMap, FencedMap])
def test_adding_and_other_updates_of_a_key_keep_their_order(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    put(state, 1, a=1)
    state.beginCommit(2)
    state.multiFold([b"a", b"b"], [10, 20], Count())
    assert get(state, "a") == [11]
    state.multiPut([("a",)], [100])
    state.multiFold([b"a"], [1000], Count())
    assert get(state, "a", "b") == [1100, 20]
    state.commit(2)
    assert get(state, "a", "b") == [1100, 20]


@EVERY_STORE
def test_an_integer_of_over_64_bits_is_an_error_that_names_its_key(store: type[DictMap]) -> None:
    state = OpaqueMap(store())
    put(state, 1, dog=2**63 - 1)
    state.beginCommit(2)
    with pytest.raises(LongOverflowError, match="dog"):
        state.multiCombine([b"dog"], [1], Count())
    with pytest.raises(LongOverflowError, match="cat"):
        state.multiFold([b"cat", b"cat"], [2**62, 2**62], Count())
    with pytest.raises(LongOverflowError, match="cat"):
        state.multiPut([("cat",)], [-(2**63) - 1])


@EVERY_STORE
@pytest.mark.parametrize("stored", ["7", [7], {"seven": 7}])
def test_a_number_added_to_none_is_an_error_that_names_its_key(
    store: type[DictMap], stored: object
) -> None:
    state = OpaqueMap(store())
    put(state, 1, dog=stored)
    state.beginCommit(2)
    with pytest.raises(CorruptStateError, match=rf"key \('dog',\) .* is a {type(stored).__name__}"):
        state.multiCombine([b"cat", b"dog"], [1, 1], Count())


def test_a_value_changed_in_place_does_not_change_what_was_committed() -> None:
    class Grown(ValueUpdater):
        def update(self, stored: list[int] | None) -> list[int]:
            grown = [] if stored is None else stored
            grown.append(1)
            return grown

    state = MemoryMapState.Factory().makeState()
    for txid in (1, 2, 2):
        state.beginCommit(txid)
        state.multiUpdate([("a",)], [Grown()])
        state.commit(txid)
    assert get(state, "a") == [[1, 1]]


@EVERY_STORE
@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_none_removes(store: type[DictMap], kind: type[OpaqueMap]) -> None:
    state = kind(store())
    put(state, 1, a=1, b=2)
    put(state, 2, a=None)
    assert get(state, "a", "b") == [None, 2]


@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_tombstones_of_committed_batches_go_where_the_store_can(kind: type[OpaqueMap]) -> None:
    shared = FencedMap()
    state = kind(shared)
    put(state, 1, a=1, b=2, c=3)
    put(state, 2, a=None, b=None)
    assert shared.stored.keys() > {b"a", b"b"}
    put(state, 3, b=5)
    assert b"a" not in shared.stored
    assert get(state, "a", "b", "c") == [None, 5, 3]


def test_a_tombstone_of_a_replayed_batch_stays_until_it_is_committed() -> None:
    state = OpaqueMap(FencedMap())
    put(state, 1, a=1)
    put(state, 2, a=None)
    put(state, 2, b=2)
    put(state, 3, c=3)
    assert get(state, "a", "b", "c") == [1, 2, 3]


def test_keys_may_be_exchanged_as_fields() -> None:
    shared = FieldsMap()
    put(OpaqueMap(shared), 1, dog=2)
    assert shared.stored[("dog",)] == OpaqueValue(1, 0, 2, None)


def test_a_state_keeps_a_single_value_beside_its_keys() -> None:
    state = OpaqueMap(DictMap())
    state.beginCommit(1)
    assert state.update(CombinerValueUpdater(Count(), 5)) == 5
    state.multiPut([("a",)], [1])
    state.commit(1)
    assert state.get() == 5
    assert get(state, "a", "$GLOBAL$") == [1, 5]


def test_the_single_value_may_have_another_key() -> None:
    state = OpaqueMap(DictMap(), key=("total", 1))
    state.beginCommit(1)
    state.set(5)
    state.commit(1)
    assert state.multiGet([("total", 1), ("$GLOBAL$",)]) == [5, None]
    assert isinstance(state, SnapshottableMap)


def test_factories_pickle_and_share_a_memory_by_id() -> None:
    factory = MemoryMapState.Factory()
    put(factory.makeState(), 1, a=1)
    again = pickle.loads(pickle.dumps(factory)).makeState()
    assert get(again, "a") == [1]
    assert get(copy.deepcopy(again), "a") == [1]
    assert get(MemoryMapState.Factory().makeState(), "a") == [None]


def test_a_factory_equals_its_pickled_copy() -> None:
    factory = MapStateFactory(OpenedStore(DictMap, name="mine"), StateType.TRANSACTIONAL)
    assert pickle.loads(pickle.dumps(factory)) == factory


@pytest.mark.parametrize(
    "factory",
    [
        *(sqlite.opaque("a.db"), memcached.transactional(), hbase.nonTransactional()),
        *(redis.opaque(), postgres.opaque()),
    ],
    ids=lambda factory: type(factory.store).__name__,
)
def test_a_prefix_without_utf_8_is_refused(factory: MapStateFactory) -> None:
    with pytest.raises(ValueError, match=r"half of a surrogate pair, .* give another"):
        factory.named("a\ud800")


def test_closing_twice_is_fine() -> None:
    state = MemoryMapState.Factory().makeState()
    state.close()
    state.close()


def test_a_bounded_memory_forgets_the_keys_used_longest_ago() -> None:
    state = LRUMemoryMapState.Factory(2).makeState()
    put(state, 1, a=1, b=2, c=3)
    assert get(state, "a", "b", "c") == [None, 2, 3]


def test_only_a_state_that_one_process_writes_under_the_fence_is_cached() -> None:
    def kinds(hosted: str, make: type[DictMap] = FencedMap) -> set[type]:
        factory = MapStateFactory(OpenedStore(make, hosted), cache_size=9, max_put=3)  # type: ignore[arg-type]
        wrapping, store = layers(factory.open())
        return {*map(type, wrapping), type(store)}

    assert kinds("driver") == {CachedMap, MicroBatchMap, FencedMap}
    assert kinds("driver", DictMap) == {MicroBatchMap, DictMap}
    assert kinds("executor") == {MicroBatchMap, FencedMap}


@pytest.mark.parametrize("store", [DictMap, EntryMap, VersionedMap])
def test_a_cache_over_a_store_without_the_fence_keeps_nothing(store: type[DictMap]) -> None:
    cache = CachedMap(store(), 9)
    state = OpaqueMap(cache)
    for txid in (1, 2):
        put(state, txid, a=txid)
    assert (cache.hits, cache.misses) == (0, 0)


def test_a_cache_forgets_what_was_written_without_an_answer() -> None:
    class Mute(FencedMap):
        mute = False

        def multiPutFenced(self, keys: Any, values: Any, fence: bytes) -> bool:
            stored = super().multiPutFenced(keys, values, fence)
            if self.mute:
                raise StateUnavailableError("counts", "no answer")
            return stored

    store = Mute()
    state = NonTransactionalMap(CachedMap(store, 9))
    put(state, 1, a=1)
    store.mute = True
    with pytest.raises(StateUnavailableError):
        put(state, 2, a=2)
    store.mute = False
    state.beginCommit(3)
    state.multiFold([encode_key(("a",))], [10], Count())
    state.commit(3)
    assert get(state, "a") == [12]


def test_a_cache_forgets_what_the_store_adds_to_and_what_it_removes() -> None:
    state = OpaqueMap(CachedMap(AddingMap(), 9))
    for txid, call in ((1, state.multiCombine), (2, state.multiFold), (3, state.multiCombine)):
        state.beginCommit(txid)
        found = call([b"a"], [10**txid], Count())
        state.commit(txid)
    assert found == [1110]
    shared = FencedMap()
    state = OpaqueMap(CachedMap(shared, 9))
    put(state, 1, a=1)
    put(state, 2, a=None)
    put(state, 3, b=1)
    shared.stored[b"a"] = b"[1,7,null]"
    state.beginCommit(4)
    assert get(state, "a") == [7]


@pytest.mark.parametrize("max_put", [0, 1])
def test_additions_and_removals_are_split_too(max_put: int) -> None:
    sizes = []

    class Sized(AddingMap):
        def multiAddFenced(self, keys, amounts, *rest):  # type: ignore[no-untyped-def]
            sizes.append(len(keys))
            return super().multiAddFenced(keys, amounts, *rest)

        def multiRemoveFenced(self, keys, fence):  # type: ignore[no-untyped-def]
            sizes.append(len(keys))
            return super().multiRemoveFenced(keys, fence)

    state = OpaqueMap(MicroBatchMap(Sized(), max_put=max_put))
    state.beginCommit(1)
    state.multiFold([b"a", b"b"], [1, 2], Count())
    state.commit(1)
    put(state, 2, a=None, b=None)
    put(state, 3, c=1)
    assert sizes == ([1, 1, 1, 1] if max_put else [2, 2])
    assert get(state, "a", "b", "c") == [None, None, 1]


def test_a_layer_below_another_wrapper_is_refused() -> None:
    with pytest.raises(StateError, match="CachedMap can't be wrapped in another map"):
        WrappedMap(CachedMap(FencedMap(), 9))  # type: ignore[arg-type]


def test_entries_that_were_refused_in_one_part_of_a_call_are_computed_again() -> None:
    shared = EntryMap()
    state = NonTransactionalMap(MicroBatchMap(shared, max_get=1, max_put=2))
    state.beginCommit(1)
    state.multiCombine([b"a", b"b", b"c"], [1, 2, 3], Count())
    shared.stored |= {b"b": b"100", b"c": b"200"}
    state.commit(1)
    assert get(state, "a", "b", "c") == [1, 102, 203]


@pytest.mark.parametrize("layer", [lambda store: store, MicroBatchMap], ids=["none", "parts"])
def test_keys_as_fields_pass_a_refusing_store_and_layers(layer: Any) -> None:
    class ConditionalFieldsMap(EntryMap):
        codec = None

    shared = ConditionalFieldsMap()
    state = NonTransactionalMap(layer(shared))
    state.beginCommit(1)
    state.multiCombine([encode_key((True,)), encode_key((2,))], [1, 2], Count())
    shared.stored[(2,)] = 100
    state.commit(1)
    assert state.multiGet([(True,), (2,)]) == [1, 102]


def test_a_key_that_a_batch_looked_up_is_compared_with_what_its_update_read() -> None:
    shared = EntryMap()
    state = NonTransactionalMap(shared)
    state.beginCommit(1)
    state.multiCombine([b"a"], [1], Count())
    shared.stored[b"a"] = b"100"
    assert get(state, "a", "b") == [1, None]
    state.commit(1)
    assert get(state, "a") == [101]


def test_a_cache_that_is_left_out_says_why() -> None:
    redis_cached = redis.opaque(cache_size=9)
    assert "several processes write the state" in (redis_cached.cache_left_out or "")
    assert redis.opaque().cache_left_out is None
    plain = MapStateFactory(OpenedStore(DictMap, "driver"), cache_size=9)
    assert "DictMap can't refuse a late write" in (plain.cache_left_out or "")
    assert sqlite.opaque("a.db", cache_size=9).cache_left_out is None


@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap, NonTransactionalMap])
def test_a_cache_forgets_the_log_before(kind: type[OpaqueMap]) -> None:
    server = TroubledServer()
    caches = {process: CachedMap(ServedMap(server), 9) for process in "ab"}
    for log_id, turns in (("a1", "bbb"), ("b2", "ab")):
        server.entries.clear()
        for committed, process in enumerate(turns):
            record = ControlRecord(log_id, Token(committed + 1, 0), committed)
            state = kind(caches[process])
            state.control.begin(record)
            state.beginCommit(record)
            state.multiFold([b"k"], [1], Count())
            state.commit(record)
            state.control.announce(record)
    assert get(kind(ServedMap(server)), "k") == [2]


def test_a_factory_over_ones_own_map_takes_every_option() -> None:
    shared = DictMap()
    factory = OpaqueMap.factory(lambda: shared, serializer=PickleSerializer(), name="mine")
    put(factory.makeState(), 1, a=(1, 2))
    assert get(factory.named("counts").makeState(), "a") == [(1, 2)]
    assert factory.kind is StateType.OPAQUE
    assert factory.hosted == "executor"
    assert factory.identity[1] == "mine"


def test_many_keys_are_flushed_in_parts() -> None:
    state = OpaqueMap(FencedMap())
    keys = encode_keys((n,) for n in range(70_000))
    state.beginCommit(1)
    state.multiFold(keys, [1] * len(keys), Count())
    state.commit(1)
    assert set(state.multiGet(map(decode_key, keys))) == {1}


@pytest.mark.parametrize("kind", [OpaqueMap, TransactionalMap])
@pytest.mark.parametrize("store", [DictMap, FencedMap, EntryMap])
def test_what_half_a_flush_has_left_is_counted_once(
    store: type[DictMap], kind: type[OpaqueMap]
) -> None:
    class FailsInTheMiddle(store):  # type: ignore[misc, valid-type]
        left = 10**6

        def _fail(self, keys: list[bytes]) -> None:
            self.left -= 1
            if not self.left:
                raise FailedException("the store is away")

    backing = FailsInTheMiddle()
    counts = kind(MicroBatchMap(backing, max_put=1))
    keys = encode_keys([("a",), ("b",), ("c",)])
    for left, attempt in ((10**6, 0), (2, 0), (2, 1), (10**6, 2)):
        done = counts.control.read()
        committed = 0 if done is None else 1
        begun = ControlRecord("a1", Token(committed + 1, attempt), committed)
        counts.control.begin(begun)
        counts.beginCommit(begun)
        counts.multiCombine(keys, [1, 1, 1], Count())
        backing.left = left
        if left < 10:
            with pytest.raises(FailedException):
                counts.commit(begun)
        else:
            counts.commit(begun)
            counts.control.announce(begun)
    assert get(counts, "a", "b", "c") == [2, 2, 2]


class AddOnlyMap(DictMap):
    """Overrides the fenced addition, but not the fenced write."""

    codec = AddingMap.codec
    multiAddFenced = AddingMap.multiAddFenced


def test_a_store_that_only_adds_under_the_fence_loses_nothing() -> None:
    counts = OpaqueMap(AddOnlyMap())
    for txid in (1, 2):
        counts.beginCommit(txid)
        counts.multiFold([b"dog"], [1], Count())
        counts.commit(txid)
    assert get(counts, "dog") == [2]


def test_a_batch_without_a_log_is_flushed_after_its_commit() -> None:
    calls: list[str] = []

    class Noting(FencedMap):
        def putControl(self, new: bytes, expected: bytes | None) -> bool:
            calls.append("control")
            return super().putControl(new, expected)

        def flush(self) -> None:
            calls.append("flush")

    put(OpaqueMap(Noting()), 1, dog=1)
    assert calls == ["control", "control", "flush"]


def test_a_store_that_executors_reach_may_be_written_by_the_driver() -> None:
    factory = MapStateFactory(OpenedStore(FencedMap, "executor"), cache_size=9, hosted="driver")
    assert (factory.hosted, factory.named("n").hosted) == ("driver", "driver")
    assert CachedMap in map(type, layers(factory.open())[0])
    with pytest.raises(ValueError, match="only the driver's process reaches it"):
        MapStateFactory(OpenedStore(FencedMap, "driver"), hosted="executor")
