"""The clock of spouts: it runs what is ready, sleeps otherwise, and ends between batches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import pytest

from tests.batch.counting import CountingEngine, counts, make_runner, memory_state
from trident.batch.errors import BatchFailedError
from trident.batch.loop import SpoutLoop
from trident.batch.opening import LogTerms
from trident.errors import EmittedValueError
from trident.log.errors import LogConflictError, TakenOverError
from trident.log.log import Log, MemoryLog
from trident.operations.interfaces import TridentCollector
from trident.spouts.feeder import FeederBatchSpout, FeedError
from trident.spouts.fixed import FixedBatchSpout
from trident.spouts.interfaces import (
    BatchCoordinator,
    Emitter,
    IBatchSpout,
    ITridentDataSource,
    ITridentSpout,
    SpoutKind,
)
from trident.states.maps.factory import OpaqueMap
from trident.states.values import Token
from trident.testing import fail_at, hold_at
from trident.tuples.fields import Fields

Start = Callable[..., SpoutLoop]


@pytest.fixture
def state() -> OpaqueMap:
    return memory_state()


@pytest.fixture
def log() -> Log:
    return MemoryLog("log")


@pytest.fixture
def start(state: OpaqueMap, log: Log) -> Iterator[Start]:
    """Start a loop over spouts s1, s2 …; ended with the test."""
    loops = []

    def started(*spouts: ITridentDataSource, trigger: Any = None, **options: Any) -> SpoutLoop:
        runner = make_runner(log, state, **options)
        streams = {f"s{index}": spout for index, spout in enumerate(spouts, 1)}
        runner.open(LogTerms(streams=dict.fromkeys(streams, "word")))
        loop = SpoutLoop(streams, CountingEngine(state), runner, trigger=trigger)
        loops.append(loop)
        return loop.start()

    yield started
    for loop in loops:
        loop.stop()


def fixed(text: str, size: int = 1, cycle: bool = False) -> FixedBatchSpout:
    return FixedBatchSpout("word", size, *([word] for word in text.split()), cycle=cycle)


def test_available_runs_all_there_is_and_ends(start: Start, state: OpaqueMap) -> None:
    loop = start(fixed("a b a"), trigger="available")
    assert loop.awaitTermination(60)
    assert (loop.isActive, loop.status, loop.exception()) == (False, "stopped", None)
    assert counts(state, "a b") == [2, 1]
    progress = loop.lastProgress
    assert progress is not None
    assert (progress.group, progress.txid) == ("words", 3)
    assert json.loads(progress.json) == progress.to_dict()


def test_a_restart_goes_on_after_the_last_batch(start: Start, state: OpaqueMap, log: Log) -> None:
    assert start(fixed("a b"), trigger="available").awaitTermination(60)
    assert start(fixed("a b a"), trigger="available").awaitTermination(60)
    assert counts(state, "a b") == [2, 1]
    newest = log.newest()
    assert newest is not None
    assert newest.committed == 3


def test_all_available_waits_for_the_end_of_the_data_only(start: Start, state: OpaqueMap) -> None:
    loop = start(fixed("a b a"))
    loop.processAllAvailable()
    assert counts(state, "a b") == [2, 1]
    assert loop.isActive
    loop.processAllAvailable()


def test_streams_of_a_group_share_their_txids(start: Start, state: OpaqueMap) -> None:
    loop = start(fixed("a b"), fixed("a a a"), trigger="available")
    assert loop.awaitTermination(60)
    assert counts(state, "a b") == [4, 1]
    progress = loop.lastProgress
    assert progress is not None
    assert progress.txid == 3


def test_a_fed_batch_is_committed_when_feed_returns(start: Start, state: OpaqueMap) -> None:
    spout = FeederBatchSpout("word")
    loop = start(spout)
    for _ in range(50):
        spout.feed([["a"], ["b"]], 60)
    assert counts(state, "a b") == [50, 50]
    spout.feed([], 60)
    spout.feed([["a"]], 60)
    assert counts(state, "a") == [51]
    progress = loop.lastProgress
    assert progress is not None
    assert progress.txid == 52


def test_a_fed_batch_that_fails_is_retried(start: Start, state: OpaqueMap) -> None:
    spout = FeederBatchSpout("word")
    start(spout)
    with fail_at("after write", times=2):
        spout.feed([["a"]], 60)
    assert counts(state, "a") == [1]


def test_an_idle_loop_sleeps(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    spout, asked = FeederBatchSpout("word"), [0]
    is_ready = spout.isReady

    def counted(txid: int) -> bool:
        asked[0] += 1
        return is_ready(txid)

    monkeypatch.setattr(spout, "isReady", counted)
    loop = start(spout)
    spout.feed([["a"]], 60)
    loop.processAllAvailable()
    before = asked[0]
    assert not loop.awaitTermination(0.1)
    assert asked[0] == before


def test_all_available_counts_what_came_after_the_last_look(state: OpaqueMap, log: Log) -> None:
    class Late(Pulled):
        looks = 0

        def whenReady(self, listener: Callable[[], None]) -> bool:
            self.listener = listener
            return True

        def isReady(self, batchId: int) -> bool:
            self.looks += 1
            if self.looks == 1:
                asker.start()
                while loop._waiters == 0:
                    threading.Event().wait(0.001)
                self.batches.append("a")
                self.listener()
                return False
            return bool(self.batches)

    def ask() -> None:
        loop.processAllAvailable()
        found.append(counts(state, "a"))
        answered.set()

    found: list[list[int | None]] = []
    answered = threading.Event()
    asker = threading.Thread(target=ask)
    runner = make_runner(log, state)
    runner.open(LogTerms(streams={}))
    loop = SpoutLoop({"s1": Late()}, CountingEngine(state), runner)
    with hold_at("before write") as hold:
        loop.start()
        hold.wait_reached()
        assert not answered.wait(0.05)
    assert answered.wait(60)
    loop.stop()
    assert found == [[1]]


@pytest.mark.parametrize("acts_on_nothing", [False, True])
def test_a_batch_without_tuples_begins_where_a_step_acts_on_nothing(
    state: OpaqueMap, log: Log, acts_on_nothing: bool
) -> None:
    runner = make_runner(log, state)
    runner.open(LogTerms(streams={}))
    engine = CountingEngine(state, acts_on_nothing=acts_on_nothing)
    loop = SpoutLoop({"s1": Polled("a", "", "")}, engine, runner, trigger="available")
    assert loop.start().awaitTermination(60)
    record, newest = state.control.read(), log.newest()
    assert record is not None
    assert newest is not None
    assert newest.committed == 3
    assert newest.states == {"count": record.token}
    assert (record.token.txid, record.committed) == ((3, 3) if acts_on_nothing else (1, 1))


def test_stop_lets_the_batch_under_way_finish(start: Start, state: OpaqueMap) -> None:
    with hold_at("after write", txid=2) as hold:
        loop = start(fixed("a", cycle=True))
        hold.wait_reached()
        loop.request_stop()
        assert not loop.awaitTermination(0.05)
        hold.release()
        assert loop.awaitTermination(60)
    assert counts(state, "a") == [2]
    loop.stop()
    assert loop.exception() is None


def test_stop_ends_the_wait_for_a_retry(start: Start, state: OpaqueMap) -> None:
    with fail_at("after write", times=99), hold_at("before write") as hold:
        loop = start(fixed("a"), backoff=600.0)
        hold.wait_reached()
        hold.release()
        loop.stop()
    assert (loop.status, loop.exception()) == ("stopped", None)
    assert counts(state, "a") == [None]


def test_a_failure_ends_the_loop_and_is_raised_to_who_waits(start: Start, state: OpaqueMap) -> None:
    spout = FeederBatchSpout("word")
    with fail_at("before write", times=99):
        loop = start(spout, retries=1)
        with pytest.raises(FeedError):
            spout.feed([["a"]], 60)
        with pytest.raises(BatchFailedError):
            loop.awaitTermination(60)
    with pytest.raises(BatchFailedError):
        loop.processAllAvailable()
    assert isinstance(loop.exception(), BatchFailedError)
    assert loop.status == "failed"
    loop.stop()


def test_the_engine_and_every_spout_are_closed_at_the_end(state: OpaqueMap, log: Log) -> None:
    closed = []

    class Closing(FixedBatchSpout):
        def close(self) -> None:
            closed.append(self)

    engine, runner = CountingEngine(state), make_runner(log, state)
    spouts = {"s1": Closing("word", 1), "s2": Closing("word", 1)}
    runner.open(LogTerms(streams={}))
    assert SpoutLoop(spouts, engine, runner, trigger="available").start().awaitTermination(60)
    assert sorted(map(id, closed)) == sorted(map(id, spouts.values()))
    assert engine.closed


def test_the_trigger_spaces_batches_but_all_available_does_not_wait_for_it(
    start: Start, state: OpaqueMap
) -> None:
    loop = start(fixed("a a a"), trigger=3600)
    loop.processAllAvailable()
    assert counts(state, "a") == [3]
    loop.stop()


class Pulled(IBatchSpout):
    """A spout of the plainest kind: always ready, no notice, no memory."""

    def __init__(self, *batches: str) -> None:
        self.batches = list(batches)
        self.acked: list[int] = []

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        for word in (self.batches.pop(0) if self.batches else "").split():
            collector.emit([word])

    def ack(self, batchId: int) -> None:
        self.acked.append(batchId)

    def getOutputFields(self) -> Fields:
        return Fields("word")


def test_a_spout_that_is_always_ready_is_done_when_it_emits_nothing(
    start: Start, state: OpaqueMap
) -> None:
    spout = Pulled("a b", "a")
    assert start(spout, trigger="available").awaitTermination(60)
    assert counts(state, "a b") == [2, 1]
    assert spout.acked == [1, 2, 3]


def test_a_spout_that_cannot_notify_is_asked_again(start: Start, state: OpaqueMap) -> None:
    spout = Pulled("a")
    loop = start(spout)
    loop.processAllAvailable()
    spout.batches.append("a a")
    loop.processAllAvailable()
    assert counts(state, "a") == [3]


class Polled(Pulled):
    """Knows when it has nothing more, and can't notify."""

    def isReady(self, batchId: int) -> bool:
        return bool(self.batches)


