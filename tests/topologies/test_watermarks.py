"""The watermark is the least time that the active partitions of the sources have reached."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.spouts.decades import OpaqueShelf, Shelf, TransactionalShelf
from tests.topologies.conftest import PATIENCE, Engine, feed
from trident import (
    Count,
    Duration,
    FeederBatchSpout,
    MapGet,
    MemoryMapState,
    SessionWindow,
    Sum,
    TextFileSpout,
    TridentTopology,
    TumblingDurationWindow,
)
from trident.api.stream import Stream
from trident.backends import sqlite
from trident.batch.watchpoints import watching
from trident.errors import PlanError
from trident.states.values import Token
from trident.testing import Tester, fail_at
from trident.windows.time_windows import Clock
from trident.windows.watermarks import Partitions, milliseconds, time_of
from trident.windows.window_contents import SlidingAggregate

ms = Duration.of
TEN: Any = TumblingDurationWindow.of(ms(10)).withTimestampField("t")


def written(folder: Path, *files: range) -> str:
    """Files with a time a line."""
    folder.mkdir()
    for number, times in enumerate(files):
        (folder / f"{number}.txt").write_text("".join(f"{time}\n" for time in times))
    return str(folder / "*.txt")


def times_of(topology: TridentTopology, pattern: str, **options: Any) -> Stream:
    spout = TextFileSpout(pattern, batch_bytes=300, **options)
    return topology.newStream("files", spout).map(int, "t long")


@pytest.mark.parametrize("files", [1, 2, 4])
def test_events_in_order_are_all_counted_in_however_many_files_they_are(
    engine: Engine, files: int
) -> None:
    size = 1000 // files
    ranges = [range(start, start + size) for start in range(0, 1000, size)]
    topology = TridentTopology()
    stream = times_of(topology, written(engine.folder / "lines", *ranges))
    windows = stream.window(TEN, MemoryMapState.Factory(), Count(), "n")
    made = engine.capture(windows.project("n"))
    with engine.start(topology, trigger="available") as run:
        assert run.awaitTermination(PATIENCE)
        late = sum(batch.late for batch in run.groups["files"].recentProgress)
    assert (sum(n for (n,) in made.tuples), late) == (990, 0)


def test_the_partition_of_a_tuple_goes_through_steps(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through those that replace tuples, drop and repeat them, leave fields out, and move them."""
    monkeypatch.setattr("trident.spark.group_engine.SMALL", 1)
    topology = TridentTopology()
    lines = times_of(topology, written(engine.folder / "lines", range(300), range(300, 600)))
    known = topology.newStaticState(MemoryMapState.Factory(), name="known")
    stream = (
        lines.each("t", lambda t: [(t % 3, str(t))], "key long, text string")
        .filter("t", lambda t: t % 2 == 0)
        .flatMap(lambda t, key, text: [(t, key), (t, key)], "t long, key long")
        .shuffle()
        .parallelismHint(2)
        .stateQuery(known, "key", MapGet(), "found long")
        .peek(lambda t, key, found: None)
        .project("key", "t")
        .partitionBy("key")
    )
    both = topology.merge(stream.filter("t", lambda t: t % 4 == 0), stream.project("key", "t"))
    windows = both.groupBy("key").window(TEN, MemoryMapState.Factory(), Count(), "n")
    made = engine.capture(windows.project("n"))
    with engine.start(topology, trigger="available") as run:
        assert run.awaitTermination(PATIENCE)
        late = sum(batch.late for batch in run.groups["files"].recentProgress)
    assert (sum(n for (n,) in made.tuples), late) == (295 * 2 + 148 * 2, 0)


def played(engine: Engine, spout: Any, window: Any = TEN) -> list[Any]:
    """What windows of a shelf come to, each batch after the other."""
    topology = TridentTopology()
    stream = topology.newStream("shelf", spout).map(lambda part, number: number, "t long")
    made = engine.capture(stream.window(window, MemoryMapState.Factory(), "t", Sum(), "sum"))
    with engine.start(topology, trigger="available") as run:
        assert run.awaitTermination(PATIENCE)
    return made.batches


@pytest.mark.parametrize("make", [OpaqueShelf, TransactionalShelf])
def test_a_partition_without_tuples_holds_the_watermark_back(tmp_path: Path, make: Any) -> None:
    shelf = Shelf({"a": [1, 12, 25, 31], "b": []})
    assert played(Engine(None, tmp_path), make(shelf)) == []


@pytest.mark.parametrize("make", [OpaqueShelf, TransactionalShelf])
def test_a_partition_that_is_no_longer_there_does_not(tmp_path: Path, make: Any) -> None:
    shelf = Shelf({"a": [1, 12, 25, 31], "b": []}, hidden={"b"})
    made = played(Engine(None, tmp_path), make(shelf))
    assert made == [[(1, 0, 10)], [(12, 10, 20), (25, 20, 30)]]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after begin", "after write", "after ready"])
