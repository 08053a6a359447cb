"""Batches that are emitted and computed while an earlier one is committed."""

from __future__ import annotations

import re
import signal
import threading
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.batch import overlapping_run
from tests.batch.overlapping_run import EXPECTED, PENDING, TEXT, WORDS, Words, counts, topology
from trident import (
    FeederBatchSpout,
    Fields,
    FixedBatchSpout,
    Function,
    Split,
    TridentTopology,
)
from trident.api.run import Run
from trident.backends import redis
from trident.backends.memory import MemoryMapState
from trident.batch.computed import Computed, write_updates
from trident.batch.errors import BatchFailedError
from trident.batch.outcome import Outcome
from trident.batch.watchpoints import POINTS, watching
from trident.errors import PlanError
from trident.log.file_log import FileLog
from trident.log.folders import folder_of
from trident.operations.builtin import Count, MapGet
from trident.operations.interfaces import TridentCollector
from trident.states.errors import FailedException, StateUnavailableError
from trident.states.values import Token
from trident.storm import IRichSpout
from trident.testing import fail_at, hold_at
from trident.testing.servers.process import wait_until
from trident.tuples.block import block_of

KINDS = pytest.mark.parametrize("kind", ["opaque", "transactional"])


class Engine:
    """Runs the topology of this test on an engine, in batches that overlap."""

    def __init__(self, folder: Path, spark: Any = None, choice: Any = "auto") -> None:
        self.folder = folder
        self._spark = spark
        self._choice = choice

    def start(self, made: TridentTopology, **options: Any) -> Run:
        """Start with a checkpoint of this test's own."""
        options = {"engine": self._choice, "max_pending": PENDING, **options}
        return made.start(self._spark, self.folder / "checkpoint", **options)

    def run_all(self, spout: Words, split: Any = None, **options: Any) -> list[int]:
        """Run what is left; return the attempts of each batch."""
        made = topology(self.folder, spout, split)
        with self.start(made, trigger="available", **options) as run:
            run.awaitTermination(120)
            [group] = run.groups.values()
            return [progress.attempts for progress in group.recentProgress]

    @property
    def counts(self) -> dict[str, int]:
        """What the state holds when all of its batches are committed."""
        return counts(self.folder)


@pytest.fixture(
    params=[
        "local",
        pytest.param("spark", marks=pytest.mark.spark),
        pytest.param("mixed", marks=pytest.mark.spark),
    ]
)
def engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Engine:
    """Each engine; the mixed one runs every other batch on Spark."""
    if request.param == "local":
        return Engine(tmp_path)
    if request.param == "mixed":
        draws = cycle(["local", "spark"])
        chosen = "trident.spark.mixed_engine.Costs.choose"
        monkeypatch.setattr(chosen, lambda self, tuples: next(draws))
    choice = "spark" if request.param == "spark" else "auto"
    return Engine(tmp_path, request.getfixturevalue("spark"), choice)


class Watched(Words):
    """Tells when it has emitted a batch."""

    def __init__(self, kind: Any = "opaque") -> None:
        super().__init__(kind)
        self.changed = threading.Condition()

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        following = super().emitBatch(token, metadata, collector)
        with self.changed:
            self.changed.notify_all()
        return following

    def wait_emitted(self, txid: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: ("emit", txid) in self.calls, 60)


@pytest.mark.singles
@KINDS
def test_everything_counts_once(engine: Engine, kind: Any) -> None:
    assert set(engine.run_all(Words(kind))) == {1}
    assert engine.counts == EXPECTED


@pytest.mark.singles
@pytest.mark.parametrize("point", ["before begin", "after write", "before commit", "after commit"])
def test_batches_are_emitted_while_one_is_committed_up_to_max_pending(
    engine: Engine, point: str
) -> None:
    spout = Watched()
    with (
        hold_at(point, 2) as hold,
        engine.start(topology(engine.folder, spout), max_pending=3) as run,
    ):
        hold.wait_reached()
        spout.wait_emitted(4)
        assert ("success", 2) not in spout.calls
        assert ("emit", 5) not in spout.calls
        hold.release()
        run.processAllAvailable()
    assert engine.counts == EXPECTED


@pytest.mark.singles
@pytest.mark.parametrize(("room", "most"), [(3.5, 3), (2.5, 2), (0.5, 1)])
def test_while_computed_batches_take_much_memory_the_source_waits(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, room: float, most: int
) -> None:
    monkeypatch.setattr(Computed, "nbytes", 1000)
    monkeypatch.setattr("trident.batch.committer.PENDING_BYTES", 1000 * room)
    spout = Watched()
    made = topology(engine.folder, spout)
    with hold_at("after write", 1) as hold, engine.start(made, max_pending=20) as run:
        hold.wait_reached()
        spout.wait_emitted(most)
        hold.release()
        run.processAllAvailable()
    assert max(pending_at_emissions(spout)) == most
    assert engine.counts == EXPECTED


def pending_at_emissions(spout: Words) -> list[int]:
    """How many batches were emitted and not acknowledged whenever one had been emitted."""
    counted = Counter[str]()
    pending = []
    for call, _ in spout.calls:
        counted[call] += 1
        if call == "emit":
            pending.append(counted["emit"] - counted["success"])
    return pending


