"""The tester: it feeds, fails, replays and shows what became of it; the same on both engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from trident import (
    CombinerAggregator,
    Count,
    Duration,
    FixedBatchSpout,
    MapGet,
    MemoryMapState,
    Split,
    StateUpdater,
    Sum,
    TridentTopology,
)
from trident.api.stream import Stream
from trident.backends import redis, sqlite
from trident.backends.state_spec import StateLike
from trident.errors import OperationError, PlanError
from trident.states import State, StateFactory
from trident.testing import POINTS, Tester

LINES = FixedBatchSpout("line string", 1)


def words(topology: TridentTopology, kind: Any = "opaque") -> Stream:
    return topology.newStream("lines", LINES, kind).each("line", Split(), "word").project("word")


def counting(state: StateLike | None = None, kind: Any = "opaque") -> TridentTopology:
    topology = TridentTopology()
    counts = words(topology, kind).groupBy("word")
    counts.persistentAggregate(state or MemoryMapState.Factory(), Count(), "count")
    return topology


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> Any:
    """None for the local engine, else the session."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


def test_a_word_count_is_tested_in_five_lines() -> None:
    tester = Tester(counting())
    tester.feed("lines", "the cow", "the moon")
    assert tester.state("count") == {"the": 2, "cow": 1, "moon": 1}


def test_whatever_happens_a_batch_counts_once(session: Any) -> None:
    with Tester(counting(), session) as tester:
        tester.fail(before="commit")
        tester.feed("lines", "a b")
        tester.crash(after="write")
        tester.feed("lines", "a b")
        tester.replay("c")
        tester.feed("lines", "a b")
        tester.write_late()
        tester.feed("lines", "a b")
        tester.cut_off_stores(3)
        tester.feed("lines", "a b")
        tester.reorder()
        tester.feed("lines", "a b", "b a a")
        tester.assert_state("count", {"a": 7, "b": 6, "c": 1})


@pytest.mark.parametrize("point", [point for point in POINTS if point != "before announce"])
def test_a_crash_anywhere_loses_and_doubles_nothing(point: str) -> None:
    when, step = point.split()
    tester = Tester(counting())
    tester.feed("lines", "a")
    tester.crash(**{when: step})
    tester.feed("lines", "a b")
    tester.feed("lines", "b")
    assert tester.state("count") == {"a": 2, "b": 2}


def test_a_state_that_is_not_opaque_shows_what_other_tuples_do_to_it() -> None:
    tester = Tester(counting(sqlite.transactional("never-made.db")))
    tester.replay("b")
    tester.feed("lines", "a")
    assert tester.state("count") == {"a": 1, "b": 1}


def test_what_replays_other_tuples_is_no_transactional_stream() -> None:
    tester = Tester(counting(kind="transactional"))
    tester.replay("b")
    with pytest.raises(PlanError, match="transactional"):
        tester.feed("lines", "a")


def test_the_stores_that_were_declared_are_not_touched(tmp_path: Any) -> None:
    tester = Tester(counting(redis.opaque("redis://nobody.invalid:6379")))
    tester.feed("lines", "a")
    assert tester.state("count") == {"a": 1}


def test_they_are_where_that_is_asked_for(tmp_path: Any) -> None:
    with Tester(counting(sqlite.opaque(tmp_path / "counts.db")), stores="declared") as tester:
        tester.crash(after="ready")
        tester.feed("lines", "a")
    with Tester(counting(sqlite.opaque(tmp_path / "counts.db")), stores="declared") as tester:
        assert tester.state("count") == {"a": 1}


def test_a_value_that_no_store_keeps_is_refused_as_there() -> None:
    topology = TridentTopology()
    stream = topology.newStream("ids", FixedBatchSpout("id string, value", 1))
    stream.groupBy("id").persistentAggregate(sqlite.opaque("never-made.db"), "value", Last(), "v")
    with pytest.raises(OperationError, match=r"can't be stored: found a object"):
        Tester(topology).feed("ids", ("a", object()))


class Last(CombinerAggregator[Any]):
    def init(self, tuple: Any) -> Any:
        return tuple[0]

    def combine(self, val1: Any, val2: Any) -> Any:
        return val2

    def zero(self) -> Any:
        return None


def test_streams_that_share_batches_are_fed_together() -> None:
    topology = TridentTopology()
    one = topology.newStream("one", FixedBatchSpout("n long", 1))
    other = topology.newStream("other", FixedBatchSpout("n long", 1))
    merged = topology.merge(one, other)
    merged.persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "sum")
    tester = Tester(topology)
    tester.feed({"one": [1, 2], "other": [3]})
    assert tester.state("sum") == 6


def test_a_query_is_answered() -> None:
    topology = TridentTopology()
    counts = (
        words(topology)
        .groupBy("word")
        .persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    )
    asked = topology.newDRPCStream("counts").each("args", Split(), "word")
    asked.stateQuery(counts, "word", MapGet(), "count").project("word, count")
    tester = Tester(topology)
    tester.feed("lines", "a b a")
    assert tester.query("counts", "a c") == [["a", 2], ["c", None]]


