"""States copied into other places: every entry, then the control record, and nothing by halves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from math import nan
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from tests.backends_table import BACKENDS, Backend
from trident import Count, FeederBatchSpout, TridentTopology
from trident.backends import sqlite
from trident.backends.memory import MemoryMap, MemoryMapState
from trident.backends.urls import state_from_url
from trident.errors import (
    CopyError,
    CorruptStateError,
    LostStateError,
    MovedStateError,
    NoStateError,
    RewoundStateError,
    StaleBatchError,
    UnfinishedCopyError,
)
from trident.log.errors import ChangedTopologyError
from trident.states import (
    JSONSerializer,
    KeepUntil,
    OpaqueMap,
    OpaqueValue,
    StateType,
    Token,
    ValueUpdater,
    copy_state,
    encode_key,
    give_back,
)
from trident.states.backing_map import IBackingMap, has_pages
from trident.states.control import UNFINISHED, ControlRecord
from trident.states.maps.copying import CopyProgress
from trident.states.maps.moving import check_places, swap_states
from trident.states.maps.stored_map import StoredMap
from trident.storm import TupleCollectionGet
from trident.testing.servers.promised import Served

RECORD = ControlRecord("a1b2", Token(9, 1), committed=8, retried={3: 1}, ready=False)
"""The second attempt of batch 9 has begun."""

KEYS = [
    *[("",), ("\0",), ("[1]",), ("two\nlines",), ("ä",), ("\x1b[2J",), ("a:b", 2), (b"\xff\0",)],
    *[(None,), (1.5, True), (["x"], {"y": 1}), ("long" * 200,)],
]
"""Keys of which no store may lose or confuse any."""


def content(values: type | None = None) -> dict[bytes, OpaqueValue]:
    """More entries than a page has, in every form that an attempt may have left."""
    forms: list[tuple[Any, Any]] = [(1, None), (2, 1), (None, 3), (-(2**63), 2**63 - 1)]
    if values is None:
        later = KeepUntil([1], datetime(2999, 1, 1, tzinfo=UTC))
        forms += [("x\0y", Decimal("1.50")), (later, None), (nan, -0.0), (1.0, 1), (None, b"\xff")]
    tokens = [(9, 1), (9, 0), (8, 0), (3, 0), (3, 1)]
    keys = [*KEYS, *((f"word {number}",) for number in range(5_100))]
    return {
        encode_key(key): OpaqueValue(*tokens[n % len(tokens)], *forms[n % len(forms)])
        for n, key in enumerate(keys)
    }


def left(entries: dict[bytes, Any], record: ControlRecord | None = RECORD) -> StoredMap:
    """A state in memory that some run has left like this."""
    state = MemoryMapState.Factory().makeState()
    state.backing.multiPut(list(entries), list(entries.values()))
    if record is not None:
        assert state.backing.putControl(record.encode(), None)
    return state


def opened(url: str) -> StoredMap:
    state = state_from_url(url).makeState()
    assert isinstance(state, StoredMap)
    return state


def stored(state: StoredMap) -> dict[bytes, bytes]:
    """What is in a store that lists its entries, in a form in which NaN is NaN."""
    found = {key: entry for page in state.tables.reading.pages() for key, entry in page}
    dumped = state.kept_as.dumps(list(found.values()), JSONSerializer())
    return dict(zip(found, dumped, strict=True))


@pytest.mark.parametrize("row", BACKENDS, ids=lambda row: row.name)
def test_every_entry_and_the_record_go_into_each_store_and_back(
    row: Backend, request: pytest.FixtureRequest
) -> None:
    source = left(content(row.values))
    factory: Any = row.factory(request.getfixturevalue(row.fixture).url)
    with closing(factory.makeState()) as there:
        assert isinstance(there, StoredMap)
        copied = copy_state(source, there)
        assert (copied.entries, copied.written) == (5_112, 5_112)
        assert there.backing.getControl() == RECORD.encode()
        again = copy_state(source, there)
        assert (again.entries, again.written) == (5_112, 0)
        back = MemoryMapState.Factory().makeState()
        if not has_pages(there.backing):
            with pytest.raises(CopyError, match="lists no keys"):
                copy_state(there, back)
            return
        copy_state(there, back)
    assert back.backing.getControl() == RECORD.encode()
    assert stored(back) == stored(source)


def plain(words: dict[str, int], txid: int = 4) -> dict[bytes, OpaqueValue]:
    return {encode_key((word,)): OpaqueValue(txid, 0, n, None) for word, n in words.items()}


SETTLED = ControlRecord("a1b2", Token(4, 0), committed=4, ready=True)


def refused(source: StoredMap, target: StoredMap, problem: str) -> None:
    before, record = stored(target), target.backing.getControl()
    with pytest.raises(CopyError, match=problem):
        copy_state(source, target)
    assert (stored(target), target.backing.getControl()) == (before, record)


def test_a_target_that_holds_anything_else_is_refused_and_stays() -> None:
    source = left(plain({"dog": 2}), SETTLED)
    cat = plain({"cat": 1})
    refused(source, left(cat, None), "is not empty: there is the entry b'cat', and no control")
    refused(source, left(cat, replace(SETTLED, log_id="c3")), "another state, whose log id is c3")
    later = replace(SETTLED, token=Token(5, 0), committed=5)
    refused(source, left(cat, later), "as of batch 5, and the one to copy is as of batch 4")
    begun = replace(SETTLED, log_id=f"{UNFINISHED}c3")
    refused(source, left(cat, begun), "unfinished copy of another state, whose log id is c3")
    refused(source, left(cat, SETTLED), "2 of 2 entries differ")


def test_entries_without_a_record_are_found_in_a_cluster_too(redis_cluster: Served) -> None:
    factory: Any = state_from_url(f"{redis_cluster.url}?prefix={uuid4().hex}&partitions=3")
    target = factory.makeState()
    target.backing.multiPut([b"cat"], [b"[1,1,null]"])
    with pytest.raises(CopyError, match="is not empty: there is the entry b'cat'"):
        copy_state(left(plain({"dog": 2}), SETTLED), target)


def test_a_target_of_another_kind_is_refused() -> None:
    target = state_from_url(f"memory:{uuid4().hex}?kind=transactional&prefix=x").makeState()
    assert isinstance(target, StoredMap)
    with pytest.raises(CopyError, match="keeps opaque values, and .* for transactional ones"):
        copy_state(left(plain({"dog": 2}), SETTLED), target)


@pytest.mark.parametrize("kind", [StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL])
def test_states_of_the_other_kinds_are_copied_too(kind: StateType, tmp_path: Path) -> None:
    word = kind.value.replace("-", "")
    one, other = (
        state_from_url(f"sqlite:{tmp_path}/{name}.db?kind={word}&prefix=x").makeState()
        for name in ("one", "other")
    )
    assert isinstance(one, StoredMap)
    assert isinstance(other, StoredMap)
    with closing(one), closing(other):
        one.beginCommit(1)
        one.multiPut([("dog",), ("cat",)], [{"n": 2}, 1])
        one.commit(1)
        assert copy_state(one, other).written == 2
        assert other.multiGet([("dog",), ("cat",)]) == [{"n": 2}, 1]
        with pytest.raises(StaleBatchError):
            other.beginCommit(0)


def named(path: Path) -> StoredMap:
    """A state whose keys are under names that tell no keys."""
    state = sqlite.opaque(str(path), prefix="x", key_factory="/".join).makeState()
    assert isinstance(state, StoredMap)
    return state


def test_a_state_that_cannot_list_its_keys_is_no_source_and_leaves_no_marker(
    tmp_path: Path,
) -> None:
    target = left({}, None)
    with closing(named(tmp_path / "named.db")) as source:
        copy_state(left(plain({"dog": 2}), SETTLED), source)
        with pytest.raises(CopyError, match="lists no keys"):
            copy_state(source, target)
    assert target.backing.getControl() is None


def test_half_a_copy_under_names_of_keys_is_finished_by_the_next(tmp_path: Path) -> None:
    source = paged(WORDS)
    with closing(named(tmp_path / "named.db")) as target:
        cut_short(source, target, 2)
        assert copy_state(source, target).written == 4
        assert target.multiGet([(word,) for word in WORDS]) == list(WORDS.values())


def test_the_comparison_of_a_whole_copy_finds_what_only_the_new_place_has() -> None:
    target = left(plain({"dog": 2, "cat": 1}), SETTLED)
    refused(left(plain({"dog": 2}), SETTLED), target, "1 of 2 entries differ")


def single(number: int) -> tuple[StoredMap, bytes]:
    """A single value as a topology in memory leaves it, and its key."""
    state = MemoryMapState.Factory().makeState()
    key = encode_key(state.key)
    state.backing.multiPut([key], [OpaqueValue(4, 0, number, None)])
    state.backing.putControl(SETTLED.encode(), None)
    return state, key


@pytest.mark.parametrize("layout", ["string", "hash"])
def test_a_single_value_goes_under_the_key_that_it_has_in_the_new_place(
    layout: str, redis_server: Served
) -> None:
    source, key = single(7)
    url = f"{redis_server.url}?layout={layout}&prefix={uuid4().hex}"
    with closing(opened(url)) as target:
        cut_short(source, target, 0)
        for written in (0, 0):
            assert copy_state(source, target).written == written
        assert target.get() == 7
        assert list(stored(target)) == [encode_key(target.key)] != [key]
        back = MemoryMapState.Factory().makeState()
        copy_state(target, back)
        assert back.get() == 7
    with closing(opened(f"{url}2&snapshot_key={source.key[0]}")) as target:
        copy_state(source, target)
        assert list(stored(target)) == [key]


def test_a_key_that_may_be_of_a_single_value_or_of_a_group_has_to_be_named(
    redis_server: Served,
) -> None:
    source, _ = single(7)
    source.backing.multiPut([b"dog"], [OpaqueValue(4, 0, 1, None)])
    with closing(opened(f"{redis_server.url}?prefix={uuid4().hex}")) as target:
        refused(source, target, "has entries beside .* snapshot_key=")


def test_a_place_without_a_state_is_no_source() -> None:
    target = left({}, None)
    with pytest.raises(NoStateError):
        copy_state(left(plain({"dog": 2}), None), target)
    assert target.backing.getControl() is None


def test_a_state_that_waits_for_its_first_batch_is_replaced() -> None:
    waiting = ControlRecord("c3", Token(0, 0))
    target = left({}, waiting)
    copy_state(left(plain({"dog": 2}), SETTLED), target)
    assert target.multiGet([("dog",)]) == [2]


class Paged(MemoryMap):
    """A map in memory that lists three entries at a time."""

    def pages(self) -> Iterator[list[tuple[bytes, Any]]]:
        keys = sorted(key for key, _ in self.entries())
        for start in range(0, len(keys), 3):
            page = keys[start : start + 3]
            found = zip(page, self.multiGet(page), strict=True)
            yield [(key, value) for key, value in found if value is not None]


class Stopped(Exception):
    """Ends a copy."""


def cut_short(source: StoredMap, target: StoredMap, pages: int = 1) -> None:
    """Copy a few pages, and no more."""

    def stop(progress: CopyProgress) -> None:
        if progress.entries >= 3 * pages:
            raise Stopped

    with pytest.raises(Stopped):
        copy_state(source, target, stop)


def paged(words: dict[str, int], record: ControlRecord = SETTLED) -> OpaqueMap:
    state = OpaqueMap(Paged(uuid4().hex))
    entries = plain(words)
    state.backing.multiPut(list(entries), list(entries.values()))
    state.backing.putControl(record.encode(), None)
    return state


WORDS = {f"word {number}": number for number in range(10)}


def test_half_a_copy_is_neither_read_nor_updated() -> None:
    target = OpaqueMap(Paged(uuid4().hex))
    cut_short(paged(WORDS), target)
    uses: list[Callable[[], object]] = [
        lambda: target.multiGet([("word 1",)]),
        lambda: list(target.getTuples()),
        lambda: target.beginCommit(5),
        lambda: target.control.begin(replace(SETTLED, token=Token(5, 0))),
        lambda: target.control.catch_up(SETTLED, lambda _: None),
        lambda: target.control.create(SETTLED),
        lambda: give_back(target, 4),
        lambda: copy_state(target, left({}, None)),
    ]
    for use in uses:
        with pytest.raises(UnfinishedCopyError, match="a1b2, and can be neither read nor updated"):
            use()


def test_half_a_copy_is_finished_by_the_next() -> None:
    source, target = paged(WORDS), OpaqueMap(Paged(uuid4().hex))
    cut_short(source, target, 2)
    copied = copy_state(source, target)
    assert (copied.entries, copied.written) == (10, 4)
    assert stored(target) == stored(source)


def test_a_copy_that_goes_on_after_its_state_has_moved_is_of_the_later_batch() -> None:
    source, target = paged(WORDS), OpaqueMap(Paged(uuid4().hex))
    cut_short(source, target, 2)
    for txid, word in (5, "word 0"), (6, "word 1"):  # the second removes what the first emptied
        source.control.begin(replace(SETTLED, token=Token(txid, 0), committed=txid - 1))
        begun = source.control.read()
        assert begun is not None
        source.beginCommit(begun)
        source.multiRemove([(word,)])
        source.commit(begun)
        source.control.announce(source.control.ready(begun))
    assert encode_key(("word 0",)) not in stored(source)
    copied = copy_state(source, target)
    assert copied.record.committed == 6
    assert stored(target) == stored(source)


def test_what_was_removed_since_is_an_error_where_nothing_can_remove_it_there() -> None:
    class Keeping(Paged):
        multiRemoveFenced = IBackingMap.multiRemoveFenced

    source, target = paged(WORDS), OpaqueMap(Keeping(uuid4().hex))
    cut_short(source, target, 2)
    [(key, _), *_] = next(source.backing.pages())
    source.backing.multiRemoveFenced([key], SETTLED.encode())
    with pytest.raises(CopyError, match="has 1 entries or more that .* no longer has"):
        copy_state(source, target)


@pytest.mark.parametrize("seed", range(40))
def test_a_copy_beside_a_writer_is_refused_or_of_one_committed_batch(seed: int) -> None:
    """Between any two pages a writer takes a step of its batches; each adds 1 to every key."""
    place, chance = uuid4().hex, Random(seed)
    words = [(f"word {number}",) for number in range(10)]
    source, writer = OpaqueMap(Paged(place)), OpaqueMap(Paged(place))
    steps = _batches(writer, words, chance)
    for _ in range(chance.randrange(4, 12)):
        next(steps)
    target = OpaqueMap(Paged(uuid4().hex))
    busy = [True]

    def beside(progress: CopyProgress) -> None:
        if busy[0] and chance.random() < 0.4:
            next(steps)

    for _ in range(3):
        with suppress(CopyError):
            copied = copy_state(source, target, beside)
            break
        with pytest.raises(UnfinishedCopyError):
            target.control.read()
    else:
        busy[0] = False
        copied = copy_state(source, target, beside)
    assert target.multiGet(words) == [copied.record.committed or None] * len(words)
    # What was under way there is not in the way of its next attempt.
    txid, attempt = copied.record.token
    again = replace(copied.record, token=Token(txid + 1, attempt + 1), ready=False)
    if copied.record.committed < txid:
        again = replace(again, token=Token(txid, attempt + 1))
    target.control.begin(again)
    target.beginCommit(again)
    before = target.multiUpdate(words, [Adding()] * len(words))
    assert before == [copied.record.committed + 1] * len(words)


class Adding(ValueUpdater):
    """Adds 1."""

    def update(self, stored: Any) -> int:
        return (stored or 0) + 1


def _batches(state: OpaqueMap, words: Sequence[Any], chance: Random) -> Iterator[None]:
    """Batch after batch, some in several attempts, a step each time that one is asked for."""
    record = ControlRecord("a1b2", Token(1, 0))
    while True:
        state.control.begin(record)
        yield
        for start in range(0, len(words), 4):
            some = words[start : start + 4]
            state.beginCommit(record)
            state.multiUpdate(some, [Adding()] * len(some))
            state.commit(record)
            yield
        txid, attempt = record.token
        if chance.random() < 0.3:
            record = replace(record, token=Token(txid, attempt + 1))
            continue
        ready = state.control.ready(record)
        yield
        state.control.announce(ready)
        yield
        record = replace(ready.announced(), token=Token(txid + 1, 0), ready=False)


class Forgetful(Paged):
    """Loses the first entry of so many writes."""

    losses = 1

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[Any], fence: bytes) -> bool:
        lost, self.losses = min(self.losses, 1), max(self.losses - 1, 0)
        return super().multiPutFenced(keys[lost:], values[lost:], fence)


def test_a_write_that_a_store_has_lost_is_found_by_the_comparison() -> None:
    source, target = paged(WORDS), OpaqueMap(Forgetful(uuid4().hex))
    assert copy_state(source, target).written == 11
    assert stored(target) == stored(source)


def test_a_store_that_loses_all_that_it_is_given_gets_no_control_record() -> None:
    source, forgetful = paged(WORDS), Forgetful(uuid4().hex)
    forgetful.losses = sys.maxsize
    with pytest.raises(CopyError, match="still differs from .* after 5 comparisons"):
        copy_state(source, OpaqueMap(forgetful))
    with pytest.raises(UnfinishedCopyError):
        OpaqueMap(forgetful).control.read()


def test_a_server_that_starts_anew_during_the_comparison_is_compared_once_more() -> None:
    class Restarting(Paged):
        lives = iter(["first", "first", "second", "second", "second", "second"])

        def incarnation(self) -> str:
            return next(self.lives)

    numbers: list[int] = []
    source, target = paged(WORDS), OpaqueMap(Restarting(uuid4().hex))
    copy_state(source, target, lambda progress: numbers.append(progress.number))
    assert max(numbers) == 3  # the first writes, the second was cut in two


def test_a_server_that_starts_anew_after_the_comparison_gets_no_control_record() -> None:
    class Restarting(Paged):
        life = 1

        def putControl(self, new: bytes, expected: bytes | None) -> bool:
            if new == SETTLED.encode() and self.life == 1:
                self.life = 2
                assert self.multiRemoveFenced([b"word 1"], expected or b"")
            return super().putControl(new, expected)

        def incarnation(self) -> str:
            return str(self.life)

    source, target = paged(WORDS), OpaqueMap(Restarting(uuid4().hex))
    with pytest.raises(CopyError, match="started anew, .* Copy again"):
        copy_state(source, target)
    with pytest.raises(UnfinishedCopyError):
        target.control.read()
    assert copy_state(source, target).written == 1
    assert stored(target) == stored(source)


def test_the_view_of_postgres_shows_nothing_of_half_a_copy(postgres_server: Served) -> None:
    own = f"copied{uuid4().hex}"
    factory: Any = state_from_url(f"{postgres_server.url}?prefix={own}")
    with closing(factory.makeState()) as target:
        cut_short(paged(WORDS), target)
        backing = factory.store.open()
        count = f'SELECT count(*) FROM "{own}_committed"'
        assert backing._read(count) == [(0,)]
        copy_state(paged(WORDS), target)
        assert backing._read(count) == [(10,)]


def test_a_copy_whose_target_is_taken_over_ends_with_an_error() -> None:
    source, target = paged(WORDS), OpaqueMap(Paged(uuid4().hex))
    other = replace(SETTLED, log_id="c3").encode()

    def take(_: CopyProgress) -> None:
        target.backing.putControl(other, target.backing.getControl())

    with pytest.raises(CopyError, match="changed during the copy. Does another copy"):
        copy_state(source, target, take)
    assert target.backing.getControl() == other


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_a_copy_that_is_killed_at_any_moment_is_whole_or_refused_and_goes_on(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = f"sqlite:{tmp_path}/source.db?prefix=counts"
    with closing(state_from_url(source).makeState()) as state:
        copy_state(left(content()), state)
    target = f"sqlite:{tmp_path}/target.db"
    if kind == "redis":
        target = request.getfixturevalue("redis_server").url
    command = [sys.executable, "-m", "tests.backends.killed_copies", source, target]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert said.returncode == 0, said.stderr
    assert int(said.stdout) >= 8  # moments at which it was killed


def test_a_topology_goes_on_in_the_copy_with_its_checkpoint(tmp_path: Path) -> None:
    spout, checkpoint = FeederBatchSpout("word string"), tmp_path / "checkpoint"

    def run(place: Path, *words: str) -> dict[str, int]:
        topology = TridentTopology()
        counted = topology.newStream("words", spout).groupBy("word")
        counts = counted.persistentAggregate(f"sqlite:{place}", Count(), "count")
        topology.newDRPCStream("all").stateQuery(counts, TupleCollectionGet(), "word, n").project(
            "word, n"
        )
        with topology.start(checkpoint=checkpoint) as started:
            spout.feed([(word,) for word in words], timeout=30)
            return dict(json.loads(started.drpc.execute("all", "")))

    old, new = tmp_path / "old.db", tmp_path / "new.db"
    assert run(old, "dog", "cat", "dog") == {"dog": 2, "cat": 1}
    with pytest.raises(LostStateError):
        run(new, "dog")
    one, other = (f"sqlite:{place}?prefix=count" for place in (old, new))
    with closing(opened(one)) as source, closing(opened(other)) as target:
        copy_state(source, target)
    assert run(new, "dog") == {"dog": 3, "cat": 1}
    with pytest.raises(RewoundStateError):
        run(old, "dog")


def by_letter(key: Any, value: Any) -> Any:
    """Another key and value; words with z are left out."""
    return None if "z" in key[0] else ((key[0][0], key[0]), {"n": value})


def test_a_function_makes_keys_and_values_of_both_batches_that_are_kept() -> None:
    entries = {
        encode_key(("dog",)): OpaqueValue(8, 0, 2, 1),
        encode_key(("cat",)): OpaqueValue(9, 0, 5, None),  # not committed
        encode_key(("cow",)): OpaqueValue(3, 1, None, 7),
        encode_key(("zebra",)): OpaqueValue(8, 0, 2, 1),
    }
    source, target = left(entries), MemoryMapState.Factory().makeState()
    copied = copy_state(source, target, transform=by_letter)
    assert (copied.entries, copied.written) == (3, 3)
    assert target.backing.getControl() == RECORD.encode()
    assert dict(target.tables.reading.entries()) == {
        encode_key(("d", "dog")): OpaqueValue(8, 0, {"n": 2}, {"n": 1}),
        encode_key(("c", "cat")): OpaqueValue(9, 0, {"n": 5}, None),
        encode_key(("c", "cow")): OpaqueValue(3, 1, None, {"n": 7}),
    }
    again = copy_state(source, target, transform=by_letter)
    assert (again.entries, again.written) == (3, 0)
    with pytest.raises(CopyError, match="entries differ"):
        copy_state(source, target)


def test_a_copy_by_another_function_removes_what_half_a_copy_has_left() -> None:
    source, target = paged(WORDS), MemoryMapState.Factory().makeState()
    cut_short(source, target, 2)
    copy_state(source, target, transform=lambda key, value: ((*key, 1), value))
    assert target.multiGet([(word, 1) for word in WORDS]) == list(WORDS.values())
    assert sorted(stored(target)) == sorted(encode_key((word, 1)) for word in WORDS)


@pytest.mark.parametrize(
    ("transform", "problem"),
    [
        (lambda key, value: ((key[0][0],), value), "makes one key of .*: ..d',."),
        (lambda key, value: ((key[0], value), value), "makes two keys of .* Make a key of the"),
        (lambda key, value: (key[0], value), r"returned \('.*', \d\) for .* Return the fields"),
        (lambda key, value: value, "the function returned 2 for"),
        (lambda key, value: 1 / 0, "fails for the key .*: ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_that_would_lose_a_value_is_refused_before_anything_is_written(
    transform: Any, problem: str
) -> None:
    entries = {
        encode_key((word,)): OpaqueValue(4, 0, 2, before)
        for word, before in (("dog", 1), ("duck", 2))
    }
    target = left({}, None)
    with pytest.raises(CopyError, match=problem):
        copy_state(left(entries, SETTLED), target, transform=transform)
    assert target.backing.getControl() is None


def test_a_function_that_makes_another_value_each_time_is_told_of() -> None:
    calls, target = count(), MemoryMapState.Factory().makeState()
    with pytest.raises(CopyError, match="The function makes another entry than .* return the same"):
        copy_state(paged(WORDS), target, transform=lambda key, value: (key, next(calls)))
    copy_state(paged(WORDS), target, transform=lambda key, value: (key, 0))
    with pytest.raises(CopyError, match="The function makes another entry than .* return the same"):
        copy_state(paged(WORDS), target, transform=lambda key, value: (key, next(calls)))


def test_a_function_is_given_values_and_keeps_until_when_they_are_there() -> None:
    later = datetime(2999, 1, 1, tzinfo=UTC)
    entry = OpaqueValue(4, 0, KeepUntil(2, later), None)
    target = MemoryMapState.Factory().makeState()
    copy_state(
        left({b"dog": entry}, SETTLED), target, transform=lambda key, value: (key, value + 1)
    )
    assert target.backing.multiGet([b"dog"]) == [OpaqueValue(4, 0, KeepUntil(3, later), None)]


def test_a_function_may_change_a_value_in_place() -> None:
    source, target = (MemoryMapState.Factory().makeState() for _ in range(2))
    source.beginCommit(1)
    source.multiPut([("dog",)], [[1]])
    source.commit(1)
    copy_state(source, target, transform=lambda key, value: (key, value.append(2) or value))
    assert (source.multiGet([("dog",)]), target.multiGet([("dog",)])) == ([[1]], [[1, 2]])


@pytest.mark.parametrize("kind", ["transactional", "nontransactional"])
def test_a_function_makes_values_of_the_other_kinds_too(kind: str) -> None:
    one, other = (opened(f"memory:{uuid4().hex}?prefix=x&kind={kind}") for _ in range(2))
    one.beginCommit(1)
    one.multiPut([("dog",), ("zebra",)], [1, 2])
    one.commit(1)
    copy_state(one, other, transform=by_letter)
    assert list(other.getTuples()) == [("d", "dog", {"n": 1})]


def test_a_topology_with_other_keys_goes_on_in_a_copy_by_a_function(tmp_path: Path) -> None:
    spout, checkpoint = FeederBatchSpout("letter string, word string"), tmp_path / "checkpoint"

    def run(place: Path, fields: str, *words: str, **options: Any) -> None:
        topology = TridentTopology()
        grouped = topology.newStream("words", spout).groupBy(fields)
        grouped.persistentAggregate(f"sqlite:{place}", Count(), "count")
        with topology.start(checkpoint=checkpoint, **options):
            spout.feed([(word[0], word) for word in words], timeout=30)

    old, new = tmp_path / "old.db", tmp_path / "new.db"
    run(old, "word", "dog", "cat", "dog")
    one, other = (f"sqlite:{place}?prefix=count" for place in (old, new))
    with closing(opened(one)) as source, closing(opened(other)) as target:
        copy_state(source, target, transform=lambda key, n: ((key[0][0], key[0]), n))
    with pytest.raises(ChangedTopologyError) as refused:
        run(new, "letter, word", "dog")
    accepted = re.search(r"accept_change=(\{.*?\})", str(refused.value))
    assert accepted is not None
    run(new, "letter, word", "dog", accept_change=literal_eval(accepted[1]))
    with closing(opened(other)) as state:
        assert sorted(state.getTuples()) == [("c", "cat", 1), ("d", "dog", 3)]


@pytest.mark.parametrize("row", BACKENDS, ids=lambda row: row.name)
def test_in_each_store_another_state_takes_the_place_of_one(
    row: Backend, request: pytest.FixtureRequest
) -> None:
    factory: Any = row.factory(request.getfixturevalue(row.fixture).url)
    prefix = f"{uuid4().hex}_2"
    for made, value in (factory, 1), (factory.at(prefix), 5):
        with closing(made.makeState()) as state:
            state.beginCommit(1)
            state.multiPut([("dog",)], [value])
            state.commit(1)
    with closing(factory.makeState()) as reader, closing(factory.makeState()) as writer:
        assert reader.multiGet([("dog",)]) == [1]
        writer.beginCommit(2)
        writer.multiPut([("dog",)], [9])
        swap_states([(factory, prefix)])
        with pytest.raises(StaleBatchError):
            writer.commit(2)
        with pytest.raises(MovedStateError):
            writer.beginCommit(3)
        assert reader.multiGet([("dog",)]) == [5]
    assert factory.located() == factory.at(prefix)


@pytest.mark.parametrize("row", BACKENDS, ids=lambda row: row.name)
def test_in_each_store_readers_follow_to_values_of_another_kind_or_none_moves(
    row: Backend, request: pytest.FixtureRequest
) -> None:
    factory: Any = row.factory(request.getfixturevalue(row.fixture).url)
    anew, prefix = factory.of_kind(StateType.TRANSACTIONAL), f"{uuid4().hex}_2"
    kept_apart = factory.identity[0] in ("sqlite", "postgresql")
    with closing(factory.makeState()) as reader:
        for made, value in ((factory, 1), (anew.at(prefix), 5))[: 1 if kept_apart else 2]:
            with closing(made.makeState()) as state:
                state.beginCommit(1)
                state.multiPut([("dog",)], [value])
                state.commit(1)
        if kept_apart:
            with pytest.raises(CorruptStateError, match="keeps opaque .* another (name|prefix)"):
                check_places([anew])
        else:
            swap_states([(anew, prefix)])
            assert reader.multiGet([("dog",)]) == [5]
            assert factory.located() == anew.at(prefix)