def test_a_state_sees_one_batch_after_the_other(engine: Engine) -> None:
    passed: list[tuple[int, str]] = []
    with watching(lambda point, token: passed.append((token.txid, point))):
        batches = len(engine.run_all(Words()))
    assert passed == [(txid, point) for txid in range(1, batches + 1) for point in POINTS]


def test_a_batch_is_acknowledged_after_its_commit_and_in_order(engine: Engine) -> None:
    spout = Words()
    committed: list[int] = []

    def watch(point: str, token: Token) -> None:
        if point == "after announce":
            committed.append(token.txid)
            assert ("success", token.txid) not in spout.calls

    with watching(watch):
        engine.run_all(spout)
    assert [txid for call, txid in spout.calls if call == "success"] == committed


@pytest.mark.slow
@pytest.mark.singles
@KINDS
@pytest.mark.parametrize("point", POINTS[: POINTS.index("after commit")])
def test_a_batch_that_fails_takes_those_behind_it_with_it(
    engine: Engine, kind: Any, point: str
) -> None:
    spout = Words(kind)
    with fail_at(point, 2):
        attempts = engine.run_all(spout)
    assert attempts == [1, 2] + [1] * (len(attempts) - 2)
    assert engine.counts == EXPECTED
    # What was computed behind it is emitted again, after its own second emission.
    again = [txid for call, txid in spout.calls if call == "emit"]
    assert again[again.index(2) + 1 :].count(2) == 1
    assert again.index(2) < again.index(3)


class Meeting(Function):
    """Passes a word on when the other one of a pair is there too, in a task of another batch."""

    def __init__(self, folder: Path, pair: set[str]) -> None:
        self.folder = folder
        self.pair = pair

    def execute(self, tuple: Any, collector: TridentCollector) -> None:
        (self.folder / tuple[0]).touch()
        for other in self.pair - {tuple[0]} if tuple[0] in self.pair else ():
            wait_until((self.folder / other).exists, 60)
        collector.emit([tuple[0]])


@pytest.mark.spark
def test_the_jobs_of_several_batches_run_at_once_on_spark(tmp_path: Path, spark: Any) -> None:
    spout = FixedBatchSpout("line string", 1, ["first"], ["one"], ["other"], ["last"])
    made = topology(tmp_path, spout, Meeting(tmp_path, {"one", "other"}))
    with made.start(spark, trigger="available", engine="spark", max_pending=3) as run:
        run.awaitTermination(120)
        [group] = run.groups.values()
        assert [progress.attempts for progress in group.recentProgress] == [1] * 4
    assert counts(tmp_path) == dict.fromkeys(["first", "one", "other", "last"], 1)


class Failing(Function):
    """Passes words on, and fails with `error` at the word "here", once, in whatever process."""

    def __init__(self, engine: Engine, error: Exception) -> None:
        self.failed = engine.folder / "failed"
        self.error = error

    def execute(self, tuple: Any, collector: TridentCollector) -> None:
        if tuple[0] == "here" and not self.failed.exists():
            self.failed.touch()
            raise self.error
        collector.emit([tuple[0]])


@pytest.mark.pairs
@KINDS
@pytest.mark.parametrize(
    "error", [FailedException("no"), StateUnavailableError("a server", "it is away")]
)
def test_a_batch_that_fails_while_it_is_computed_has_another_attempt(
    engine: Engine, kind: Any, error: Exception
) -> None:
    attempts = engine.run_all(Words(kind), Failing(engine, error))
    assert sorted(attempts) == [1] * (len(attempts) - 1) + [2]
    assert engine.counts == EXPECTED


def test_an_error_while_a_batch_is_computed_stops_the_run_after_those_before_it(
    engine: Engine,
) -> None:
    spout = Words()
    with pytest.raises(Exception, match="a bug"):
        engine.run_all(spout, Failing(engine, ValueError("a bug")))
    failed = TEXT.index("here") // WORDS
    acknowledged = [txid for call, txid in spout.calls if call == "success"]
    assert acknowledged == list(range(1, failed + 1))
    engine.run_all(Words())
    assert engine.counts == EXPECTED


def test_a_batch_that_always_fails_is_kept(engine: Engine) -> None:
    with (
        fail_at("after write", 3, times=100),
        pytest.raises(BatchFailedError, match="batch 3"),
    ):
        engine.run_all(Words(), retries=1)
    engine.run_all(Words())
    assert engine.counts == EXPECTED


def test_a_run_that_stops_finishes_the_batch_under_way_and_keeps_those_behind_it(
    engine: Engine,
) -> None:
    spout = Watched()
    with hold_at("after write", 2) as hold:
        run = engine.start(topology(engine.folder, spout), max_pending=3)
        hold.wait_reached()
        spout.wait_emitted(4)
        for group in run.groups.values():
            group.request_stop()
        hold.release()
        run.stop()
    assert [txid for call, txid in spout.calls if call == "success"] == [1, 2]
    newest = FileLog(engine.folder / "checkpoint" / folder_of("lines") / "log").newest()
    assert newest is not None
    assert newest.committed == 2
    engine.run_all(Watched())
    assert engine.counts == EXPECTED