def test_the_tuples_at_the_end_of_a_stream_are_seen(session: Any) -> None:
    topology = TridentTopology()
    end = words(topology)
    with Tester(topology, session) as tester:
        tester.feed("lines", "a b")
        assert sorted(tester.emitted(end)) == [("a",), ("b",)]
        tester.replay("c")
        tester.feed("lines", "d")
        assert tester.emitted(end) == [("c",)], "those of the attempt that was committed"


def test_those_in_its_middle_are_where_it_is_watched() -> None:
    topology = TridentTopology()
    middle = words(topology)
    middle.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    tester = Tester(topology, watch=[middle])
    tester.feed("lines", "a a")
    assert tester.emitted(middle) == [("a",), ("a",)]


def test_a_stream_that_nobody_watches_is_an_error_that_says_how() -> None:
    topology = TridentTopology()
    middle = words(topology)
    middle.groupBy("word").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    with pytest.raises(PlanError, match=r"watch=\[stream\]"):
        Tester(topology).emitted(middle)


def test_a_streaming_dataframe_is_fed_as_well(spark: Any) -> None:
    topology = TridentTopology()
    frame = spark.readStream.format("rate").load().selectExpr("CAST(value AS STRING) AS line")
    counts = topology.newStream("lines", frame).each("line", Split(), "word").groupBy("word")
    counts.persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    tester = Tester(topology)
    tester.feed("lines", "a b")
    assert tester.state("count") == {"a": 1, "b": 1}


class Places(State):
    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def beginCommit(self, batch: Any) -> None:
        pass

    def commit(self, batch: Any) -> None:
        pass


class PlacesFactory(StateFactory):
    hosted = "driver"
    places = Places()

    def makeState(self, *args: Any) -> Places:
        return self.places


class Put(StateUpdater[Places]):
    def updateState(self, state: Places, tuples: Iterable[Any], collector: Any) -> None:
        state.places.update(tuple(each) for each in tuples)


def test_a_state_that_is_no_map_is_returned_itself() -> None:
    topology = TridentTopology()
    topology.newStream("moves", FixedBatchSpout("who, where", 1)).partitionPersist(
        PlacesFactory(), "who, where", Put(), name="places"
    )
    tester = Tester(topology)
    tester.feed("moves", ("ann", "here"))
    assert tester.state("places").places == {"ann": "here"}


def test_windows_by_the_time_of_batches_end_when_the_test_says_so(session: Any) -> None:
    topology = TridentTopology()
    store = MemoryMapState.Factory()
    ended = words(topology).tumblingWindow(Duration.seconds(10), store, Count(), "n")
    with Tester(topology, session) as tester:
        tester.feed("lines", "a b")
        tester.clock.advance(9)
        tester.feed("lines", "c")
        assert tester.emitted(ended) == []
        tester.clock.advance(1)
        tester.feed("lines")
        assert tester.emitted(ended) == [(3,)]


def test_what_was_done_is_told() -> None:
    tester = Tester(counting())
    tester.fail(after="write")
    told = tester.feed("lines", "a", "b")
    assert told is not None
    assert (told.txid, told.attempts, told.tuples) == (1, 2, 2)
    assert tester.progress == [told]


def test_a_difference_is_shown_with_the_batch_the_step_and_both_sides() -> None:
    tester = Tester(counting())
    tester.crash(after="write")
    tester.feed("lines", "a b")
    with pytest.raises(AssertionError) as raised:
        tester.assert_state("count", {"a": 1, "b": 2, "c": 1})
    lines = str(raised.value).splitlines()
    assert lines[0] == "state 'count' after batch 1 of lines; a crash after write"
    assert "persist(" in lines[1]
    assert __file__ in lines[1]
    assert [line.split() for line in lines[2:]] == [
        ["key", "expected", "found"],
        ["'a'", "1", "1"],
        ["'b'", "2", "1", "<-"],
        ["'c'", "1", "<-"],
    ]


def parsed_number(line: str) -> list[int]:
    return [int(line)]


def test_what_a_batch_fails_with_is_raised_and_it_can_be_fed_again() -> None:
    topology = TridentTopology()
    numbers = topology.newStream("lines", LINES).each("line", parsed_number, "n long")
    numbers.persistentAggregate(MemoryMapState.Factory(), "n", Sum(), "sum")
    tester = Tester(topology)
    with pytest.raises(Exception, match="invalid literal"):
        tester.feed("lines", "no number")
    tester.feed("lines", "3")
    assert tester.state("sum") == 3


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda tester: tester.feed("line", "a"), "there is no stream"),
        (lambda tester: tester.state("counts"), "there is no state"),
        (lambda tester: tester.crash(), "name one step"),
        (lambda tester: tester.crash(after="comit"), "Did you mean 'after commit'"),
        (lambda tester: tester.fail(after="commit"), "can't fail any more"),
        (lambda tester: Tester(counting(), stores="redis"), "stores is"),
    ],
)
def test_a_wrong_call_is_an_error_that_says_so(wrong: Any, told: str) -> None:
    with pytest.raises((PlanError, ValueError), match=told):
        wrong(Tester(counting()))


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stores that topologies name are not even opened."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not [path for path in tmp_path.iterdir() if path.name == "never-made.db"]