@pytest.mark.parametrize("make", [OpaqueShelf, TransactionalShelf])
def test_a_batch_that_is_tried_again_has_the_same_watermark(
    tmp_path: Path, make: Any, point: str
) -> None:
    shelf = Shelf({"a": [1, 12, 25, 31], "b": [2, 3, 11, 29, 35, 36]})
    with fail_at(point, 1, times=2), fail_at(point, 3, times=2):
        made = played(Engine(None, tmp_path), make(shelf))
    # At last b is at 36, and a at 31.
    assert made == [[(23, 10, 20), (6, 0, 10)], [(54, 20, 30)]]


def test_a_replay_goes_by_the_partitions_that_were_logged(tmp_path: Path) -> None:
    """Though another partition has come meanwhile, which would hold the watermark back."""
    shelf = Shelf({"a": [1, 12, 25, 31]})

    def more(point: str, token: Token) -> None:
        if token.txid == 1 and point == "after write":
            shelf.numbers["b"] = []

    with watching(more), fail_at("after write", 1):
        made = played(Engine(None, tmp_path), TransactionalShelf(shelf))
    assert made == [[(1, 0, 10)]]


def test_batches_may_be_pending(tmp_path: Path) -> None:
    engine = Engine(None, tmp_path)
    topology = TridentTopology()
    stream = times_of(topology, written(tmp_path / "lines", range(500), range(500, 1000)))
    store = sqlite.opaque(str(tmp_path / "windows.db"))
    stream.window(TEN, store, Count(), "n")
    with engine.start(topology, trigger="available", max_pending=3) as run:
        assert run.awaitTermination(PATIENCE)
        assert sum(batch.late for batch in run.groups["files"].recentProgress) == 0


def test_merged_streams_wait_for_each_other(engine: Engine) -> None:
    topology = TridentTopology()
    fast, slow = FeederBatchSpout("t long"), FeederBatchSpout("t long")
    both = topology.merge(topology.newStream("fast", fast), topology.newStream("slow", slow))
    windows = both.window(TEN, MemoryMapState.Factory(), "t", Sum(), "sum")
    made = engine.capture(windows)
    late = engine.capture(windows.lateStream(), "late")
    with engine.start(topology) as run:
        feed(run, fast, [(1,), (25,)])
        feed(run, slow, [(4,)])
        feed(run, slow, [(11,)])
        feed(run, slow, [(9,)])
        feed(run, fast, [(26,)])
    assert made.batches == [[(5, 0, 10)]]
    assert late.tuples == [(9,)]


def test_what_an_aggregate_makes_is_one_partition(engine: Engine) -> None:
    topology = TridentTopology()
    plain, counted = FeederBatchSpout("t long"), FeederBatchSpout("t long")
    sums = topology.newStream("counted", counted).groupBy("t").aggregate(Count(), "n").project("t")
    both = topology.merge(topology.newStream("plain", plain), sums)
    made = engine.capture(both.window(TEN, MemoryMapState.Factory(), "t", Sum(), "sum"))
    with engine.start(topology) as run:
        feed(run, plain, [(1,), (25,)])
        feed(run, counted, [(4,), (4,), (12,)])
    assert made.batches == [[(5, 0, 10)]]


@pytest.mark.parametrize("window", [TEN, SessionWindow.of(ms(5)).withTimestampField("t")], ids=str)
def test_a_restart_goes_on_with_the_times_of_the_partitions(engine: Engine, window: Any) -> None:
    def declared() -> tuple[TridentTopology, FeederBatchSpout, FeederBatchSpout, Any]:
        topology = TridentTopology()
        fast, slow = FeederBatchSpout("t long"), FeederBatchSpout("t long")
        both = topology.merge(topology.newStream("fast", fast), topology.newStream("slow", slow))
        store = sqlite.opaque(str(engine.folder / "windows.db"))
        return topology, fast, slow, engine.capture(both.window(window, store, "t", Sum(), "sum"))

    topology, fast, slow, made = declared()
    with engine.start(topology) as run:
        feed(run, fast, [(1,), (40,)])
    topology, fast, slow, made = declared()
    with engine.start(topology) as run:
        feed(run, slow, [(2,)])
    assert made.batches == []
    topology, fast, slow, made = declared()
    with engine.start(topology) as run:
        feed(run, slow, [(20,)])
    assert [total for batch in made.batches for total, *_ in batch] == [3]


def test_what_an_earlier_version_kept_is_read() -> None:
    stored = {"watermark": 7, "late": 1, "agenda": [[0, 1]], "shape": "tumbling, 10 ms"}
    assert Partitions.read(stored) == Partitions(None, {})
    assert Clock(7, 1, {0: 1}, "tumbling, 10 ms").partitions.kept() == {}


IDLE: Any = TEN.withIdleAfter(Duration.seconds(5))


