"""A state that a first try has begun and never made ready is begun by another log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.batch.counting import CountingEngine, Words, counts, open_runner
from tests.states.abilities import EntryMap, FencedMap, PlainMap, TroubledServer, VersionedMap
from trident.batch.errors import BatchFailedError
from trident.batch.watchpoints import POINTS, watching
from trident.errors import CopiedLogError, FailedException, OtherLogError, StaleBatchError
from trident.log.log import MemoryLog
from trident.states.backing_map import IBackingMap
from trident.states.control import ControlRecord
from trident.states.control_check import Claim, check_record
from trident.states.maps.factory import NonTransactionalMap, OpaqueMap, TransactionalMap
from trident.states.maps.stored_map import StoredMap
from trident.states.values import StateType, Token

STORES = [FencedMap, EntryMap, VersionedMap, PlainMap]


def fail(record: ControlRecord) -> None:
    raise FailedException("a first try")


def leave_begun(state: StoredMap, words: str = "a b") -> None:
    """A run without a checkpoint writes its first batch in two attempts, and ends."""
    runner = open_runner(MemoryLog("first try"), state, retries=1)
    with pytest.raises(BatchFailedError):
        runner.run(Words(CountingEngine(state), words, interrupt=fail))


@pytest.mark.parametrize("store", STORES)
def test_nothing_that_the_first_try_left_is_believed(store: Callable[..., IBackingMap]) -> None:
    state = OpaqueMap(store(TroubledServer()))
    leave_begun(state)
    log = MemoryLog("second try")
    runner = open_runner(log, state)
    assert counts(state, "a b c") == [None, None, None]
    runner.run(Words(CountingEngine(state), "b c"))
    assert counts(state, "a b c") == [None, 1, 1]
    open_runner(log, state).run(Words(CountingEngine(state), "a b c"))
    assert counts(state, "a b c") == [1, 2, 2]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("point", POINTS)
def test_of_two_first_tries_one_counts(store: Callable[..., IBackingMap], point: str) -> None:
    """The second starts, and runs its first batch, when the first has come to some point."""
    server = TroubledServer()
    first, second = OpaqueMap(store(server)), OpaqueMap(store(server))
    outcomes: list[str] = []

    def start_another(reached: str, token: Token) -> None:
        if reached != point or outcomes:
            return
        outcomes.append("")
        try:
            open_runner(MemoryLog("second"), second).run(Words(CountingEngine(second), "b c"))
            outcomes.append("second")
        except OtherLogError:
            pass

    runner = open_runner(MemoryLog("first"), first)
    with watching(start_another):
        try:
            runner.run(Words(CountingEngine(first), "a b"))
            outcomes.append("first")
        except (OtherLogError, StaleBatchError, CopiedLogError):
            pass
    expected = {"first": [1, 1, None], "second": [None, 1, 1]}
    [counted] = outcomes[1:]
    assert counts(second, "a b c") == expected[counted]


def test_a_state_that_was_made_ready_stays_its_logs() -> None:
    state = OpaqueMap(FencedMap(TroubledServer()))
    runner = open_runner(MemoryLog("first"), state)
    dies = watching(lambda point, token: 1 // (point != "after ready"))
    with dies, pytest.raises(ZeroDivisionError):
        runner.run(Words(CountingEngine(state), "a"))
    with pytest.raises(OtherLogError):
        open_runner(MemoryLog("second"), state)


@pytest.mark.parametrize("kind", [TransactionalMap, NonTransactionalMap])
def test_what_cannot_be_undone_stays_its_logs(kind: Callable[..., StoredMap]) -> None:
    state = kind(FencedMap(TroubledServer()))
    leave_begun(state)
    with pytest.raises(OtherLogError, match="state drop URL"):
        open_runner(MemoryLog("second"), state)


def test_states_that_two_first_tries_have_begun_are_begun_behind_both() -> None:
    first, second = OpaqueMap(FencedMap(TroubledServer())), OpaqueMap(FencedMap(TroubledServer()))
    leave_begun(first)
    leave_begun(second)
    leave_begun(second)
    runner = open_runner(MemoryLog("both"), first, second)
    assert runner.ledger.due.token == Token(1, 4)
    runner.run(Words(CountingEngine(first, second), "c"))
    assert counts(first, "a b c") == counts(second, "a b c") == [None, None, 1]


def test_a_run_that_is_started_again_begins_behind_what_another_has_begun_meanwhile() -> None:
    state, log = OpaqueMap(FencedMap(TroubledServer())), MemoryLog("own")
    open_runner(log, state)
    leave_begun(state)
    leave_begun(state)
    leave_begun(state)
    runner = open_runner(log, state)
    assert runner.ledger.due.token == Token(1, 6)
    runner.run(Words(CountingEngine(state), "c"))
    assert counts(state, "a b c") == [None, None, 1]


def test_a_log_whose_first_batch_was_empty_does_not_take_what_its_attempts_are_not_behind() -> None:
    """What another log's attempt 0 wrote would pass for the committed attempt of that batch."""
    begun = ControlRecord("other", Token(1, 0))
    claim = Claim(kind=StateType.OPAQUE)
    check_record(begun, ControlRecord("log", Token(2, 0), 1, {1: 1}), claim, "count")
    for committed in ControlRecord("log", Token(2, 0), 1), ControlRecord("log", Token(1, 0)):
        with pytest.raises(OtherLogError):
            check_record(begun, committed, claim, "count")


@pytest.mark.parametrize("kind", [None, StateType.TRANSACTIONAL, StateType.NON_TRANSACTIONAL])
def test_a_state_that_is_not_opaque_is_not_begun_either(kind: StateType | None) -> None:
    begun, own = ControlRecord("other", Token(1, 0)), ControlRecord("log", Token(1, 1))
    with pytest.raises(OtherLogError):
        check_record(begun, own, Claim(kind=kind), "count")