def test_a_computed_batch_is_its_updates_as_plain_tuples(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_anew = []

    def written_anew(computed: Computed, *rest: Any) -> Outcome:
        updates = []
        for update in computed.updates:
            names = ("word", "count")
            block = block_of(names, list(update.block.tuples(names)))
            updates.append(update._replace(block=block))
        made_anew.extend(updates)
        return write_updates(Computed(tuple(updates), computed.outcome), *rest)

    for module in ("trident.local.group_engine", "trident.spark.group_engine"):
        monkeypatch.setattr(f"{module}.write_updates", written_anew)
    engine.run_all(Words())
    assert made_anew
    assert engine.counts == EXPECTED


def test_what_a_transactional_batch_holds_is_logged_before_it_begins(engine: Engine) -> None:
    log = FileLog(engine.folder / "checkpoint" / folder_of("lines") / "log")

    def watch(point: str, token: Token) -> None:
        if point == "before begin":
            newest = log.newest()
            assert newest is not None
            assert newest.committed == token.txid - 1
            start = WORDS * (token.txid - 1)
            assert newest.planned == {"lines": [start, start + WORDS]}

    with watching(watch):
        engine.run_all(Words("transactional"))


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("point", [*POINTS, "compute"])
def test_everything_counts_once_where_the_driver_is_killed(
    tmp_path: Path, kind: str, point: str
) -> None:
    folder = tmp_path / kind
    folder.mkdir()
    assert forks.run(overlapping_run, folder, "local", point, 4).code == -signal.SIGKILL
    overlapping_run.run(folder, "local")
    assert counts(folder) == EXPECTED


def test_feeds_of_several_threads_are_committed_while_others_are_computed() -> None:
    spout = FeederBatchSpout("line string")
    counted = TridentTopology()
    words = counted.newStream("lines", spout).each("line", Split(), "word").groupBy("word")
    state = words.persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    counted.newDRPCStream("count").stateQuery(state, "args", MapGet(), "n").project("n")
    with counted.start(max_pending=3) as run, fail_at("after write", 2):
        threads = [threading.Thread(target=spout.feed, args=[[["a b"]], 60]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert run.drpc.execute("count", "a") == "[[8]]"


class Messages(IRichSpout):
    def open(self, conf: Any, context: Any, collector: Any) -> None: ...

    def nextTuple(self) -> None: ...

    def declareOutputFields(self, declarer: Any) -> None:
        declarer.declare(Fields.of("line string"))


def _plain(made: TridentTopology) -> None:
    words = made.newStream("lines", Words()).groupBy("line")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "count")


def _queried(made: TridentTopology) -> None:
    lines = made.newStream("lines", Words())
    state = lines.groupBy("line").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    lines.stateQuery(state, "line", MapGet(), "n").peek(print)


def _taken(made: TridentTopology) -> None:
    words = made.newStream("lines", Words()).groupBy("line")
    state = words.persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    state.newValuesStream().peek(print)


def _hinted(made: TridentTopology) -> None:
    words = made.newStream("lines", Words()).groupBy("line")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "count").parallelismHint(2)


def _elsewhere(made: TridentTopology) -> None:
    words = made.newStream("lines", Words()).groupBy("line")
    words.persistentAggregate(redis.opaque(), Count(), "count", name="n")


def _acked(made: TridentTopology) -> None:
    words = made.newStream("lines", Messages()).groupBy("line")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "count")


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (_plain, "batches overlap if max_pending is given\n"),
        (_hinted, "batches overlap if max_pending is given\n"),
        (_elsewhere, 'is given; with a session one runs at a time: executors update state "n"\n'),
        (_queried, r"one at a time: step \d+ reads a state that they update"),
        (_taken, r"one at a time: step \d+ takes new values of a state"),
        (_acked, 'one at a time: the spout of stream "lines" has a part in the commit'),
    ],
)
def test_explain_says_which_batches_overlap(
    declare: Callable[[TridentTopology], None], told: str
) -> None:
    made = TridentTopology()
    declare(made)
    assert re.search(told, made.explain())


def test_a_group_that_reads_what_it_updates_runs_one_batch_at_a_time(tmp_path: Path) -> None:
    spout, made = Watched(), TridentTopology()
    lines = made.newStream("lines", spout)
    state = lines.groupBy("line").persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    lines.stateQuery(state, "line", MapGet(), "n").peek(lambda line, n: None)
    with made.start(max_pending=PENDING) as run:
        run.processAllAvailable()
    emitted = [call for call in spout.calls if call[0] == "emit"]
    in_turn = [each for _, txid in emitted for each in (("emit", txid), ("success", txid))]
    assert spout.calls == in_turn


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2"])
def test_max_pending_is_a_whole_number_from_1(most: Any) -> None:
    made = TridentTopology()
    _plain(made)
    with pytest.raises(PlanError, match="max_pending is a whole number from 1"):
        made.start(max_pending=most)