def two_streams(window: Any) -> tuple[TridentTopology, Any, FeederBatchSpout, FeederBatchSpout]:
    topology = TridentTopology()
    fast, slow = FeederBatchSpout("t long"), FeederBatchSpout("t long")
    both = topology.merge(topology.newStream("fast", fast), topology.newStream("slow", slow))
    return topology, both.window(window, MemoryMapState.Factory(), "t", Sum(), "sum"), fast, slow


def test_a_partition_that_has_been_quiet_for_long_is_not_waited_for() -> None:
    topology, windows, *_ = two_streams(IDLE)
    with Tester(topology) as tester:
        tester.feed("fast", 1, 25)
        tester.clock.advance(4)
        tester.feed("slow", 3)
        tester.clock.advance(4)
        tester.feed("fast", 26)
        assert tester.emitted(windows) == []
        tester.clock.advance(1)
        tester.feed("fast", 27)
        assert tester.emitted(windows) == [(4, 0, 10)]
        tester.feed("slow", 30)
        tester.feed("fast", 45)  # slow is at 30 again
        assert tester.emitted(windows) == [(25 + 26 + 27, 20, 30)]


def test_a_partition_that_never_had_a_tuple_is_waited_for_as_long() -> None:
    topology, windows, *_ = two_streams(IDLE)
    with Tester(topology) as tester:
        tester.feed("fast", 1, 25)
        tester.clock.advance(5)
        tester.feed("fast", 26)
        assert tester.emitted(windows) == [(1, 0, 10)]


def test_partitions_of_a_run_in_which_nobody_asked_are_quiet_from_the_next_batch_on() -> None:
    before = Partitions(None, {}).after(["s"], {"s": ["a", "b"]}, ["a", "b"], [25, 3])
    after = before.after(["s"], {"s": ["a", "b"]}, ["a"], [26], moment=1_000)
    assert after.watermark(quiet_before=999) == 3
    last = after.after(["s"], {"s": ["a", "b"]}, ["a", "a"], [30, 27], moment=2_000)
    assert (last.watermark(quiet_before=999), last.watermark(quiet_before=1_000)) == (3, 30)


@pytest.mark.parametrize("end", [False, True])
def test_windows_end_when_all_is_quiet_where_that_is_asked_for(end: bool) -> None:
    topology, windows, *_ = two_streams(TEN.withIdleAfter(Duration.seconds(5), end=end))
    late = windows.lateStream()
    with Tester(topology) as tester:
        tester.feed("fast", 1, 12)
        tester.clock.advance(5)
        tester.feed("fast")
        assert tester.emitted(windows) == [(1, 0, 10), *[(12, 10, 20)] * end]
        tester.feed("fast", 13)
        assert tester.emitted(late) == [(13,)] * end


@pytest.mark.parametrize("window", [TEN, SessionWindow.of(ms(5)).withTimestampField("t")], ids=str)
def test_a_quiet_run_makes_the_batch_that_ends_its_windows(engine: Engine, window: Any) -> None:
    topology, spout = TridentTopology(), FeederBatchSpout("t long")
    stream = topology.newStream("times", spout)
    window = window.withIdleAfter(ms(50), end=True)
    made = engine.capture(stream.window(window, MemoryMapState.Factory(), "t", Sum(), "sum"))
    with engine.start(topology) as run:
        feed(run, spout, [(1,)])
        progress = run.groups["times"]
        while not made.tuples:
            assert progress.isActive
            progress.awaitTermination(0.01)
    assert [total for total, *_ in made.tuples] == [1]
    assert "idle after 50 ms, which ends it" in topology.explain()


def test_how_long_a_partition_may_be_quiet_is_above_nothing() -> None:
    with pytest.raises(PlanError, match=r"withIdleAfter: the time is above 0, found '0 ms'"):
        TEN.withIdleAfter(ms(0))
    with pytest.raises(PlanError, match=r"withIdleAfter: the window is by the time of batches"):
        TumblingDurationWindow.of(ms(10)).withIdleAfter(ms(1))


def test_a_watermark_waits_for_each_active_partition() -> None:
    some = Partitions(None, {}).after(["s"], {"s": ["s/a", "s/b"]}, ["s/a", "s/a"], [7, 3])
    assert some.watermark() is None
    assert some.after(["s"], {"s": ["s/a"]}, (), ()).watermark() == 7


def test_times_are_whole_milliseconds_and_back() -> None:
    assert milliseconds("timestamp", [datetime(1970, 1, 1, 0, 1)]) == [60000]
    assert time_of("long", 60000) == 60000
    assert time_of("timestamp_ntz", 60000) == datetime(1970, 1, 1, 0, 1)


def test_panes_slide_and_are_combined_in_order() -> None:
    words = SlidingAggregate(lambda a, b: a + b, "abcdef".__getitem__)
    slid = [words.over(panes) for panes in (range(0, 3), range(2, 4), range(2, 6))]
    assert slid == ["abc", "cd", "cdef"]
