"""Batches on their way to their commit: who is told what, when, and what is held meanwhile."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from trident import Count, FeederBatchSpout, FixedBatchSpout, ReducerAggregator, TridentTopology
from trident.backends.memory import MemoryMapState
from trident.batch.attempt import Due
from trident.batch.committer import Committer
from trident.batch.pending import PendingBatches
from trident.states.control import Control, ControlRecord
from trident.states.errors import FailedException, LostWritesError
from trident.states.values import Token
from trident.testing import fail_at, hold_at


def test_batches_behind_one_that_fails_are_discarded_until_it_goes_on() -> None:
    done = []

    def commit(batch: int) -> int:
        if batch < 0:
            raise FailedException("no")
        done.append(batch)
        return batch

    committer = Committer(commit, "committer")
    first, failing, behind = [committer.take(batch) for batch in (1, -1, 2)]
    assert first.wait() == 1
    with pytest.raises(FailedException):
        failing.wait()
    assert behind.wait() is None
    committer.go_on()
    assert committer.take(3).wait() == 3
    committer.close()
    assert done == [1, 3]


def test_a_failure_is_noted_before_anyone_learns_of_it() -> None:
    def fail(batch: int) -> int:
        if batch < 0:
            raise FailedException("no")
        return batch

    committer = Committer(fail, "committer")
    for _ in range(300):
        failing = committer.take(-1)
        end = failing.end

        def told(result: Any = None, failure: Any = None, end: Any = end) -> None:
            end(result, failure)
            threading.Event().wait(0.0005)  # whoever waits goes on before this thread does

        failing.end = told  # type: ignore[method-assign]
        with pytest.raises(FailedException):
            failing.wait()
        committer.go_on()
        assert committer.take(1).wait() == 1
    committer.close()


def counted(spout: Any) -> TridentTopology:
    made = TridentTopology()
    words = made.newStream("words", spout).groupBy("word")
    words.persistentAggregate(MemoryMapState.Factory(), Count(), "count")
    return made


def test_an_error_of_the_loop_is_told_though_a_batch_has_failed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_next = PendingBatches.run
    spout = FeederBatchSpout("word string")
    with hold_at("after write", 1) as hold, fail_at("after write", 1, times=100):

        def run_and_break(self: PendingBatches) -> None:
            run_next(self)
            if self.next_txid > 1:  # a batch is being committed
                hold.wait_reached()
                threading.Timer(0.2, hold.release).start()
                raise ZeroDivisionError("the loop is broken")

        monkeypatch.setattr(PendingBatches, "run", run_and_break)
        run = counted(spout).start(max_pending=3)
        threading.Thread(target=_feed, args=[spout], daemon=True).start()
        with pytest.raises(ZeroDivisionError):
            run.awaitTermination(60)


def _feed(spout: FeederBatchSpout) -> None:
    with suppress(Exception):
        spout.feed([["a"]], 5)


class Word(str):
    """A value that can be watched."""


class Number(ReducerAggregator):
    """Counts, of the tuples themselves: they are what is computed."""

    def init(self) -> int:
        return 0

    def reduce(self, curr: int, tuple: Any) -> int:
        return curr + 1


@pytest.mark.parametrize("most", [1, 3])
def test_tuples_of_committed_batches_are_let_go_of_while_the_source_is_idle(most: int) -> None:
    spout = FeederBatchSpout("key string, word")
    made = TridentTopology()
    words = made.newStream("words", spout).groupBy("key")
    words.persistentAggregate(MemoryMapState.Factory(), "word", Number(), "count")
    fed = []
    with made.start(max_pending=most) as run:
        for number in range(3):
            word = Word(f"word {number}")
            fed.append(weakref.ref(word))
            spout.feed([["a", word]], 30)
            del word
        run.processAllAvailable()
        gc.collect()
        assert [ref() for ref in fed] == [None] * 3


@pytest.mark.parametrize("most", [1, 3])
def test_tuples_of_a_failed_attempt_wait_for_no_garbage_collector(most: int) -> None:
    spout = FeederBatchSpout("key string, word")
    made = TridentTopology()
    words = made.newStream("words", spout).groupBy("key")
    words.persistentAggregate(MemoryMapState.Factory(), "word", Number(), "count")
    with made.start(max_pending=most) as run:
        gc.collect()
        gc.disable()
        try:
            with fail_at("after write", 1):
                word = Word("word")
                fed = weakref.ref(word)
                spout.feed([["a", word]], 30)
                del word
            spout.feed([["a", "another"]], 30)
            run.processAllAvailable()
            assert fed() is None
        finally:
            gc.enable()


@pytest.mark.parametrize("most", [1, 3])
def test_what_fails_after_the_commit_stops_the_run(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: Control, record: ControlRecord) -> bool:
        raise LostWritesError(self.name, record.token)

    monkeypatch.setattr(Control, "announce", lost)
    made = counted(FixedBatchSpout("word string", 1, ["a"]))
    with pytest.raises(LostWritesError):
        made.start(max_pending=most, trigger="available").awaitTermination(60)


def test_a_failure_of_a_batch_behind_a_discarded_one_is_not_its_next_attempts() -> None:
    class Runner:
        group, next_txid = "words", 1
        ledger = SimpleNamespace(due=Due(Token(1, 0), {}))
        stopping, failed = threading.Event(), threading.Event()
        finished: ClassVar[list[int]] = []

        def make(self, work: Any, due: Due) -> Any:
            if due.token.txid == 3:
                self.failed.set()
                raise ZeroDivisionError
            following = Due(Token(due.token.txid + 1, 0), {})
            return SimpleNamespace(
                token=due.token, nbytes=0, following=following, discard=lambda: None
            )

        def commit(self, attempt: Any) -> None:
            self.failed.wait(60)
            raise FailedException("no")

        def is_committed(self, token: Token) -> bool:
            return False

        def finish(self, work: Any, token: Token, failure: Exception) -> None:
            self.finished.append(token.txid)
            self.next_txid += 1

    runner: Any = Runner()
    work: Any = None
    pending = PendingBatches(work, runner, 4, lambda progress: None)
    for _ in range(3):
        pending.run()
    pending.close()
    assert runner.finished == [1]


@pytest.mark.parametrize("committed", [False, True])
def test_a_stop_keeps_a_batch_that_fails_and_tells_what_fails_after_its_commit(
    committed: bool,
) -> None:
    class Runner:
        group, ledger = "words", SimpleNamespace(due=None)
        stopping, begun = threading.Event(), threading.Event()

        def make(self, work: Any, due: Any) -> Any:
            return SimpleNamespace(token=Token(1, 0), nbytes=0)

        def commit(self, attempt: Any) -> None:
            self.begun.set()
            self.stopping.wait(60)
            raise FailedException("no")

        def is_committed(self, token: Token) -> bool:
            return committed

    runner: Any = Runner()
    work: Any = None
    pending = PendingBatches(work, runner, 2, print)
    pending.run()
    assert runner.begun.wait(60)
    with pytest.raises(FailedException) if committed else nullcontext():
        pending.close()


def test_a_stop_while_a_batch_waits_for_its_next_attempt_is_no_failure() -> None:
    spout = FeederBatchSpout("word string")
    with fail_at("after write", 1, times=1000):
        run = counted(spout).start(max_pending=3, retries=1000)
        feeding = threading.Thread(target=_feed, args=[spout], daemon=True)
        feeding.start()
        threading.Event().wait(0.3)
        run.stop()
        run.awaitTermination(60)  # raises nothing
