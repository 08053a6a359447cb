"""A state that was built anew takes the place of the old one, whole, wherever it is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from trident.backends.memory import MemoryStore
from trident.backends.sqlite import SQLiteStore
from trident.backends.urls import state_from_url
from trident.errors import (
    CorruptStateError,
    MovedStateError,
    NoStateError,
    StaleBatchError,
    UsageError,
)
from trident.states import ControlRecord, StateType, Token, read_committed
from trident.states.backing_map import IBackingMap, WrappedMap
from trident.states.maps.dropping import drop_state
from trident.states.maps.factory import MapStateFactory
from trident.states.maps.moving import check_places, swap_states
from trident.states.maps.reading import read_latest
from trident.states.maps.stored_map import StoredMap
from trident.states.store import Store

KEYS = [("dog",), ("cat",)]
NAMES = ("a", "b", "c")


class Killed(BaseException):
    """The process ends here."""


class Calls:
    """What happens before a call of a store, and the maps that were opened there."""

    def __init__(self) -> None:
        self.before: Callable[[str], None] = lambda name: None
        self.opened = ExitStack()


def _called(name: str) -> Any:
    def method(self: Watched, *given: Any) -> Any:
        self.calls.before(name)
        return getattr(self.inner, name)(*given)

    return method


class Watched(WrappedMap):
    def __init__(self, inner: IBackingMap, calls: Calls) -> None:
        super().__init__(inner)
        self.calls = calls

    multiGet = _called("multiGet")
    getControl = _called("getControl")
    putControl = _called("putControl")
    flush = _called("flush")

    def askControl(self) -> Any:
        return self.getControl


@dataclass(frozen=True)
class WatchedStore(Store):
    inner: Store
    calls: Calls
    hosted = "driver"

    kind: StateType = StateType.OPAQUE

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.inner.identity

    def at(self, prefix: str) -> WatchedStore:
        return replace(self, inner=self.inner.at(prefix))

    def open(self) -> IBackingMap:
        inner: Any = self.inner
        if isinstance(inner, SQLiteStore):
            inner = replace(inner, kind=self.kind)
        return Watched(self.calls.opened.enter_context(closing(inner.open())), self.calls)


class OtherLayout(WatchedStore):
    """Keeps its states in another place of the store."""

    def open(self) -> IBackingMap:
        return replace(cast("MemoryStore", self.inner), id="hashes of " + self.identity[1]).open()


@pytest.fixture
def calls() -> Iterator[Calls]:
    made = Calls()
    with made.opened:
        yield made


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path, calls: Calls) -> MapStateFactory:
    """A store, as the factory of a state in it."""
    if request.param == "memory":
        inner: Store = MemoryStore(uuid4().hex)
    else:
        inner = state_from_url(f"sqlite:{tmp_path}/states.db?prefix=x&patience=0.01").store
    return MapStateFactory(WatchedStore(inner, calls))


def run_batch(factory: MapStateFactory, log: str, txid: int, value: Any) -> None:
    """Run a batch of a log that sets both keys."""
    with closing(factory.makeMap()) as state:
        record = ControlRecord(log, Token(txid, 0), txid - 1)
        state.control.begin(record)
        state.beginCommit(record)
        state.multiPut(KEYS, [value] * len(KEYS))
        state.commit(record)
        state.control.announce(state.control.ready(record))


def builds(place: MapStateFactory, names: Sequence[str]) -> list[tuple[MapStateFactory, str]]:
    """Old states of one log, after two batches, and new ones of another, after one."""
    for name in names:
        run_batch(place.at(name), "old", 1, 0)
        run_batch(place.at(name), "old", 2, "old")
        run_batch(place.at(f"{name}_2"), "new", 1, "new")
    return [(place.at(name), f"{name}_2") for name in names]


def values(states: Sequence[StoredMap]) -> list[Any]:
    found = read_committed(
        [("g", state) for state in states],
        lambda views: [value for view in views for value in view.multiGet(KEYS)],
    )
    latest = read_latest(list(states), lambda views: [view.multiGet(KEYS) for view in views])
    assert [each for pair in latest for each in pair] == found
    return found


def killed_after(calls: Calls, writes: int, swaps: Sequence[tuple[MapStateFactory, str]]) -> bool:
    """Swap, and be killed after so many writes; return whether it was."""
    left = iter([False] * writes)

    def before(name: str) -> None:
        if name in ("putControl", "flush") and next(left, True):
            raise Killed

    calls.before = before
    try:
        swap_states(swaps)
    except Killed:
        return True
    finally:
        calls.before = lambda name: None
    return False


@pytest.mark.parametrize("count", [1, 2, 3])
def test_killed_anywhere_it_leaves_all_states_old_or_all_new(
    place: MapStateFactory, calls: Calls, count: int
) -> None:
    seen = []
    for writes in range(20):
        swaps = builds(place, [f"{name}{writes}" for name in NAMES[:count]])
        holders = [factory.makeMap() for factory, _ in swaps]
        assert values(holders) == ["old"] * 2 * count
        killed = killed_after(calls, writes, swaps)
        seen.append(values([factory.makeMap() for factory, _ in swaps]))
        assert values(holders) == seen[-1]
        swap_states(swaps)
        assert values(holders) == ["new"] * 2 * count
        if not killed:
            break
    decided = seen.index(["new"] * 2 * count)
    assert seen == [["old"] * 2 * count] * decided + [["new"] * 2 * count] * (len(seen) - decided)
    assert (decided, len(seen)) == (2 * count - 1, 4 * count - 1), "each write was the last one"


def test_states_of_several_kinds_move_at_once_wherever_it_is_killed(
    place: MapStateFactory, calls: Calls
) -> None:
    for writes in range(7):
        plain = place.of_kind(StateType.TRANSACTIONAL)
        swaps = [*builds(place, [f"a{writes}"]), *builds(plain, [f"b{writes}"])]
        holders = [factory.makeMap() for factory, _ in swaps]
        assert killed_after(calls, writes, swaps) == (writes < 6)
        assert values(holders) == ["old" if writes < 3 else "new"] * 4
        swap_states(swaps)
        assert values(holders) == ["new"] * 4


def test_a_swap_that_was_given_up_is_not_decided_by_another_one(
    place: MapStateFactory, calls: Calls
) -> None:
    swaps = builds(place, NAMES[:2])
    holders = [factory.makeMap() for factory, _ in swaps]
    assert killed_after(calls, 2, swaps), "when the second state waits for the first"
    for txid in 1, 2:
        run_batch(place.at("a_9"), "newer", txid, "newer")
    swap_states([(place.at("a"), "a_9")])
    assert values(holders) == ["newer"] * 2 + ["old"] * 2
    with pytest.raises(MovedStateError, match="'b_2' is about to"):
        run_batch(place.at("b"), "old", 3, "late")
    with pytest.raises(UsageError, match="several logs: 'newer, old'"):
        swap_states(swaps)
    swap_states(swaps[1:])
    assert [values([holder]) for holder in holders] == [["newer"] * 2, ["new"] * 2]


def test_a_record_that_readers_of_the_others_miss_decides_for_none(calls: Calls) -> None:
    memory = MemoryStore(uuid4().hex)
    swaps = [
        *builds(MapStateFactory(WatchedStore(memory, calls)), ["a"]),
        *builds(MapStateFactory(OtherLayout(memory, calls)), ["b"]),
    ]
    with pytest.raises(UsageError, match="several layouts can't move at once.*'b' miss 'a'"):
        swap_states(swaps)
    assert values([factory.makeMap() for factory, _ in swaps]) == ["old"] * 4
    for each in swaps:
        swap_states([each])
    assert values([factory.makeMap() for factory, _ in swaps]) == ["new"] * 4


@pytest.mark.parametrize("kind", list(StateType))
def test_a_query_that_is_under_way_finds_all_old_or_all_new(
    place: MapStateFactory, calls: Calls, kind: StateType
) -> None:
    outcomes = set()
    for moment in range(40):
        names = [f"{name}{moment}" for name in NAMES[:2]]
        swaps = builds(place.of_kind(kind), names)
        held = [factory.makeMap() for factory, _ in swaps]
        left = iter(range(moment))

        def before(name: str, left: Any = left, swaps: Any = swaps) -> None:
            if next(left, None) is None:
                calls.before = lambda name: None
                swap_states(swaps)

        calls.before = before
        found = read_committed(
            [("g", state) for state in held],
            lambda views: [value for view in views for value in view.multiGet(KEYS)],
        )
        done = calls.before is not before
        calls.before = lambda name: None
        assert found in (["old"] * 4, ["new"] * 4)
        outcomes.add(found[0])
        if not done:
            break
    else:
        pytest.fail("the query has more calls than were tried")
    assert outcomes == {"old", "new"}


def test_the_driver_of_the_old_state_stops_at_its_next_step(place: MapStateFactory) -> None:
    for done, refused in enumerate(["begin", "write", "ready", "announce", "read"]):
        swaps = builds(place, [f"a{done}"])
        state = swaps[0][0].makeMap()
        record = ControlRecord("old", Token(3, 0), 2)

        def write(state: StoredMap = state, record: ControlRecord = record) -> None:
            state.beginCommit(record)
            state.multiPut(KEYS, ["late"] * 2)
            state.commit(record)

        steps: dict[str, Callable[[], object]] = {
            "begin": partial(state.control.begin, record),
            "write": write,
            "ready": partial(state.control.ready, record),
            "announce": partial(state.control.announce, record.confirmed()),
            "read": state.control.read,
        }
        for step, take in list(steps.items())[:done]:
            assert step != refused
            take()
        swap_states(swaps)
        # A write is only told that another token has begun; the attempt that follows learns why.
        with pytest.raises(StaleBatchError if refused == "write" else MovedStateError) as raised:
            steps[refused]()
        if refused != "write":
            assert f"'a{done}_2'" in str(raised.value)
            assert "start it with the checkpoint" in str(raised.value)
        assert values([swaps[0][0].makeMap()]) == ["new"] * 2


def test_a_topology_finds_the_place_of_its_state_by_the_old_prefix(place: MapStateFactory) -> None:
    swaps = builds(place, ["a"])
    holder = place.at("a").makeMap()
    assert place.at("a").located().identity[2] == "a"
    swap_states(swaps)
    run_batch(place.at("a").located(), "new", 2, "newer")
    assert values([holder]) == ["newer"] * 2
    run_batch(place.at("a_3"), "third", 1, "newest")
    swap_states([(place.at("a"), "a_3")])
    assert place.at("a").located().identity[2] == "a_3"
    assert values([holder, place.at("a").makeMap(), place.at("a_2").makeMap()]) == ["newest"] * 6
    with pytest.raises(MovedStateError, match="'a_3'"):
        run_batch(place.at("a_2"), "new", 3, "nobody reads it")


def test_it_may_be_called_again_and_changes_nothing(place: MapStateFactory, calls: Calls) -> None:
    swaps = builds(place, NAMES[:2])
    swap_states(swaps)
    written = []
    calls.before = lambda name: written.append(name) if name == "putControl" else None
    swap_states(swaps)
    assert not written


def test_what_has_a_place_takes_no_other_one(place: MapStateFactory) -> None:
    one, other, _ = builds(place, NAMES)
    swap_states([one])
    with pytest.raises(UsageError, match=r"'a_2' can't replace two states; it has replaced 'a'\."):
        swap_states([(other[0], "a_2")])
    if "sqlite" in place.identity:  # where names of other case are one table
        with pytest.raises(UsageError, match="'a_2' can't replace two states"):
            swap_states([(other[0], "A_2")])
        with pytest.raises(UsageError, match="two states share a prefix"):
            swap_states([(place.at("c"), "B_2"), other])
        swap_states([(one[0], "A_2")])  # which it has
    assert values([other[0].makeMap()]) == ["old"] * 2
    swap_states([one, other])


def test_what_was_built_beside_another_one_does_not_take_the_place_of_that_one(
    place: MapStateFactory,
) -> None:
    [(factory, _)] = builds(place, ["a"])
    run_batch(place.at("a_3"), "third", 1, "third")
    places = check_places([factory])
    swap_states([(factory, "a_2")], places)
    swap_states([(factory, "a_2")], places)
    with pytest.raises(UsageError, match="'a_2' has replaced 'a' since"):
        swap_states([(factory, "a_3")], places)
    assert values([factory.makeMap()]) == ["new"] * 2
    swap_states([(factory, "a_3")], check_places([factory]))
    assert values([factory.makeMap()]) == ["third"] * 2


def test_readers_follow_to_values_of_another_kind_where_the_store_has_them(
    place: MapStateFactory,
) -> None:
    run_batch(place.at("a"), "old", 1, "old")
    anew = place.of_kind(StateType.TRANSACTIONAL)
    run_batch(anew.at("a_2"), "new", 1, "new")
    holder = place.at("a").makeMap()
    assert values([holder]) == ["old"] * 2
    if "sqlite" in place.identity:
        with pytest.raises(CorruptStateError, match="keeps opaque values, .* Open it as that kind"):
            swap_states([(anew.at("a"), "a_2")])
        return
    swap_states([(anew.at("a"), "a_2")])
    assert values([holder, place.at("a").makeMap(), anew.at("a").makeMap()]) == ["new"] * 6
    assert place.at("a").located().kind is StateType.TRANSACTIONAL


def test_dropping_the_old_state_leaves_its_readers_the_way_to_the_new_one(
    tmp_path: Path, calls: Calls
) -> None:
    url = f"sqlite:{tmp_path}/states.db?prefix=x"
    place = MapStateFactory(WatchedStore(state_from_url(url).store, calls))
    swaps = builds(place, ["a"])
    holder = place.at("a").makeMap()
    swap_states(swaps)
    with closing(place.at("a").makeMap()) as old:
        drop_state(old)
        assert old.backing.entries() == []
    assert values([holder, place.at("a").makeMap()]) == ["new"] * 4


def test_what_cannot_take_a_place_is_refused(place: MapStateFactory) -> None:
    swaps = builds(place, NAMES[:2])
    with pytest.raises(NoStateError):
        swap_states([(place.at("a"), "nowhere")])
    with pytest.raises(NoStateError):
        swap_states([(place.at("nowhere"), "a_2")])
    place.at("begun").makeMap().control.create(ControlRecord("new", Token(0, 0)))
    with pytest.raises(UsageError, match="has committed no batch"):
        swap_states([(place.at("a"), "begun")])
    with pytest.raises(UsageError, match="of the same log"):
        swap_states([(place.at("a"), "b")])
    run_batch(place.at("other"), "other", 1, 1)
    with pytest.raises(UsageError, match="several logs: 'new, other'"):
        swap_states([(place.at("a"), "a_2"), (place.at("b"), "other")])
    with pytest.raises(UsageError, match="two states share a prefix, an old or a new one: 'a_2'"):
        swap_states([(place.at("a"), "a_2"), (place.at("b"), "a_2")])
    with pytest.raises(UsageError, match="two states share a prefix, an old or a new one: 'b'"):
        swap_states([(place.at("a"), "b"), (place.at("b"), "b_2")])
    run_batch(place.at("c"), "older", 1, 0)
    run_batch(place.at("c_2"), "new", 1, "new")
    of_two_logs = [*swaps, (place.at("c"), "c_2")]
    with pytest.raises(UsageError, match="several logs: 'old, older'"):
        swap_states(of_two_logs)
    with pytest.raises(UsageError, match="several logs: 'old, older'"):
        check_places([factory for factory, _ in of_two_logs])
    elsewhere = MapStateFactory(MemoryStore(uuid4().hex))
    run_batch(elsewhere.at("c"), "old", 1, 0)
    run_batch(elsewhere.at("c_2"), "new", 1, 0)
    with pytest.raises(UsageError, match="several stores can't move at once"):
        swap_states([*swaps, (elsewhere.at("c"), "c_2")])
    assert values([place.at(name).makeMap() for name in NAMES[:2]]) == ["old"] * 4
