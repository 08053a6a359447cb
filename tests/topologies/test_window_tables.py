"""Tables of windows hold each tuple once, however late it comes, and whatever sessions it joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.topologies.conftest import Engine, contents, feed
from tests.topologies.test_time_windows import (
    SEEDS,
    Aggregated,
    Combined,
    Reduced,
    drawn_batches,
    ms,
)
from tests.topologies.time_windows import Model
from trident import (
    FeederBatchSpout,
    MemoryMapState,
    SessionWindow,
    SlidingDurationWindow,
    Sum,
    TridentTopology,
    TumblingCountWindow,
    TumblingDurationWindow,
)
from trident.api.stream import WindowedStream
from trident.backends import sqlite
from trident.errors import OperationTypeError, PlanError
from trident.states import StateFactory
from trident.states.maps.factory import MapStateFactory
from trident.states.state import State
from trident.testing import fail_at

FIELDS = "k string, t long, v long"
SESSION = SessionWindow.of(ms(10)).withTimestampField("t")
OPEN = SESSION.withLateness(ms(1000)).withRetractions()


def stores(folder: Path) -> tuple[Any, Any]:
    """For open windows, and for a table of those that have ended."""
    path = folder / "states.db"
    return sqlite.opaque(path, prefix="open"), sqlite.opaque(path, prefix="table")


def in_memory() -> tuple[Any, Any]:
    """The same, for as long as this process."""
    return MemoryMapState.Factory(), MemoryMapState.Factory()


def windowed(window: Any, make: Any, kept: Any) -> tuple[FeederBatchSpout, Any, WindowedStream]:
    topology, spout = TridentTopology(), FeederBatchSpout(FIELDS)
    stream = topology.newStream("values", spout).groupBy("k")
    return spout, topology, stream.window(window, kept, "v", make(), "all")


def in_sessions(rows: Iterable[tuple[str, int, int]], gap: int) -> dict[Any, list[int]]:
    """The sessions of all tuples: brute force, each pair of neighbours by itself."""
    found: dict[Any, list[int]] = {}
    ordered = sorted(rows)
    while ordered:
        key, start, _ = ordered[0]
        end, values = start + gap, []
        while ordered and ordered[0][0] == key and ordered[0][1] < end:
            _, time, value = ordered.pop(0)
            end = time + gap
            values.append(value)
        found[key, start, end] = sorted(values)
    return found


def table_of(
    engine: Engine, window: Any, make: Any, batches: Sequence[Any], kept: Any, table: Any
) -> dict[Any, Any]:
    """What a table holds after batches, of which a run of its own takes each second half."""
    for half in (batches[: len(batches) // 2], batches[len(batches) // 2 :]):
        spout, topology, windows = windowed(window, make, kept)
        windows.persistWindows(table)
        with engine.start(topology) as run:
            feed(run, spout, *half)
    return contents(table)


def test_a_late_tuple_moves_the_start_and_nothing_counts_twice(
    engine: Engine, kept: MapStateFactory
) -> None:
    spout, topology, windows = windowed(OPEN, Sum, kept)
    captured = engine.capture(windows)
    _, table = stores(engine.folder)
    windows.persistWindows(table)
    batches = [
        [("a", 100, 1), ("a", 120, 2), ("a", 200, 4)],
        [("a", 95, 8)],  # begins the first session earlier
        [("a", 112, 16), ("a", 104, 32)],  # makes one of the first two
        [("a", 110, 64)],  # within it: only its value is another
        [("a", 195, 128), ("b", 300, 256)],  # a session that had not been emitted
    ]
    engine.play(topology, spout, *batches)
    assert captured.batches == [
        [("a", 1, 100, 110), ("a", 2, 120, 130)],
        [("a", 9, 95, 110), ("a", None, 100, 110)],
        [("a", 59, 95, 130), ("a", None, 120, 130), ("a", None, 95, 110)],
        [("a", 123, 95, 130)],
        [("a", 132, 195, 210)],
    ]
    assert contents(table) == {("a", 95, 130): 123, ("a", 195, 210): 132}


def test_a_session_that_goes_on_after_its_end_is_taken_back_until_it_ends(engine: Engine) -> None:
    spout, topology, windows = windowed(OPEN, Sum, MemoryMapState.Factory())
    captured = engine.capture(windows)
    engine.play(topology, spout, [("a", 0, 1), ("b", 12, 2)], [("a", 9, 4)], [("b", 30, 8)])
    assert captured.batches == [
        [("a", 1, 0, 10)],
        [("a", None, 0, 10)],
        [("a", 5, 0, 19), ("b", 2, 12, 22)],
    ]


def drawn_session(random: Random) -> Any:
    gap, lag = random.choice([1, 4, 9, 40]), random.choice([0, 3, 12])
    window = SessionWindow.of(ms(gap)).withTimestampField("t").withLag(ms(lag))
    return window.withRetractions()


@pytest.mark.parametrize("make", [Combined, Reduced])
def test_a_table_has_the_sessions_of_all_tuples(make: Any, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        random = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        window = drawn_session(random).withLateness(ms(10**7))
        batches = drawn_batches(random)
        batches.append([("z", 2 * 10**6, 0)])  # ends all others
        open_windows, table = stores(folder) if seed % 10 == 0 else in_memory()
        engine = Engine(None, folder)
        found = table_of(engine, window, make, batches, open_windows, table)
        rows = [row for batch in batches[:-1] for row in batch]
        assert found == in_sessions(rows, window.gap.milliseconds), (seed, batches)


def test_a_table_has_what_was_emitted_last_of_each_window(tmp_path: Path) -> None:
    """Windows of all kinds that are forgotten some time, by the definition of what they emit."""
    for seed in range(SEEDS):
        random = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        lateness = ms(random.choice([0, 5, 30]))
        window: Any = random.choice(
            [
                drawn_session(random),
                TumblingDurationWindow.of(ms(4)).withTimestampField("t"),
                SlidingDurationWindow.of(ms(9), ms(3)).withTimestampField("t"),
            ]
        )
        window, batches = window.withLateness(lateness), drawn_batches(random)
        open_windows, table = stores(folder) if seed % 10 == 0 else in_memory()
        found = table_of(Engine(None, folder), window, Combined, batches, open_windows, table)
        model, expected = Model(window), dict[Any, Any]()
        for batch in batches:
            emitted = {(key, start, end): made for key, made, start, end in model.batch(batch)}
            if isinstance(window, SessionWindow):
                gap = window.gap.milliseconds
                for key, start, end in {**emitted, **in_sessions(model.rows, gap)}:
                    for old in [old for old in expected if old != (key, start, end)]:
                        if old[0] == key and start <= old[1] and old[2] <= end:
                            del expected[old]
            expected |= emitted
        assert found == expected, (seed, window, batches)


def test_both_engines_have_the_same_table(engine: Engine, kept: MapStateFactory) -> None:
    batches = [*drawn_batches(Random(7)), [("z", 2 * 10**6, 0)]]
    spout, topology, windows = windowed(OPEN.withLateness(ms(10**7)), Combined, kept)
    _, table = stores(engine.folder)
    windows.persistWindows(table)
    engine.play(topology, spout, *batches)
    assert contents(table) == in_sessions([row for batch in batches[:-1] for row in batch], 10)


@pytest.mark.slow
def test_a_batch_that_is_tried_again_leaves_the_same_table(engine: Engine) -> None:
    batches = [[("a", 100, 1), ("a", 120, 2), ("b", 200, 0)], [("a", 112, 4)], [("a", 104, 8)]]
    spout, topology, windows = windowed(OPEN, Sum, MemoryMapState.Factory())
    _, table = stores(engine.folder)
    windows.persistWindows(table)
    with fail_at("after write", times=3):
        engine.play(topology, spout, *batches)
    assert contents(table) == {("a", 100, 130): 15}


class NoMap(State):
    def beginCommit(self, batch: Any) -> None: ...

    def commit(self, batch: Any) -> None: ...


class NoMaps(StateFactory):
    def makeState(
        self, conf: Any = None, metrics: Any = None, partitionIndex: int = 0, numPartitions: int = 1
    ) -> NoMap:
        return NoMap()


@pytest.mark.parametrize(
    ("window", "make", "store", "error", "text"),
    [
        (TumblingCountWindow.of(3), Sum, None, PlanError, "windows by a field with times"),
        (SessionWindow.of(ms(3)), Sum, None, PlanError, "windows by a field with times"),
        (SESSION.withLateness(ms(3)), Sum, None, PlanError, r"withRetractions\(\)"),
        (OPEN, Aggregated, None, OperationTypeError, "Aggregated.*combiner or a reducer"),
        (OPEN, Sum, NoMaps(), OperationTypeError, "takes a map state.*NoMap"),
    ],
)
def test_what_makes_no_table_is_refused(
    window: Any, make: Any, store: Any, error: type[Exception], text: str
) -> None:
    _, _, windows = windowed(window, make, MemoryMapState.Factory())
    with pytest.raises(error, match=f"persistWindows: .*{text}"):
        windows.persistWindows(store or MemoryMapState.Factory())


def test_retractions_take_a_field_with_times() -> None:
    with pytest.raises(PlanError, match="withRetractions: the window is by the time of batches"):
        SessionWindow.of(ms(3)).withRetractions()


class OddOnly(Sum):
    """Null where the sum is even."""

    def combine(self, val1: Any, val2: Any) -> Any:
        total = super().combine(val1, val2)
        return total if total % 2 else None


def test_a_window_that_comes_to_null_has_no_row(tmp_path: Path) -> None:
    kept, table = stores(tmp_path)
    spout, topology, windows = windowed(SESSION, OddOnly, kept)
    windows.persistWindows(table)
    batch = [("a", 101, 1), ("a", 102, 1), ("b", 101, 2), ("b", 102, 1), ("c", 200, 1)]
    Engine(None, tmp_path).play(topology, spout, batch)
    assert contents(table) == {("b", 101, 112): 3}


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(TumblingDurationWindow.of(ms(10)), id="tumbling"),
        pytest.param(SlidingDurationWindow.of(ms(10), ms(5)), id="sliding"),
        pytest.param(SESSION.withRetractions(), id="sessions"),
    ],
)
def test_a_longer_lateness_brings_no_window_back_that_has_ended_for_good(
    window: Any, tmp_path: Path
) -> None:
    kept, table = stores(tmp_path)
    engine, late = Engine(None, tmp_path), []
    tables = []
    window = window.withTimestampField("t")
    for given, batch in (
        (window, [("a", 101, 1), ("b", 200, 0)]),
        (
            window.withLateness(ms(1000)),
            [("a", 102, 2), ("a", 203, 4)],
        ),
    ):
        spout, topology, windows = windowed(given, Sum, kept)
        late.append(engine.capture(windows.lateStream(), f"late {given}"))
        windows.persistWindows(table)
        engine.play(topology, spout, batch)
        tables.append(contents(table))
    assert [one.tuples for one in late] == [[], [("a", 102, 2)]]
    assert set(tables[0].items()) <= set(tables[1].items())


@pytest.mark.parametrize(
    ("before", "first", "after"), [(0, 105, 1000), (100, 120, 1000), (1000, 120, 0)]
)
def test_sessions_are_removed_whatever_their_lateness_was_at_an_earlier_start(
    before: int, first: int, after: int, tmp_path: Path
) -> None:
    kept, _ = stores(tmp_path)
    engine = Engine(None, tmp_path)
    early, late = [[("a", 100, 1), ("b", first, 2)]], [[("b", 215, 4)], [("b", 2000, 8)]]
    for lateness, batches in (before, early), (after, late):
        window = SESSION.withLateness(ms(lateness))
        spout, topology, _ = windowed(window, Sum, kept)
        engine.play(topology, spout, *batches)
    assert [key for key in contents(kept) if "a" in key] == []
    assert contents(kept)["sessions", "b"][1] == [[2000, 2000, [2]]]


def test_a_shorter_lateness_forgets_sessions_before_the_next_tuple(tmp_path: Path) -> None:
    """Without retractions one that grew would count twice."""
    kept, table = stores(tmp_path)
    engine = Engine(None, tmp_path)
    for window, batches in (
        (OPEN, [[("a", 100, 1), ("b", 115, 0)]]),
        (SESSION, [[("a", 108, 2)], [("b", 300, 0)]]),
    ):
        spout, topology, windows = windowed(window, Sum, kept)
        windows.persistWindows(table)
        engine.play(topology, spout, *batches)
    rows = {row: value for row, value in contents(table).items() if "a" in row}
    assert rows == {("a", 100, 110): 1, ("a", 108, 118): 2}


def test_windows_may_begin_to_retract_while_some_are_open(tmp_path: Path) -> None:
    kept, table = stores(tmp_path)
    engine = Engine(None, tmp_path)
    batches = [[("a", 100, 1), ("b", 200, 0)]], [[("a", 95, 2)]]
    captured = engine.capture
    for window, batch in zip((SESSION.withLateness(ms(1000)), OPEN), batches, strict=True):
        spout, topology, windows = windowed(window, Sum, kept)
        found = captured(windows, f"captured {window}")
        if window is OPEN:
            windows.persistWindows(table)
        engine.play(topology, spout, *batch)
    assert found.batches == [[("a", 3, 95, 110), ("a", None, 100, 110)]]
