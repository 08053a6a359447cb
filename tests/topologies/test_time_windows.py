"""Windows by time, compared with their definition."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from tests.topologies.capture import captured_in
from tests.topologies.conftest import Engine, feed
from tests.topologies.time_windows import Model, Row
from trident import (
    Aggregator,
    CombinerAggregator,
    Count,
    Duration,
    FeederBatchSpout,
    MemoryMapState,
    ReducerAggregator,
    SessionWindow,
    SlidingDurationWindow,
    Sum,
    TridentCollector,
    TridentTopology,
    TumblingCountWindow,
    TumblingDurationWindow,
)
from trident.backends import sqlite
from trident.errors import FieldError, OperationError, OperationTypeError, PlanError
from trident.states.errors import CorruptStateError
from trident.states.maps.factory import MapStateFactory
from trident.storm import BaseWindow
from trident.testing import fail_at
from trident.windows.windows import DurationWindow

ms = Duration.of

SEEDS = 3 * settings.default.max_examples // 5
"""How many windows and streams are drawn: 60, and 12 in a quick run."""


class Combined(CombinerAggregator[list[int]]):
    """All values, sorted."""

    output_types = ("array<long>",)

    def init(self, tuple: Any) -> list[int]:
        return [tuple["v"]]

    def combine(self, a: list[int], b: list[int]) -> list[int]:
        return sorted(a + b)

    def zero(self) -> list[int]:
        return []


class Reduced(ReducerAggregator[list[int]]):
    output_types = ("array<long>",)

    def init(self) -> list[int]:
        return []

    def reduce(self, curr: list[int], tuple: Any) -> list[int]:
        return sorted([*curr, tuple["v"]])


class Aggregated(Aggregator[list[int]]):
    output_types = ("array<long>",)

    def init(self, batchId: object, collector: TridentCollector) -> list[int]:
        return []

    def aggregate(self, val: list[int], tuple: Any, collector: TridentCollector) -> None:
        val.append(tuple["v"])

    def complete(self, val: list[int], collector: TridentCollector) -> None:
        collector.emit([sorted(val)])


def drawn_window(random: Random) -> Any:
    lag, lateness = ms(random.choice([0, 0, 3, 12])), ms(random.choice([0, 0, 5, 30]))
    slide = random.choice([1, 3, 4, 10])
    made: Any = random.choice(
        [
            TumblingDurationWindow.of(ms(slide)),
            SlidingDurationWindow.of(ms(slide * random.choice([1, 2, 3])), ms(slide)),
            SlidingDurationWindow.of(ms(slide + random.choice([1, 2])), ms(slide)),
            SessionWindow.of(ms(random.choice([1, 4, 9, 40]))),
        ]
    )
    return made.withTimestampField("t").withLag(lag).withLateness(lateness)


def drawn_batches(random: Random) -> list[list[Row]]:
    at, value = random.choice([-20, 0, 10**6]), 0
    batches: list[list[Row]] = []
    for _ in range(random.randint(1, 12)):
        batch: list[Row] = []
        for _ in range(random.choice([0, 1, 2, 5, 9])):
            at += random.choice([0, 1, 1, 2, 7])
            time = at - random.choice([0, 0, 0, 2, 9, 25])
            batch.append((random.choice("abc"), time, value))
            value += 1
        batches.append(batch)
        at += random.choice([0, 0, 10, 60])
    return batches


def compare(
    engine: Engine,
    window: Any,
    make: Callable[[], Any],
    batches: list[list[Row]],
    kept: Any,
    partitions: int = 1,
) -> None:
    """Windows of each key, and late tuples, on an engine and by their definition."""
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, t long, v long")
    stream = topology.newStream("values", spout)
    if partitions > 1:
        stream = stream.shuffle().parallelismHint(partitions)
    windows = stream.groupBy("k").window(window, kept, "v", make(), "all")
    made = engine.capture(windows.parallelismHint(partitions), "made")
    late = engine.capture(windows.lateStream(), "late")
    with engine.start(topology) as run:
        feed(run, spout, *batches)
    counted = [progress.late for progress in run.groups["values"].recentProgress]
    model = Model(window)
    expected, expected_late = [], []
    for batch in batches:
        expected.append(model.batch(batch))
        expected_late.append(sorted(model.late, key=repr))
    about = f"{window}, {batches}"
    assert made.batches == [found for found in expected if found], about
    assert late.batches == [found for found in expected_late if found], about
    assert counted == list(map(len, expected_late)), about


@pytest.mark.parametrize("make", [Combined, Reduced, Aggregated])
def test_windows_by_a_time_of_tuples_are_as_defined(make: Any, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        random = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        engine = Engine(None, folder)
        window, batches = drawn_window(random), drawn_batches(random)
        compare(engine, window, make, batches, MemoryMapState.Factory())


WINDOWS: list[Any] = [
    TumblingDurationWindow.of(ms(10)),
    SlidingDurationWindow.of(timedelta(milliseconds=12), ms(4)).withTimestampField("t"),
    SessionWindow.of(ms(6)),
]


FEW_BATCHES = 1623
"""The seed of three batches in which each of the windows is made twice, and misses late tuples."""


@pytest.mark.pairs
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("make", [Combined, Aggregated])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_they_are_the_same_on_both_engines_however_many_partitions_there_are(
    engine: Engine,
    kept: MapStateFactory,
    window: Any,
    make: Any,
    partitions: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if partitions > 1:
        monkeypatch.setattr("trident.spark.group_engine.SMALL", 1)
    window = window.withTimestampField("t").withLag(ms(3)).withLateness(ms(10))
    compare(engine, window, make, drawn_batches(Random(FEW_BATCHES)), kept, partitions)


def test_of_a_stream_without_groups_there_is_one_window_at_a_time(
    engine: Engine, kept: MapStateFactory
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("t long, v long")
    stream = topology.newStream("values", spout)
    window = TumblingDurationWindow.of(ms(10)).withTimestampField("t")
    made = engine.capture(stream.window(window, kept, "v", Sum(), "sum"))
    engine.play(topology, spout, [(1, 1), (8, 2)], [(12, 4)], [(31, 8)])
    assert made.batches == [[(3, 0, 10)], [(4, 10, 20)]]


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_times_may_be_timestamps(engine: Engine, kind: str) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout(f"t {kind}, v long")
    stream = topology.newStream("values", spout)
    window = TumblingDurationWindow.of(Duration.minutes(1)).withTimestampField("t")
    windows = stream.window(window, MemoryMapState.Factory(), "v", Sum(), "sum")
    assert windows.getOutputFields().types["windowEnd"] == kind
    captured = engine.capture(windows)
    zone = UTC if kind == "timestamp" else None
    start = datetime(2026, 1, 1, tzinfo=zone)
    times = [start, start + timedelta(seconds=59), start + timedelta(seconds=60)]
    engine.play(topology, spout, [(time, v) for v, time in enumerate(times, 1)])
    [(total, first, last)] = captured.tuples
    assert (total, last - first) == (3, timedelta(minutes=1))
    assert first.timestamp() == start.timestamp()


@pytest.mark.singles
@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_batches_that_are_tried_again_count_once(
    engine: Engine, kept: MapStateFactory, window: Any
) -> None:
    batches = drawn_batches(Random(FEW_BATCHES))
    with fail_at("after begin", 1), fail_at("after write", 2, times=2), fail_at("after ready", 3):
        compare(engine, window.withTimestampField("t"), Combined, batches, kept)


def test_watermark_and_open_windows_survive_a_restart(engine: Engine) -> None:
    def declared() -> tuple[TridentTopology, FeederBatchSpout]:
        topology = TridentTopology()
        spout = FeederBatchSpout("k string, t long, v long")
        stream = topology.newStream("values", spout)
        store = sqlite.opaque(str(engine.folder / "windows.db"))
        window = TumblingDurationWindow.of(ms(10)).withTimestampField("t")
        windows = stream.groupBy("k").window(window, store, "v", Sum(), "sum")
        captured_in(engine.folder / "made", windows)
        captured_in(engine.folder / "late", windows.lateStream())
        return topology, spout

    for batch in ([("a", 1, 1), ("b", 9, 2)], [("a", 12, 4)], [("a", 3, 8), ("b", 20, 16)]):
        topology, spout = declared()
        with engine.start(topology) as run:
            feed(run, spout, batch)
    other = TridentTopology().newStream("s", spout)
    assert captured_in(engine.folder / "made", other).batches == [
        [("a", 1, 0, 10), ("b", 2, 0, 10)],
        [("a", 4, 10, 20)],
    ]
    other = TridentTopology().newStream("s", spout)
    assert captured_in(engine.folder / "late", other).tuples == [("a", 3, 8)]


def test_a_window_that_is_declared_otherwise_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a log of an older version, which says nothing of windows.
    monkeypatch.setattr("trident.batch.opening.check_unchanged", lambda *given: None)
    kept, engine = MemoryMapState.Factory(), Engine(None, tmp_path)

    def play(length: int, lag: int, row: tuple[int]) -> None:
        topology = TridentTopology()
        spout = FeederBatchSpout("t long")
        window = TumblingDurationWindow.of(ms(length)).withTimestampField("t").withLag(ms(lag))
        topology.newStream("values", spout).window(window, kept, Count(), "n")
        engine.play(topology, spout, [row])

    play(10, 0, (1,))
    play(10, 5, (2,))  # another lag will do
    with pytest.raises(CorruptStateError, match=r"that is tumbling, 10 ms, and now it is tumb"):
        play(20, 0, (3,))


def test_what_no_window_needs_any_more_is_removed(tmp_path: Path) -> None:
    for window in WINDOWS:
        kept = MemoryMapState.Factory()
        folder = tmp_path / type(window).__name__
        folder.mkdir()
        engine, topology = Engine(None, folder), TridentTopology()
        spout = FeederBatchSpout("k string, t long, v long")
        stream = topology.newStream("values", spout)
        given = window.withTimestampField("t").withLateness(ms(5))
        stream.groupBy("k").window(given, kept, "v", Reduced(), "all")
        batches = drawn_batches(Random(3))
        engine.play(topology, spout, *batches, [("z", 10**7, 1)], [("z", 2 * 10**7, 1)])
        state = kept.makeState()
        names = {entry[0] for entry in state.getTuples()}
        [pane] = [entry for entry in state.getTuples() if entry[0] == "pane"]
        assert pane[1] == "z"
        assert names <= {"clock", "pane", "tuples", "keys", "sessions"}
        assert sum(entry[0] == "keys" for entry in state.getTuples()) <= 2


# By the time of batches.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets what time it is, in milliseconds."""
    now = [0]
    monkeypatch.setattr("trident.batch.attempt.time_ns", lambda: now[0] * 1_000_000)
    return lambda time: now.__setitem__(0, time)


