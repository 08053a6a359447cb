"""What a log remembers of batches that were tried again: it is bounded."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.batch.counting import (
    CountingEngine,
    Words,
    counts,
    memory_state,
    open_runner,
    seen_elsewhere,
)
from trident.backends import sqlite
from trident.backends.memory import MemoryMap
from trident.backends.sqlite import SQLiteStore
from trident.batch.adopt import Adopt
from trident.batch.errors import BatchFailedError
from trident.batch.runner import BatchRunner
from trident.batch.states import BatchState, GroupStates
from trident.batch.watchpoints import watching
from trident.log.entry import LogEntry
from trident.log.log import Log, MemoryLog
from trident.states.control import ControlRecord
from trident.states.errors import (
    CopiedLogError,
    CorruptStateError,
    FailedException,
    LostWritesError,
    RewoundStateError,
)
from trident.states.maps.factory import MapStateFactory, OpaqueMap
from trident.states.maps.reading import read_committed
from trident.states.maps.sweeping import can_sweep
from trident.states.schema import ValueSchema
from trident.states.values import Token
from trident.testing import fail_at

BATCHES = 20_000
FEW = pytest.mark.usefixtures("few")


class Failing(Words):
    """A batch whose first attempt fails when it has written."""

    def write(self, record: ControlRecord, computed: Any) -> Any:
        outcome = super().write(record, computed)
        if not record.token.attempt:
            raise FailedException("no")
        return outcome


def size_of(log: Log, state: OpaqueMap) -> int:
    """How large the entry and the control record are, the larger of both."""
    newest, record = log.newest(), state.backing.getControl()
    assert newest is not None
    assert record is not None
    return max(len(newest.encode()), len(record))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_what_is_remembered_stays_small_however_many_batches_are_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("ERROR", "trident")
    log, state = MemoryLog("log"), memory_state()
    runner, engine = open_runner(log, state), CountingEngine(state)
    most = 0
    for txid in range(1, BATCHES + 1):
        kind = Failing if txid % 3 == 0 else Words
        runner.run(kind(engine, f"all w{txid % 50}"))
        if txid % 50 == 0:
            most = max(most, size_of(log, state))
    assert most < 4096
    assert counts(state, "all w7") == [BATCHES, BATCHES // 50]


def test_an_attempt_that_fails_while_it_is_computed_keeps_its_number() -> None:
    class Computing(Words):
        failed = False

        def compute(self, token: Token) -> Any:
            if not self.failed:
                self.failed = True
                raise FailedException("no")
            return super().compute(token)

    log, state = MemoryLog("log"), memory_state()
    progress = open_runner(log, state).run(Computing(CountingEngine(state), "a"))
    newest = log.newest()
    assert newest is not None
    assert (progress.attempts, newest.begun, dict(newest.retried)) == (2, Token(2, 0), {})
    assert counts(state, "a") == [1]


def go_on_elsewhere(
    runner: BatchRunner, state: OpaqueMap, in_flight: Literal["committed", "burn"] = "committed"
) -> MemoryLog:
    """Run two batches of one state by a new log, which has adopted it."""
    log = MemoryLog("new")
    adopting = open_runner(
        log, state, adopt=Adopt.from_states(runner.ledger.entry.log_id, in_flight=in_flight)
    )
    for word in "d", "e":
        adopting.run(Words(CountingEngine(state), word))
    return log


@pytest.fixture(params=["memory", "sqlite"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "memory":
        return memory_state()
    return sqlite.opaque(tmp_path / "counts.db").makeState()


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep as soon as one batch is remembered."""
    monkeypatch.setattr("trident.batch.runner.MOST_RETRIED", 1)


def retried_of(log: Log) -> dict[int, int]:
    newest = log.newest()
    assert newest is not None
    return dict(newest.retried)