@pytest.mark.parametrize("batches", [["a", "", "a"], ["", "", "", "a a"], ["a a", ""]])
def test_a_polled_spout_is_done_when_it_says_so_and_not_when_a_batch_is_empty(
    start: Start, state: OpaqueMap, batches: list[str]
) -> None:
    spout = Polled(*batches)
    assert start(spout, trigger="available").awaitTermination(60)
    assert counts(state, "a") == [2]
    assert spout.acked == list(range(1, len(batches) + 1))


def test_a_spout_that_notifies_and_is_always_ready_is_done_when_it_emits_nothing(
    start: Start, state: OpaqueMap
) -> None:
    class Notifying(Pulled):
        def whenReady(self, listener: Callable[[], None]) -> bool:
            return True

    assert start(Notifying("a", "a"), trigger="available").awaitTermination(60)
    assert counts(state, "a") == [2]


def test_all_available_waits_while_a_polled_spout_says_that_it_is_ready(
    start: Start, state: OpaqueMap
) -> None:
    spout = Polled("a", "", "", "a")
    loop = start(spout)
    loop.processAllAvailable()
    assert counts(state, "a") == [2]
    spout.batches += ["", "a"]
    loop.processAllAvailable()
    assert counts(state, "a") == [3]


def test_the_group_is_done_when_every_spout_of_it_says_so(start: Start, state: OpaqueMap) -> None:
    spouts = Polled("", "", "", "", "a"), Pulled("b"), fixed("c")
    assert start(*spouts, trigger="available").awaitTermination(60)
    assert counts(state, "a b c") == [1, 1, 1]