def test_all_tuples_of_a_batch_have_its_time_and_an_empty_batch_ends_windows(
    engine: Engine, kept: MapStateFactory, clock: Callable[[int], None]
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, v long")
    stream = topology.newStream("values", spout).shuffle()
    whole = engine.capture(stream.slidingWindow(ms(20), ms(10), kept, "v", Sum(), "sum"), "whole")
    by_key = stream.groupBy("k").tumblingWindow(
        timedelta(milliseconds=10), MemoryMapState.Factory(), "v", Combined(), "all"
    )
    grouped = engine.capture(by_key, "grouped")
    assert "is run too, for steps" in topology.explain()
    with engine.start(topology) as run:
        for time, rows in [
            (1, [("a", 1), ("b", 2)]),
            (9, [("a", 4)]),
            (10, [("a", 8)]),
            (35, []),
            (36, []),
            (4, [("a", 16)]),  # the clock was set back
            (100, []),
        ]:
            clock(time)
            feed(run, spout, rows)
    assert whole.batches == [[(7,)], [(15,), (8,)], [(16,), (16,)]]
    assert grouped.batches == [[("a", [1, 4]), ("b", [2])], [("a", [8])], [("a", [16])]]


def test_sessions_may_be_by_the_time_of_batches(
    engine: Engine, clock: Callable[[int], None]
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, v long")
    stream = topology.newStream("values", spout).groupBy("k")
    window = SessionWindow.of(ms(10))
    captured = engine.capture(stream.window(window, MemoryMapState.Factory(), "v", Sum(), "sum"))
    with engine.start(topology) as run:
        for time, rows in [(1, [("a", 1)]), (10, [("a", 2), ("b", 4)]), (20, []), (40, [])]:
            clock(time)
            feed(run, spout, rows)
    assert captured.batches == [[("a", 3), ("b", 4)]]


def test_a_batch_that_is_tried_again_has_the_time_that_it_had(
    engine: Engine, clock: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    stream = topology.newStream("values", spout)
    window = TumblingDurationWindow.of(ms(10))
    captured = engine.capture(stream.window(window, MemoryMapState.Factory(), "v", Sum(), "sum"))
    passing = iter(range(0, 1000, 5))
    monkeypatch.setattr("trident.batch.attempt.time_ns", lambda: next(passing) * 1_000_000)
    with engine.start(topology) as run, fail_at("after write", 2, times=2):
        feed(run, spout, [(1,)], [(2,)], [(4,)])
    assert captured.batches == [[(3,)]]


def test_a_restart_goes_on_with_the_time_that_the_log_has(
    tmp_path: Path, clock: Callable[[int], None]
) -> None:
    """The batch is kept with its time, also where its stream is opaque."""

    def declared() -> tuple[TridentTopology, FeederBatchSpout]:
        topology = TridentTopology()
        spout = FeederBatchSpout("v long")
        stream = topology.newStream("values", spout)
        store = sqlite.opaque(str(tmp_path / "windows.db"))
        captured_in(tmp_path / "made", stream.tumblingWindow(ms(10), store, "v", Sum(), "sum"))
        return topology, spout

    engine = Engine(None, tmp_path)
    topology, spout = declared()
    clock(3)
    with engine.start(topology, retries=0) as run:
        feed(run, spout, [(1,)])
        clock(5)
        with fail_at("after write", 2), pytest.raises(Exception, match="on request"):
            feed(run, spout, [(2,)])
    topology, spout = declared()
    clock(50)
    with engine.start(topology) as run:
        feed(run, spout, [(2,)])  # still of the first window
        feed(run, spout, [(4,)])
    other = TridentTopology().newStream("s", spout)
    assert captured_in(tmp_path / "made", other).batches == [[(3,)]]


# Calls that are wrong.


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda s, m: s.window(seconds("x"), m, Count(), "n"), FieldError, "x"),
        (lambda s, m: s.window(seconds("k"), m, Count(), "n"), FieldError, "k"),
        (lambda s, m: s.window(seconds("t"), m, Count(), "windowEnd"), FieldError, "windowEnd"),
        (lambda s, m: SessionWindow.of(ms(1)).withLag(ms(1)), PlanError, "time of batches"),
        (lambda s, m: seconds("t").withLag(3), OperationTypeError, "Duration"),
        (lambda s, m: s.slidingWindow(3, ms(1), m, Count(), "n"), OperationTypeError, "both"),
        (lambda s, m: s.tumblingWindow("1", m, Count(), "n"), OperationTypeError, "a Duration"),
        (lambda s, m: s.tumblingWindow(ms(0), m, Count(), "n"), PlanError, "above 0"),
        (lambda s, m: SessionWindow.of(ms(0)), PlanError, "above 0"),
        (lambda s, m: Duration.of(-1), PlanError, "not below 0"),
        (lambda s, m: s.tumblingWindow(ms(1), m, Count(), "n").lateStream(), PlanError, "late"),
        (lambda s, m: s.tumblingWindow(1, m, Count(), "n").lateStream(), PlanError, "late"),
    ],
)
def test_a_call_that_is_wrong_says_so(call: Any, error: type[Exception], said: str) -> None:
    stream = TridentTopology().newStream("s", FeederBatchSpout("k string, t long"))
    with pytest.raises(error, match=said):
        call(stream, MemoryMapState.Factory())