def leave_behind(log: Log, state: Any) -> CountingEngine:
    """Count a and b; a failed attempt of batch 2 has counted c and b, which has counted a."""
    engine = CountingEngine(state)
    runner = open_runner(log, state)
    runner.run(Words(engine, "a b"))
    with fail_at("after write", 2):
        runner.run(Words(engine, "b c", "a"))
    assert retried_of(log) == {2: 1}
    assert counts(state, "a b c") == [2, 1, None]
    return engine


@FEW
def test_what_failed_attempts_left_is_read_right_when_they_are_forgotten(state: Any) -> None:
    log = MemoryLog("log")
    engine = leave_behind(log, state)
    open_runner(log, state).run(Words(engine, "d"))
    assert retried_of(log) == {3: 1}  # a new run takes a new attempt
    open_runner(log, state).run(Words(engine, "d"))
    assert counts(state, "a b c d") == [2, 1, None, 2]
    runner = open_runner(log, state)
    runner.run(Words(engine, "a b c d"))
    runner.run(Words(engine, ""))
    assert counts(state, "a b c d") == [3, 2, 1, 3]


@pytest.mark.parametrize("point", ["after write", "before ready", "before commit"])
@FEW
def test_a_sweep_that_does_not_commit_changes_nothing(state: Any, point: str) -> None:
    log = MemoryLog("log")
    engine = leave_behind(log, state)
    with fail_at(point, 3):
        open_runner(log, state, retries=1).run(Words(engine, "d", "e"))
    assert counts(state, "a b c d e") == [2, 1, None, None, 1]


@FEW
def test_a_reader_sees_the_same_at_every_point_of_a_sweep(state: Any) -> None:
    log = MemoryLog("log")
    engine = leave_behind(log, state)
    seen = set()
    other = OpaqueMap(state.backing)
    with watching(lambda point, token: seen.add(tuple(counts(other, "a b c")))):
        open_runner(log, state).run(Words(engine, "d"))
    assert seen == {(2, 1, None)}


@FEW
def test_a_reader_that_was_slow_starts_again_after_a_sweep() -> None:
    log, state = MemoryLog("log"), memory_state()
    engine = CountingEngine(state)
    runner = open_runner(log, state)
    runner.run(Words(engine, "a"))
    answers = []

    def ask(views: Any) -> Any:
        if not answers:  # while the reader is still at batch 1
            answers.append(None)
            with fail_at("after write", 2):
                runner.run(Words(engine, "a"))
            runner.run(Words(engine, "b"))
        return views[0].multiGet([("a",), ("b",)])

    assert read_committed([("", seen_elsewhere(state))], ask) == [2, 1]


@FEW
def test_a_late_writer_is_refused_after_a_sweep() -> None:
    log, state = MemoryLog("log"), memory_state()
    engine = leave_behind(log, state)
    late = seen_elsewhere(state)
    late.beginCommit(ControlRecord(open_runner(log, state).ledger.entry.log_id, Token(2, 0), 1))
    late.multiPut([("z",)], [100])
    open_runner(log, state).run(Words(engine, "d"))
    with pytest.raises(Exception, match="overtaken|later attempt|was overtaken"):
        late.commit(Token(2, 0))
    assert counts(state, "a b c z") == [2, 1, None, None]


@FEW
def test_nothing_is_forgotten_while_a_state_of_the_log_is_not_swept() -> None:
    log, kept, gone = MemoryLog("log"), memory_state(), memory_state()
    runner = open_runner(log, kept, gone)
    with fail_at("after write", 1):
        runner.run(Words(CountingEngine(kept, gone), "a", "b"))
    engine = CountingEngine(kept)
    for _ in range(2):
        open_runner(log, kept).run(Words(engine, "a"))  # the topology has lost a state
    assert 1 in retried_of(log)
    open_runner(log, kept, gone).run(Words(CountingEngine(kept, gone), "b"))
    assert counts(gone, "a b") == [None, 2]