def test_a_spout_that_is_ready_and_emits_nothing_is_asked_ever_more_slowly(
    state: OpaqueMap, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = make_runner(log, state)
    runner.open(LogTerms(streams={}))
    loop = SpoutLoop({"s1": Polled(*[""] * 5)}, CountingEngine(state), runner)
    waits: list[float | None] = []

    def waited(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        if threading.current_thread() is loop._thread and not predicate():
            waits.append(timeout)
        return wait_for(predicate, timeout)

    wait_for = loop._changed.wait_for
    monkeypatch.setattr(loop._changed, "wait_for", waited)
    with hold_at("before commit", txid=1) as hold:
        loop.start()
        hold.wait_reached()
        asker = threading.Thread(target=loop.processAllAvailable)
        asker.start()
        while loop._waiters == 0:
            threading.Event().wait(0.001)
        hold.release()
        asker.join(60)
    loop.stop()
    assert waits[:3] == [0.002, 0.004, 0.008]


def test_a_tuple_of_another_width_stops_the_run(start: Start) -> None:
    class Wide(Pulled):
        def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
            collector.emit(["a", "b"])

    with pytest.raises(EmittedValueError, match="spout of s1"):
        start(Wide()).awaitTermination(60)


class Numbers(ITridentSpout, BatchCoordinator, Emitter):
    """Emits ranges of a text's words; metadata says which, whichever way it is kept."""

    kind: ClassVar[SpoutKind] = "opaque"

    def __init__(self, text: str) -> None:
        self.words = text.split()
        self.seen: list[Any] = []
        self.succeeded: list[Any] = []

    def getCoordinator(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Any:
        return self

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Any:
        return self

    def getOutputFields(self) -> Fields:
        return Fields("word")

    def isReady(self, txid: int) -> bool:
        return txid <= len(self.words)

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        start = prevMetadata["end"] if prevMetadata else 0
        return {"start": start, "end": start + 1}

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        self.seen.append((token, metadata))
        if self.kind == "opaque":
            start = metadata["end"] if metadata else 0
            metadata = {"start": start, "end": start + 1}
        for word in self.words[metadata["start"] : metadata["end"]]:
            collector.emit([word])
        return metadata

    def success(self, token: Any) -> None:
        self.succeeded.append(token)


class Planned(Numbers):
    kind = "transactional"


def test_an_opaque_spout_goes_on_from_what_the_last_commit_stored(
    start: Start, state: OpaqueMap, log: Log
) -> None:
    spout = Numbers("a b")
    with fail_at("after write", txid=1):
        assert start(spout, trigger="available").awaitTermination(60)
    later = Numbers("a b c")
    assert start(later, trigger="available").awaitTermination(60)
    assert [metadata and metadata["end"] for _, metadata in spout.seen + later.seen] == [
        *(None, None, 1, 2)
    ]
    assert counts(state, "a b c") == [1, 1, 1]
    newest = log.newest()
    assert newest is not None
    assert newest.number == 1 + 3 + 1 + 1  # begin, two commits and a retry, begin, a commit


def test_a_transactional_spout_is_given_its_plan_at_every_attempt(
    start: Start, state: OpaqueMap, log: Log
) -> None:
    spout = Planned("a b")
    with fail_at("after write", txid=2):
        assert start(spout, trigger="available").awaitTermination(60)
    assert spout.seen == [
        (Token(1, 0), {"start": 0, "end": 1}),
        (Token(2, 0), {"start": 1, "end": 2}),
        (Token(2, 1), {"start": 1, "end": 2}),
    ]
    assert counts(state, "a b") == [1, 1]
    assert spout.succeeded == [Token(1, 0), 1, Token(2, 1), 2]


def test_a_restart_repeats_the_success_of_the_last_batch(start: Start) -> None:
    assert start(Numbers("a"), trigger="available").awaitTermination(60)
    spout = Numbers("a")
    assert start(spout, trigger="available").awaitTermination(60)
    assert spout.succeeded == [Token(1, 0), 1]


def test_of_two_runs_of_one_log_one_stops_and_nothing_is_counted_twice(
    state: OpaqueMap, log: Log
) -> None:
    loops = []
    for _ in range(2):
        shared = OpaqueMap(state.backing)
        runner = make_runner(log, shared)
        runner.open(LogTerms(streams={}))
        spouts = {"s1": fixed("a " * 100)}
        loops.append(SpoutLoop(spouts, CountingEngine(shared), runner, trigger="available"))
    for loop in loops:
        loop.start()
    with pytest.raises((TakenOverError, LogConflictError)):
        loops[0].awaitTermination(60)
    assert loops[1].awaitTermination(60)
    assert counts(state, "a") == [100]