def seconds(field: str) -> DurationWindow:
    return TumblingDurationWindow.of(Duration.seconds(1)).withTimestampField(field)


def test_a_tuple_without_a_time_ends_the_run(tmp_path: Path) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("t long")
    stream = topology.newStream("values", spout)
    stream.window(seconds("t"), MemoryMapState.Factory(), Count(), "n")
    engine = Engine(None, tmp_path)
    with pytest.raises(OperationError, match="None"):
        engine.play(topology, spout, [(1,), (None,)])


def test_a_window_is_a_value_that_says_what_it_is() -> None:
    window = seconds("t").withLag(ms(1500)).withLateness(Duration.hours(2))
    assert str(window) == "tumbling, 1 s, by t, lag 1500 ms, lateness 2 h"
    assert isinstance(window, BaseWindow)
    assert window == seconds("t").withLag(ms(1500)).withLateness(Duration.minutes(120))
    assert TumblingCountWindow.of(3) == TumblingCountWindow.of(3)


def test_a_window_that_begins_before_the_year_1_is_an_error_that_names_the_field(
    engine: Engine,
) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("t timestamp_ntz")
    window = SlidingDurationWindow.of(Duration.minutes(1), Duration.seconds(1))
    stream = topology.newStream("values", spout)
    stream.window(window.withTimestampField("t"), MemoryMapState.Factory(), Count(), "n")
    first = datetime(1, 1, 1, 0, 0, 1)
    with pytest.raises(OperationError, match="by the field 't' needs timestamps in the years 1 to"):
        engine.play(topology, spout, [(first,), (first + timedelta(minutes=5),)])