@FEW
def test_a_state_that_comes_back_after_an_adoption_and_a_sweep_is_read_right() -> None:
    old, kept, away = MemoryLog("old"), memory_state(), memory_state()
    runner = open_runner(old, kept, away)
    runner.run(Words(CountingEngine(kept, away), "a b"))
    with fail_at("after write", 2):
        runner.run(Words(CountingEngine(kept, away), "b c", "a"))
    log = go_on_elsewhere(runner, kept)
    assert retried_of(log) == {}
    open_runner(log, kept, away).run(Words(CountingEngine(kept, away), "b"))
    assert counts(kept, "a b c d") == [2, 2, None, 1]
    assert counts(away, "a b c d") == [2, 2, None, None]


@FEW
def test_a_state_that_went_on_behind_what_was_adopted_does_not_come_back() -> None:
    old, kept, away = MemoryLog("old"), memory_state(), memory_state()
    runner = open_runner(old, kept, away)
    runner.run(Words(CountingEngine(kept, away), "a"))
    record = kept.backing.getControl()
    with fail_at("after write", 2):
        runner.run(Words(CountingEngine(kept, away), "a"))
    kept.backing.putControl(record, kept.backing.getControl())  # as a backup restores it
    log = go_on_elsewhere(runner, kept)
    with pytest.raises(CopiedLogError):
        open_runner(log, kept, away)


def test_other_states_may_lack_what_is_recalled() -> None:
    state = memory_state()
    remembers = ControlRecord("old", Token(5, 0), 5, {2: 1, 3: 1})
    state.backing.putControl(remembers.encode(), None)
    states = GroupStates({"count": BatchState(state)})
    retried = {2: 1, 6: 1}
    entry = LogEntry(
        1, "", "new", Token(8, 0), 7, base=5, adopted=("old",), retried=retried, swept=1
    )
    recalled = states.recall(entry)
    assert (recalled.retried, recalled.swept) == ({2: 1, 3: 1, 6: 1}, 3)
    known = replace(entry, states={"count": Token(5, 0)})
    assert states.recall(known) == known


def test_a_loss_of_a_renamed_state_is_accepted_as_the_error_says_it() -> None:
    state = memory_state()
    state.backing.putControl(ControlRecord("log", Token(5, 0), 4).encode(), None)
    states = GroupStates({"count": BatchState(state)})
    entry = LogEntry(1, "", "log", Token(6, 1), 5, states={"older": Token(5, 0)})
    with pytest.raises(LostWritesError, match=re.escape("accept_loss={'count': 5}")):
        states.catch_up(entry)
    accepted = states.accept(entry, {"count": 5})
    assert accepted.accepted == {"count": Token(5, 0)}
    states.catch_up(accepted)


@FEW
def test_a_failed_attempt_of_a_state_that_was_away_does_not_count_after_a_sweep() -> None:
    old, kept, away = MemoryLog("old"), memory_state(), memory_state()
    with fail_at("after write", 1), pytest.raises(BatchFailedError):
        open_runner(old, kept, away, retries=0).run(Words(CountingEngine(kept, away), "a"))
    runner = open_runner(old, kept)
    runner.run(Words(CountingEngine(kept), "b"))
    log = go_on_elsewhere(runner, kept)
    with pytest.raises(CopiedLogError):
        open_runner(log, kept, away)
    assert counts(away, "a") == [None]


@FEW
def test_a_state_that_holds_a_burnt_batch_does_not_come_back_after_a_sweep() -> None:
    old, kept, away = MemoryLog("old"), memory_state(), memory_state()
    runner = open_runner(old, kept, away)
    runner.run(Words(CountingEngine(kept, away), "a"))
    with fail_at("before write", 2):
        runner.run(Words(CountingEngine(kept, away), "a"))
    found = kept.control.read()
    assert found is not None
    ready = replace(found, committed=1, retried={})  # whose announcement was missed
    kept.backing.putControl(ready.encode(), found.encode())
    log = go_on_elsewhere(runner, kept, in_flight="burn")
    assert counts(kept, "a") == [1]
    assert counts(away, "a") == [2]
    with pytest.raises(CopiedLogError):
        open_runner(log, kept, away)


