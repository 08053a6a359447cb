"""Windows of a number of tuples: of the whole stream and of each key, on both engines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.topologies.capture import captured_in
from tests.topologies.conftest import Engine, feed
from trident import (
    Aggregator,
    CombinerAggregator,
    Count,
    FeederBatchSpout,
    Max,
    MemoryMapState,
    ReducerAggregator,
    SlidingCountWindow,
    Sum,
    TridentCollector,
    TridentTopology,
    TumblingCountWindow,
)
from trident.backends import sqlite
from trident.backends.memory import LRUMemoryMapState
from trident.errors import PlanError
from trident.states import OpaqueMap
from trident.states.errors import CorruptStateError
from trident.states.maps.factory import MapStateFactory
from trident.storm import BaseWindow
from trident.testing import Tester, fail_at
from trident.windows.window_contents import CHUNK


class Joined(CombinerAggregator[list[int]]):
    """All values, in order."""

    output_types = ("array<long>",)

    def init(self, tuple: Any) -> list[int]:
        return [tuple["v"]]

    def combine(self, a: list[int], b: list[int]) -> list[int]:
        a.extend(b)  # in place, as some do
        return a

    def zero(self) -> list[int]:
        return []


class Listed(ReducerAggregator[list[int]]):
    """The same, one tuple after the other."""

    output_types = ("array<long>",)

    def init(self) -> list[int]:
        return []

    def reduce(self, curr: list[int], tuple: Any) -> list[int]:
        return [*curr, tuple["v"]]


class Ends(Aggregator[list[int]]):
    """The first value and the last, a tuple each; none of a window that begins with 0."""

    output_types = (str, int)

    def init(self, batchId: object, collector: TridentCollector) -> list[int]:
        assert type(batchId) is int
        return []

    def aggregate(self, val: list[int], tuple: Any, collector: TridentCollector) -> None:
        val.append(tuple["v"])

    def complete(self, val: list[int], collector: TridentCollector) -> None:
        if val[0]:
            collector.emit(["first", val[0]])
            collector.emit(["last", val[-1]])


def windows(values: Sequence[int], length: int, slide: int) -> list[list[int]]:
    """The windows of some values, by their definition."""
    ends = range(slide, len(values) + 1, slide)
    return [list(values[max(0, end - length) : end]) for end in ends]


SHAPES = [(3, 3), (4, 2), (5, 3), (1, 1), (7, 1)]
SIZES = [2, 0, 5, 1, 1, 9, 3]


@pytest.mark.singles
@pytest.mark.parametrize("make", [Joined, Listed])
@pytest.mark.parametrize(("length", "slide"), SHAPES)
def test_windows_hold_the_tuples_that_they_are_defined_by(
    engine: Engine, make: Any, length: int, slide: int
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    config = SlidingCountWindow.of(length, slide)
    memory = MemoryMapState.Factory()
    stream = topology.newStream("values", spout).window(config, memory, "v", make(), "all")
    captured = engine.capture(stream)
    starts = [sum(SIZES[:place]) for place in range(len(SIZES))]
    batches = [[(v,) for v in range(at, at + n)] for at, n in zip(starts, SIZES, strict=True)]
    engine.play(topology, spout, *batches)
    assert sorted(captured.tuples) == sorted(
        (found,) for found in windows(range(sum(SIZES)), length, slide)
    )


@pytest.mark.parametrize("make", [Joined, Listed])
def test_each_key_has_windows_of_its_own(engine: Engine, kept: MapStateFactory, make: Any) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, n long, v long")
    stream = topology.newStream("values", spout).groupBy("k", "n")
    captured = engine.capture(stream.window(SlidingCountWindow.of(3, 2), kept, "v", make(), "all"))
    keys: list[tuple[Any, Any]] = [("a", 1), ("a", 2), (None, 1)]
    rows = [(*keys[v % 7 % 3], v) for v in range(40)]
    engine.play(topology, spout, rows[:5], rows[5:6], rows[6:31], rows[31:])
    assert sorted(captured.tuples, key=repr) == sorted(
        (
            (*key, found)
            for key in keys
            for found in windows([v for *given, v in rows if tuple(given) == key], 3, 2)
        ),
        key=repr,
    )


def test_keys_may_be_divided_among_partitions(
    engine: Engine, kept: MapStateFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident.spark.group_engine.SMALL", 1)
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, v long")
    stream = topology.newStream("values", spout).parallelismHint(2).groupBy("k")
    windows = stream.window(SlidingCountWindow.of(3, 1), kept, Count(), "n").parallelismHint(3)
    captured = engine.capture(windows)
    rows = [("abcdefgh"[v % 8], v) for v in range(24)]
    engine.play(topology, spout, rows[:9], rows[9:])
    assert sorted(captured.tuples) == sorted((k, n) for k in "abcdefgh" for n in (1, 2, 3))


def test_an_aggregator_may_emit_any_number_of_tuples_of_a_window(
    engine: Engine, kept: MapStateFactory
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    stream = topology.newStream("values", spout)
    made = stream.tumblingWindow(2, kept, "v", Ends(), "which, value")
    captured = engine.capture(made)
    engine.play(topology, spout, [(0,), (1,), (2,)], [(3,), (4,), (5,)])
    assert captured.batches == [
        [("first", 2), ("first", 4), ("last", 3), ("last", 5)],
    ]


def test_windows_wider_than_a_chunk_are_read_chunk_by_chunk(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    config = SlidingCountWindow.of(3 * CHUNK + 7, CHUNK - 5)
    stream = topology.newStream("values", spout)
    captured = engine.capture(stream.window(config, MemoryMapState.Factory(), "v", Listed(), "all"))
    values = list(range(7 * CHUNK))
    cuts = [0, 3, 1000, 1001, 1500, len(values)]
    batches = [[(v,) for v in values[a:b]] for a, b in pairwise(cuts)]
    engine.play(topology, spout, *batches)
    assert sorted(captured.tuples) == [
        (found,) for found in sorted(windows(values, config.length, config.slide))
    ]


def test_tuples_count_in_the_order_of_partitions(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    stream = topology.newStream("values", spout).parallelismHint(3)
    before = engine.capture(stream.partitionAggregate("v", Listed(), "some"), "before")
    made = stream.tumblingWindow(10, MemoryMapState.Factory(), "v", Listed(), "all")
    after = engine.capture(made, "after")
    engine.play(topology, spout, [(v,) for v in range(10)])
    [(whole,)] = after.tuples
    parts = [some for (some,) in before.tuples]
    places = sorted(whole.index(some[0]) for some in parts if some)
    assert sorted(whole) == list(range(10))
    assert all(whole[whole.index(p[0]) : whole.index(p[0]) + len(p)] == p for p in parts if p)
    assert len(places) > 1


@pytest.mark.singles
@pytest.mark.slow
@pytest.mark.parametrize("point", ["after begin", "after write", "after ready"])
def test_a_batch_that_is_tried_again_counts_once(
    engine: Engine, kept: MapStateFactory, point: str
) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    stream = topology.newStream("values", spout)
    captured = engine.capture(
        stream.window(SlidingCountWindow.of(4, 2), kept, "v", Joined(), "all")
    )
    with engine.start(topology) as run, fail_at(point, 2, times=2):
        feed(run, spout, [(0,), (1,), (2,)], [(3,), (4,)], [(5,)])
    assert captured.batches == [[([0, 1],)], [([0, 1, 2, 3],)], [([2, 3, 4, 5],)]]


def test_open_windows_survive_a_restart(engine: Engine) -> None:
    def declared(folder: Path) -> tuple[TridentTopology, FeederBatchSpout]:
        topology = TridentTopology()
        spout = FeederBatchSpout("v long")
        store = sqlite.opaque(str(folder / "windows.db"))
        stream = topology.newStream("values", spout)
        made = stream.window(SlidingCountWindow.of(3, 2), store, "v", Listed(), "all")
        captured_in(folder / "captured", made)
        return topology, spout

    for values in ([0], [1, 2], [3], [4, 5, 6]):
        topology, spout = declared(engine.folder)
        with engine.start(topology) as run:
            feed(run, spout, [(v,) for v in values])
    captured = captured_in(engine.folder / "captured", TridentTopology().newStream("s", spout))
    assert captured.tuples == [([0, 1],), ([1, 2, 3],), ([3, 4, 5],)]


@pytest.mark.parametrize("make", [Sum, Listed])
def test_a_window_that_has_become_longer_than_what_is_kept_does_not_go_on(
    tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a log of an older version, which says nothing of windows.
    monkeypatch.setattr("trident.batch.opening.check_unchanged", lambda *given: None)
    kept, engine = MemoryMapState.Factory(), Engine(None, tmp_path)

    def play(length: int, rows: int) -> None:
        topology = TridentTopology()
        spout = FeederBatchSpout("v long")
        stream = topology.newStream("values", spout)
        stream.window(SlidingCountWindow.of(length, 2), kept, "v", make(), "made", name="kept")
        engine.play(topology, spout, [(v,) for v in range(rows)])

    play(4, 5 * CHUNK)
    with pytest.raises(CorruptStateError, match="declared otherwise"):
        play(4 * CHUNK, 9)


def test_what_no_window_needs_any_more_is_removed(engine: Engine, kept: MapStateFactory) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    stream = topology.newStream("values", spout)
    stream.window(SlidingCountWindow.of(4, 2), kept, "v", Sum(), "sum")
    engine.play(topology, spout, *([(v,) for v in range(n)] for n in (3, 50, 1, 2, 7)))
    # 63 tuples: the next windows end at 64 and 66, and reach back to 60.
    state = kept.makeState()
    found = [pane for pane in range(40) if state.multiGet([("pane of 2", pane)]) != [None]]
    assert (found, state.multiGet([("at",)])) == ([30, 31], [63])
    state.close()


def test_a_window_whose_aggregate_is_null_is_emitted(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("v long")
    stream = topology.newStream("values", spout)
    made = stream.tumblingWindow(2, MemoryMapState.Factory(), "v", Max(), "most")
    captured = engine.capture(made)
    engine.play(topology, spout, [(None,)], [(None,), (3,), (None,)])
    assert captured.tuples == [(3,), (None,)]


def test_without_inputs_the_aggregator_sees_empty_tuples(engine: Engine) -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k string, v long")
    stream = topology.newStream("values", spout)
    memory = MemoryMapState.Factory()
    whole = engine.capture(stream.tumblingWindow(2, memory, Count(), "n"), "whole")
    by_key = stream.groupBy("k").tumblingWindow(2, MemoryMapState.Factory(), Count(), "m")
    grouped = engine.capture(by_key, "grouped")
    engine.play(topology, spout, [("a", 1)], [("b", 1), ("b", 2), ("c", 1)])
    assert (whole.tuples, grouped.tuples) == ([(2,), (2,)], [("b", 2)])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (lambda: TumblingCountWindow.of(0), "above 0, found 'int 0'"),
        (lambda: SlidingCountWindow.of(3, 4), "leave tuples out"),
        (lambda: SlidingCountWindow.of(True, True), "above 0"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(config: Any, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        config()


def test_open_windows_are_kept_in_an_opaque_map_only() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FeederBatchSpout("v long"))
    weaker = sqlite.transactional("windows.db")
    with pytest.raises(PlanError, match="kept in an opaque map"):
        stream.window(TumblingCountWindow.of(3), weaker, "v", Sum(), "sum")
    with pytest.raises(PlanError, match="forgets nothing"):
        stream.window(TumblingCountWindow.of(3), LRUMemoryMapState.Factory(9), "v", Sum(), "sum")
    assert [node.call_text for node in topology.plan().nodes][1:] == []


def test_what_is_no_window_is_refused() -> None:
    stream = TridentTopology().newStream("s", FeederBatchSpout("v long"))
    with pytest.raises(PlanError, match="expected a window, found 'int 3'"):
        stream.window(3, MemoryMapState.Factory(), "v", Sum(), "sum")  # type: ignore[call-overload]


def test_the_state_of_a_window_may_be_named_and_is_explained() -> None:
    topology = TridentTopology()
    stream = topology.newStream("s", FeederBatchSpout("k string, v long"))
    memory: MapStateFactory = MemoryMapState.Factory()
    stream.groupBy("k").slidingWindow(10, 5, memory, "v", Sum(), "sum", name="tens")
    text = topology.explain()
    assert 'groupBy(k).window(sliding, 10 tuples every 5, "tens", v, Sum())' in text
    assert "exactly once: opaque stream, opaque map" in text
    assert isinstance(TumblingCountWindow.of(1), BaseWindow)
    assert OpaqueMap.kept_as.type is memory.kind


def test_keys_that_python_calls_equal_have_windows_of_their_own() -> None:
    topology = TridentTopology()
    spout = FeederBatchSpout("k, v long")
    stream = topology.newStream("values", spout).groupBy("k")
    pairs = stream.window(TumblingCountWindow.of(2), MemoryMapState.Factory(), "v", Sum(), "sum")
    tester = Tester(topology)
    tester.feed("values", (1, 1), (True, 10), (1.0, 100), ([1], 1000))
    tester.feed("values", ([1], 1000), (1.0, 100), (True, 10), (1, 1))
    found = sorted(tester.emitted(pairs), key=lambda row: row[1])
    assert repr(found) == "[(1, 2), (True, 20), (1.0, 200), ([1], 2000)]"
