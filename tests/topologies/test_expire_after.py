"""Entries expire some time after their last update: the same on both engines, whatever fails."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.topologies.conftest import Engine, contents, feed
from trident import (
    Adopt,
    Count,
    Duration,
    FixedBatchSpout,
    MapGet,
    ReducerAggregator,
    StateUpdater,
    Stream,
    Sum,
    TridentTopology,
    TumblingDurationWindow,
)
from trident.backends.memory import MemoryMapState
from trident.backends.urls import state_from_url
from trident.errors import FieldError, PlanError
from trident.operation_error import OperationError
from trident.spouts.feeder import FeederBatchSpout
from trident.states import KeepUntil
from trident.states.maps.factory import MapStateFactory
from trident.testing import Tester

FIELDS = "word string, at long"
LIFE = 10
"""How many milliseconds an entry lives."""


class Counted(ReducerAggregator[int]):
    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


def expiring(
    store: Any = "memory:",
    aggregator: Any = None,
    time_field: str | None = "at",
    spout: Any = None,
    **options: Any,
) -> tuple[TridentTopology, Stream]:
    """Words that are counted, and expire."""
    topology = TridentTopology()
    words = topology.newStream("words", spout or FeederBatchSpout(FIELDS))
    counted = words.groupBy("word").persistentAggregate(
        *(store, aggregator or Count(), "count"),
        **{"expire_after": timedelta(milliseconds=LIFE), "time_field": time_field} | options,
    )
    topology.newDRPCStream("count").stateQuery(counted, "args", MapGet(), "n").project("n")
    return topology, counted.newValuesStream()


def test_both_engines_keep_the_same_and_forget_the_same(
    engine: Engine, kept: MapStateFactory
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("word string, at timestamp")
    words = topology.newStream("s", spout)
    options: Any = {"expire_after": Duration.of(LIFE), "time_field": "at"}
    by_word = words.groupBy("word")
    state = by_word.persistentAggregate(kept, Count(), "count", **options)
    reduced = MemoryMapState.Factory()
    by_word.persistentAggregate(reduced, Counted(), "reduced", **options)
    fresh = engine.capture(state.newValuesStream(), "fresh")
    before = words.stateQuery(state, "word", MapGet(), "before").project("word, before")
    asked = engine.capture(before, "asked")

    def at(*words: tuple[str, int]) -> list[Any]:
        return [(word, datetime.fromtimestamp(second / 1000, UTC)) for word, second in words]

    def held() -> dict[str, int | None]:
        found: Any = kept.makeState()
        counts = dict(zip("abcd", found.multiGet([(word,) for word in "abcd"]), strict=True))
        found.close()
        return {word: count for word, count in counts.items() if count is not None}

    with engine.start(topology) as run:
        feed(run, spout, at(("a", 1000), ("b", 1006), ("a", 995)), at(("c", 1010), ("b", 1001)))
        feed(run, spout, at(("a", 1011), ("b", 1012)))
        assert held() == {"a": 1, "b": 3, "c": 1}
        feed(run, spout, at(("d", 1021)))
        assert fresh.batches == [
            [("a", 2), ("b", 1)],
            [("b", 2), ("c", 1)],
            [("a", 1), ("b", 3)],
            [("d", 1)],
        ]
        assert asked.batches[1:3] == [[("b", 1), ("c", None)], [("a", None), ("b", 2)]]
        assert held() == {"b": 3, "d": 1}
        assert contents(reduced) == {("b",): 3, ("d",): 1}


@pytest.mark.parametrize("aggregator", [Count(), Counted()], ids=["combiner", "reducer"])
@pytest.mark.parametrize("seed", range(25))
def test_whatever_fails_all_is_as_if_nothing_had(seed: int, aggregator: Any) -> None:
    rng = random.Random(seed)
    topology, fresh = expiring(aggregator=aggregator)
    stored: dict[str, tuple[int, int]] = {}  # of each word its count, and when it expires
    now, latest = 1000, 0

    def alive() -> dict[str, int]:
        return {word: count for word, (count, until) in stored.items() if until > latest}

    with Tester(topology, watch=[fresh]) as tester:
        for _ in range(20):
            now += rng.choice([0, 1, 3, LIFE, 5 * LIFE])
            given = [(rng.choice("abcdef"), now - rng.choice([0, 1, LIFE])) for _ in range(3)]
            first = given
            match rng.randrange(5):
                case 0:
                    tester.crash(after=rng.choice(["begin", "write", "ready", "commit"]))
                case 1:
                    tester.fail(after=rng.choice(["begin", "write", "ready"]))
                case 2:  # what the attempt that fails has seen doesn't count
                    tester.replay(*given)
                    tester.write_late()
                    first = [(rng.choice("abcdef"), now + 9 * LIFE)]
            tester.feed("words", *first)
            for word in {word for word, _ in given}:
                times = [at for each, at in given if each == word]
                count, until = stored.get(word, (0, 0))
                was_there = until > max(latest, *times)
                kept = max(until, max(times) + LIFE)
                stored[word] = count * was_there + len(times), kept
            latest = max(latest, *(at for _, at in given))
            tester.assert_state("count", alive())
        tester.feed("words", ("z", now + 99 * LIFE))
        tester.feed("words", ("z", now + 99 * LIFE))
        assert entries(tester) == {b"z"}


def entries(tester: Tester) -> set[bytes]:
    """The keys in the store of the state."""
    state = tester._state_node("count").state.factory.makeState()
    return {key for key, _ in state.backing.entries()}  # type: ignore[attr-defined]


def test_without_a_field_the_time_of_batches_counts() -> None:
    topology, fresh = expiring(time_field=None)
    with Tester(topology, watch=[fresh]) as tester:
        tester.feed("words", ("a", 1), ("b", 1))
        tester.clock.advance(LIFE / 1000 - 0.001)
        tester.feed("words", ("a", 1))
        assert tester.emitted(fresh) == [("a", 2)]
        assert (tester.query("count", "a"), tester.query("count", "b")) == ([[2]], [[1]])
        tester.clock.advance(0.001)
        tester.fail(after="write")
        tester.feed("words", ("b", 1))
        assert tester.emitted(fresh) == [("b", 1)]
        tester.clock.advance(LIFE / 1000)
        tester.feed("words", ("c", 1))
        assert (tester.query("count", "a"), tester.query("count", "c")) == ([[None]], [[1]])
        tester.feed("words", ("c", 1))
        assert entries(tester) == {b"c"}


def test_a_time_that_is_yet_to_come_ends_nothing_but_what_is_older_than_now() -> None:
    topology, _ = expiring()
    now = round(datetime.now(UTC).timestamp() * 1000) + 60_000
    with Tester(topology) as tester:
        tester.feed("words", ("a", now))
        tester.feed("words", ("b", 2**63 - 1))
        tester.feed("words", ("b", -(2**63)))
        tester.assert_state("count", {"a": 1, "b": 2})


def test_a_time_that_is_yet_to_come_does_not_end_its_own_entry() -> None:
    topology, _ = expiring(expire_after=timedelta(days=30))
    now = round(datetime.now(UTC).timestamp() * 1000)
    with Tester(topology) as tester:
        tester.feed("words", ("a", now))
        tester.feed("words", ("a", now + timedelta(days=40) // timedelta(milliseconds=1)))
        tester.feed("words", ("a", 2**63 - 1), ("a", now))
        tester.assert_state("count", {"a": 4})


def test_what_an_updater_of_ones_own_writes_expires_too() -> None:
    class Note(StateUpdater[Any]):
        acts_on_nothing = True

        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            assert all(len(each) == 1 for each in tuples)
            later = datetime.fromtimestamp(2, UTC)
            state.multiPut([("kept",)], [KeepUntil(1, later)])
            state.multiPut([(t["word"],) for t in tuples], [2] * len(tuples))

    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(FIELDS, 1))
    words.partitionPersist(
        *("memory:", "word", Note()), name="noted", expire_after=Duration.of(5), time_field="at"
    )
    with Tester(topology) as tester:
        tester.feed("words", ("a", 1000), ("b", 990))
        tester.feed("words")
        tester.feed("words", ("c", 1005))
        tester.assert_state("noted", {"kept": 1, "c": 2})


def test_without_the_option_entries_stay_and_are_counted_on(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path}/counts.db?prefix=count"
    for options, times, expected in [
        ({}, [("a", 1000), ("b", 1000)], {"a": 1, "b": 1}),
        ({"expire_after": None, "time_field": None}, [("b", 1009)], {"a": 1, "b": 2}),
        ({}, [("b", 1012)], {"b": 3}),
        ({"expire_after": Duration.of(LIFE * 5)}, [("b", 1021)], {"b": 4}),
        ({}, [("b", 1060)], {"b": 5}),
        ({}, [("a", 1071)], {"a": 1}),
    ]:
        spout = FeederBatchSpout(FIELDS)
        topology, _ = expiring(place, spout=spout, **options)
        with topology.start(checkpoint=tmp_path / "checkpoint") as run:
            feed(run, spout, times)
        assert contents(state_from_url(place)) == {(word,): n for word, n in expected.items()}


def test_a_table_of_windows_forgets_those_that_ended_long_ago() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FeederBatchSpout("word string, at timestamp"))
    window = TumblingDurationWindow.of(Duration.seconds(1)).withTimestampField("at")
    counted = words.groupBy("word").window(window, "memory:", Count(), "n")
    counted.persistWindows("memory:", expire_after=timedelta(seconds=2))
    seconds = [datetime.fromtimestamp(second, UTC) for second in range(9)]
    with Tester(topology) as tester:
        for second in range(4):
            tester.feed("words", ("a", seconds[second]), ("b", seconds[second]))
        rows = {n: {(word, seconds[n], seconds[n + 1]): 1 for word in "ab"} for n in range(4)}
        tester.assert_state("windows", {**rows[1], **rows[2]})
        tester.fail(after="write")
        tester.feed("words", ("a", seconds[8]))
        tester.assert_state("windows", {**rows[2], **rows[3]})


@pytest.mark.parametrize("source", ["states", "checkpoint"])
def test_what_has_expired_stays_absent_for_who_takes_the_states_over(
    source: str, tmp_path: Path
) -> None:
    place = f"sqlite:{tmp_path}/counts.db?prefix=count"
    adopt: Any = None
    for times, expected in [
        ([("a", 1000), ("b", 1011)], {("b",): 1}),
        ([("a", 1009), ("b", 1012)], {("a",): 1, ("b",): 2}),
    ]:
        spout = FeederBatchSpout(FIELDS)
        topology, _ = expiring(place, spout=spout)
        with topology.start(checkpoint=tmp_path / f"{bool(adopt)}", adopt=adopt) as run:
            feed(run, spout, times)
        assert contents(state_from_url(place)) == expected
        state: Any = state_from_url(place).makeState()
        older = Adopt.from_checkpoint(tmp_path / "False")
        alone = Adopt.from_states(state.control.read().log_id, in_flight="committed")
        adopt = alone if source == "states" else older
        state.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expire_after": None}, "time_field= says by which time entries expire, 'at'"),
        ({"expire_after": timedelta(0)}, "the time of expire_after= is above 0, found '0 ms'"),
        ({"time_field": "word"}, "a time is a long, in milliseconds, or a timestamp"),
        ({"store": "memory:?kind=transactional"}, "entries expire only in an opaque map, found"),
    ],
)
def test_what_can_not_expire_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        expiring(**options)


def test_a_field_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(FieldError, match="att"):
        expiring(time_field="att")


def test_a_tuple_without_a_time_is_refused() -> None:
    topology, _ = expiring()
    with Tester(topology) as tester, pytest.raises(OperationError, match="expire_after=10 ms by"):
        tester.feed("words", ("a", None))


def test_states_of_one_group_expire_by_one_sort_of_time() -> None:
    topology = TridentTopology()
    words = topology.newStream("words", FixedBatchSpout(FIELDS, 1)).groupBy("word")
    life = timedelta(days=1)
    words.persistentAggregate("memory:", Count(), "one", expire_after=life)
    words.persistentAggregate("memory:", "at", Sum(), "two", expire_after=life, time_field="at")
    with pytest.raises(PlanError, match="by a field in some states, .*: 'one, two'"):
        topology.start()