@FEW
def test_an_accepted_loss_of_a_sweep_brings_back_what_was_forgotten() -> None:
    log, state = MemoryLog("log"), memory_state()
    engine = leave_behind(log, state)
    backing = state.backing
    assert isinstance(backing, MemoryMap)
    entries, record = dict(backing.entries()), backing.getControl()
    runner = open_runner(log, state)
    runner.run(Words(engine, "d"))
    runner.run(Words(engine, "e"))
    assert 2 not in retried_of(log)
    lost = memory_state()
    lost.backing.multiPut(list(entries), list(entries.values()))
    lost.backing.putControl(record, None)
    with pytest.raises(RewoundStateError):
        open_runner(log, lost)
    open_runner(log, lost, accept_loss={"count": 4}).run(Words(CountingEngine(lost), "d"))
    assert counts(lost, "a b c d") == [2, 1, None, 1]


@FEW
def test_an_accepted_loss_leaves_states_alone_that_have_begun_since_the_sweep() -> None:
    log, state, other = MemoryLog("log"), memory_state(), memory_state()
    engine = CountingEngine(state, other)
    runner = open_runner(log, state, other)
    runner.run(Words(engine, "a b"))
    with fail_at("after write", 2):
        runner.run(Words(engine, "b c", "a"))
    entries, record = dict(state.backing.entries()), state.backing.getControl()
    for word in "d", "e":
        runner.run(Words(engine, word))
    assert 2 not in retried_of(log)
    with fail_at("before write", 5), pytest.raises(BatchFailedError):
        open_runner(log, state, other, retries=0).run(Words(engine, "f"))
    lost = memory_state()
    lost.backing.multiPut(list(entries), list(entries.values()))
    lost.backing.putControl(record, None)
    runner = open_runner(log, lost, other, accept_loss={"count": 4})
    assert retried_of(log)[2] == 1
    runner.run(Words(CountingEngine(lost, other), "d"))
    assert counts(lost, "a b c d") == [2, 1, None, 1]
    assert counts(other, "a b c d e") == [2, 1, None, 2, 1]


@FEW
def test_an_entry_that_cannot_be_read_stops_no_batch_that_does_not_need_it(tmp_path: Path) -> None:
    state = sqlite.opaque(tmp_path / "counts.db").makeState()
    log = MemoryLog("log")
    engine = leave_behind(log, state)
    broken = OpaqueMap(state.backing)
    broken.tables.writing.entries = broken.tables.writing.pages = unreadable  # type: ignore[method-assign]
    runner = open_runner(log, broken)
    runner.run(Words(CountingEngine(broken), "d"))
    assert 2 in retried_of(log)
    assert counts(state, "a b c d") == [2, 1, None, 1]
    open_runner(log, state).run(Words(engine, "e"))
    assert 2 not in retried_of(log)


def refuse(value: Any, version: int) -> Any:
    raise KeyError("odd")


@FEW
@pytest.mark.parametrize("upgrade", [refuse, lambda value, version: object()])
def test_a_value_that_has_no_new_form_stops_no_batch_that_does_not_need_it(
    tmp_path: Path, upgrade: Any
) -> None:
    store, log = SQLiteStore(str(tmp_path / "counts.db"), "counts"), MemoryLog("log")
    with closing(MapStateFactory(store).makeMap()) as state:
        leave_behind(log, state)
    with closing(MapStateFactory(store, schema=ValueSchema(2, upgrade)).makeMap()) as newer:
        open_runner(log, newer).run(Words(CountingEngine(newer), "d"))
        assert 2 in retried_of(log)
        assert counts(newer, "d") == [1]


def unreadable() -> Any:
    raise CorruptStateError("an entry", "not one", "Remove it.")


def test_what_may_be_somebody_elses_is_not_swept() -> None:
    class Shared(MemoryMap):
        shares = True

    assert can_sweep(memory_state())
    assert not can_sweep(OpaqueMap(Shared("shared")))
