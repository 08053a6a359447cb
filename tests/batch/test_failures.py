"""Failed batches: tried again, then kept or given up."""

from __future__ import annotations

import logging
import pickle
import threading
from typing import Any

import pytest

from tests.batch.counting import (
    CountingEngine,
    Words,
    counts,
    make_runner,
    memory_state,
    open_runner,
)
from trident.backends.memory import MemoryMap
from trident.batch.errors import BatchFailedError, BatchInterruptedError, FailurePolicyError
from trident.batch.failures import FailurePolicy
from trident.batch.runner import BatchRunner
from trident.batch.states import BatchState
from trident.batch.watchpoints import POINTS
from trident.log.log import MemoryLog
from trident.states.control import ControlRecord
from trident.states.errors import FailedException
from trident.states.maps.factory import NonTransactionalMap, OpaqueMap, TransactionalMap
from trident.states.state import Batch, State
from trident.states.values import Token
from trident.testing import fail_at


@pytest.fixture
def state() -> OpaqueMap:
    return memory_state()


@pytest.fixture
def engine(state: OpaqueMap) -> CountingEngine:
    return CountingEngine(state)


class Sink(State):
    """Something that is no map."""

    def beginCommit(self, batch: Batch) -> None: ...

    def commit(self, batch: Batch) -> None: ...


def fail(record: ControlRecord) -> None:
    raise FailedException("the geo service timed out")


def test_a_failed_batch_is_its_next_attempt_whatever_it_then_holds(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    log = MemoryLog("log")
    runner = open_runner(log, state)
    runner.run(Words(engine, "a"))
    work = Words(engine, "a b", "c", "d a")
    with fail_at("after write", times=2):
        progress = runner.run(work)
    assert progress.attempts == 3
    assert work.called("run") == [("run", Token(2, attempt)) for attempt in range(3)]
    assert counts(state, "a b c d") == [2, None, None, 1]
    newest = log.newest()
    assert newest is not None
    assert newest.retried == {2: 2}


@pytest.mark.parametrize("point", POINTS[:7])
def test_a_failure_anywhere_before_the_commit_is_retried(
    state: OpaqueMap, engine: CountingEngine, point: str
) -> None:
    with fail_at(point):
        progress = open_runner(MemoryLog("log"), state).run(Words(engine, "a"))
    assert progress.attempts == 2
    assert counts(state, "a") == [1]


def test_a_retry_that_finds_nothing_commits_nothing_of_the_failed_attempt(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    log = MemoryLog("log")
    with fail_at("after write"):
        open_runner(log, state).run(Words(engine, "a", ""))
    open_runner(log, state).run(Words(engine, "b"))
    assert counts(state, "a b") == [None, 1]


def test_after_the_last_retry_the_batch_is_kept(state: OpaqueMap, engine: CountingEngine) -> None:
    log = MemoryLog("log")
    with pytest.raises(BatchFailedError) as raised:
        open_runner(log, state, retries=2).run(Words(engine, "a", interrupt=fail))
    text = str(raised.value)
    assert "batch 1 of words failed 3 times, last with: the geo service timed out" in text
    assert str(pickle.loads(pickle.dumps(raised.value))) == text
    assert isinstance(raised.value.__cause__, FailedException)
    newest = log.newest()
    assert newest is not None
    assert (newest.committed, newest.begun) == (0, Token(1, 2))
    open_runner(log, state).run(Words(engine, "b"))
    assert counts(state, "a b") == [None, 1]


def test_without_retries_the_first_failure_is_the_last(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    with pytest.raises(BatchFailedError, match="failed 1 times"):
        open_runner(MemoryLog("log"), state, retries=0).run(Words(engine, "a", interrupt=fail))


def test_any_other_exception_stops_at_once(state: OpaqueMap, engine: CountingEngine) -> None:
    work = Words(engine, "a", interrupt=lambda record: [][1])
    with pytest.raises(IndexError):
        open_runner(MemoryLog("log"), state).run(work)
    assert work.called("run") == [("run", Token(1, 0))]


def test_stopping_ends_the_wait_for_a_retry(state: OpaqueMap, engine: CountingEngine) -> None:
    stopping = threading.Event()
    runner = open_runner(MemoryLog("log"), state, backoff=600.0, stopping=stopping)

    def fail_and_stop(record: ControlRecord) -> None:
        stopping.set()
        fail(record)

    with pytest.raises(BatchInterruptedError, match="kept"):
        runner.run(Words(engine, "a", interrupt=fail_and_stop))


def test_a_dead_letter_is_an_attempt_that_updates_nothing(
    state: OpaqueMap, engine: CountingEngine, caplog: pytest.LogCaptureFixture
) -> None:
    log = MemoryLog("log")
    runner = open_runner(log, state, retries=1, on_failure="dead-letter")
    runner.run(Words(engine, "a"))
    work = Words(engine, "a b", interrupt=fail)
    work.emitted_metadata = {"words": {"offset": 5}}
    with caplog.at_level(logging.ERROR, "trident"):
        progress = runner.run(work)
    assert progress.dead_letter == "the geo service timed out"
    assert (progress.attempts, progress.tuples) == (3, 0)
    assert "batch 2 of words is dead-lettered after 2 attempts: the geo" in caplog.text
    assert work.called("run", "committed") == [
        ("run", Token(2, 0)),
        ("run", Token(2, 1)),
        ("committed", Token(2, 2)),
    ]
    newest = log.newest()
    assert newest is not None
    assert newest.metadata == {"words": {"offset": 5}}
    runner.run(Words(engine, "b"))
    assert counts(state, "a b") == [1, 1]


def test_a_batch_that_cannot_even_be_taken_is_no_dead_letter(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    class Unreachable(Words):
        def emit(self, token: Token, metadata: Any, planned: Any) -> bool:
            raise FailedException("no answer")

    runner = open_runner(MemoryLog("log"), state, retries=1, on_failure="dead-letter")
    with pytest.raises(BatchFailedError, match="no answer"):
        runner.run(Unreachable(engine, "a"))


@pytest.mark.parametrize("kind", [TransactionalMap, NonTransactionalMap])
def test_dead_letters_are_refused_where_partial_writes_would_stay(kind: Any) -> None:
    state = kind(MemoryMap("refused"))
    with pytest.raises(FailurePolicyError, match="count is no opaque map"):
        make_runner(MemoryLog("log"), state, on_failure="dead-letter")


def test_dead_letters_are_refused_for_a_state_that_is_no_map() -> None:
    states = {"sink": BatchState(Sink())}
    policy = FailurePolicy(on_failure="dead-letter")
    with pytest.raises(FailurePolicyError, match="sink is no opaque map"):
        BatchRunner(MemoryLog("log"), states, group="words", policy=policy)


def test_a_transactional_map_counts_an_identical_replay_once() -> None:
    state = TransactionalMap(MemoryMap("transactional-replay"))
    log = MemoryLog("log")
    with fail_at("after write"):
        open_runner(log, state).run(Words(CountingEngine(state), "a a b"))
    assert counts(state, "a b") == [2, 1]


def test_retries_without_end_pause_without_end() -> None:
    patient = FailurePolicy(retries=10**6)
    assert patient.pause(10**6) == patient.pause(20) == 10.0
