"""One batch after the other: place, begin, run, ready, commit, announce."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.batch.counting import (
    STREAMS,
    CountingEngine,
    Words,
    counts,
    make_runner,
    memory_state,
    open_runner,
    seen_elsewhere,
)
from trident.backends.memory import MemoryMap
from trident.batch.opening import LogTerms
from trident.batch.watchpoints import POINTS, watching
from trident.log.errors import (
    LogConflictError,
    LogMismatchError,
    PlacementError,
    ReplayError,
    TakenOverError,
)
from trident.log.file_log import FileLog
from trident.log.log import Log, MemoryLog
from trident.states.control import ControlRecord
from trident.states.errors import (
    LostStateError,
    LostWritesError,
    OtherLogError,
    RewoundStateError,
    StaleBatchError,
    StateUnavailableError,
)
from trident.states.maps.factory import OpaqueMap
from trident.states.values import Token


@pytest.fixture
def log() -> Log:
    return MemoryLog("log")


@pytest.fixture
def state() -> OpaqueMap:
    return memory_state()


@pytest.fixture
def engine(state: OpaqueMap) -> CountingEngine:
    return CountingEngine(state)


def newest(log: Log) -> Any:
    entry = log.newest()
    assert entry is not None
    return entry


def test_batches_are_numbered_from_1_and_counted_once(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    runner = open_runner(log, state)
    assert runner.ledger.last is None
    progress = [runner.run(Words(engine, text)) for text in ("a b a", "b")]
    assert [(each.txid, each.attempts, each.tuples) for each in progress] == [(1, 1, 3), (2, 1, 1)]
    assert counts(state, "a b c") == [2, 2, None]
    assert runner.ledger.last == Token(2, 0)
    assert set(progress[0].seconds) == {
        *("plan", "emit", "begin", "run", "ready", "commit", "announce", "acknowledge")
    }


def test_the_points_are_passed_in_order(log: Log, state: OpaqueMap, engine: CountingEngine) -> None:
    passed: list[tuple[str, Token]] = []
    with watching(lambda point, token: passed.append((point, token))):
        open_runner(log, state).run(Words(engine, "a"))
    assert passed == [(point, Token(1, 0)) for point in POINTS]


def test_a_batch_is_one_entry_and_two_with_a_plan(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    runner = open_runner(log, state)
    assert newest(log).number == 1
    runner.run(Words(engine, "a"))
    assert newest(log).number == 2
    runner.run(Words(engine, "a", plans={"words": 7}))
    assert newest(log).number == 4
    assert newest(log).metadata == {"words": 7}
    assert newest(log).planned is None


def test_readers_see_a_batch_only_once_it_is_announced(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    runner = open_runner(log, state)
    seen = {}
    with watching(lambda point, token: seen.update({point: counts(state, "a")})):
        runner.run(Words(engine, "a"))
    assert seen["before announce"] == [None]
    assert seen["after announce"] == [1]


def test_an_empty_batch_commits_and_touches_no_state(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    runner = open_runner(log, state)
    work = Words(engine, "")
    progress = runner.run(work)
    assert (progress.txid, progress.tuples) == (1, 0)
    assert work.called("run", "committed") == [("committed", Token(1, 0))]
    waiting = state.control.read()
    assert waiting is not None
    assert waiting.is_unused
    assert newest(log).states == {}
    runner.run(Words(engine, "a"))
    assert newest(log).states == {"count": Token(2, 0)}
    assert counts(state, "a") == [1]


def test_every_state_of_the_group_begins_and_learns_the_commit(log: Log) -> None:
    states = memory_state(), memory_state()
    runner = open_runner(log, *states)
    runner.run(Words(CountingEngine(states[0]), "a"))
    for state in states:
        record = state.control.read()
        assert record is not None
        assert (record.token, record.committed) == (Token(1, 0), 1)


# Place


@pytest.mark.parametrize("txid", [-1, 0, 1, 4, 99])
def test_a_batch_out_of_place_is_an_error_that_names_both_logs(
    log: Log, state: OpaqueMap, engine: CountingEngine, txid: int
) -> None:
    runner = open_runner(log, state, source="Spark's offsets in /c")
    for _ in range(2):
        runner.run(Words(engine, "a"))
    with pytest.raises(PlacementError, match=f"log log .* batch 2.*offsets in /c .* {txid};"):
        runner.run(Words(engine, "a"), txid)
    assert counts(state, "a") == [2]


def test_batch_0_is_no_replay_of_an_empty_log(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    with pytest.raises(PlacementError):
        open_runner(log, state).run(Words(engine, "a"), 0)


def test_a_replay_is_skipped_but_acknowledged_and_announced(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(log, state).run(Words(engine, "a"), 1, digest="d", query_id="q")
    work = Words(engine, "a b")
    progress = open_runner(log, state).run(work, 1, digest="d", query_id="q")
    assert progress.attempts == 0
    assert work.calls == [("committed", Token(1, 0))]
    assert counts(state, "a b") == [1, None]


def test_a_replay_announces_what_the_states_have_not_heard(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    begun = []
    with watching(lambda point, token: begun.append(state.backing.getControl())):
        open_runner(log, state).run(Words(engine, "a"), 1)
    runner = open_runner(log, state)
    unannounced = begun[-2]
    assert unannounced is not None
    state.backing.putControl(unannounced, state.backing.getControl())
    assert counts(state, "a") == [None]
    runner.run(Words(engine, "a"), 1)
    assert counts(state, "a") == [1]


def test_a_replay_with_another_digest_is_an_error(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(log, state).run(Words(engine, "a"), 1, digest="d1")
    with pytest.raises(ReplayError, match="d1.*d2"):
        open_runner(log, state).run(Words(engine, "a"), 1, digest="d2")


def test_a_foreign_streaming_query_is_an_error(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(log, state).run(Words(engine, "a"), 1, query_id="q1")
    with pytest.raises(LogMismatchError, match="q1.*q2"):
        open_runner(log, state).run(Words(engine, "a"), 2, query_id="q2")


@pytest.mark.parametrize(
    "changed",
    [
        {"streams": {"other": "word string"}},
        {"streams": {"words": "word long"}},
        {"clock": "dataframe"},
    ],
)
def test_a_topology_of_another_shape_is_an_error(
    log: Log, state: OpaqueMap, changed: dict[str, Any]
) -> None:
    open_runner(log, state)
    with pytest.raises(LogMismatchError):
        make_runner(log, state).open(LogTerms(**{"streams": STREAMS, **changed}))


# Restart


def test_a_restart_begins_the_next_attempt(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(log, state).run(Words(engine, "a"))
    for _ in range(2):
        runner = open_runner(log, state)
    work = Words(engine, "a")
    runner.run(work)
    assert work.called("run") == [("run", Token(2, 2))]
    assert newest(log).retried == {2: 2}
    assert newest(log).begun == Token(3, 0)
    assert counts(state, "a") == [2]


def test_a_crash_before_the_announcement_is_made_up_for_at_the_start(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    class Crash(Exception):
        pass

    def crash(point: str, token: Token) -> None:
        if point == "after commit":
            raise Crash

    with watching(crash), pytest.raises(Crash):
        open_runner(log, state).run(Words(engine, "a"))
    assert counts(state, "a") == [None]
    open_runner(log, state)
    assert counts(state, "a") == [1]


def test_other_content_after_a_crash_leaves_nothing_of_the_first(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    def crash(record: ControlRecord) -> None:
        raise ZeroDivisionError

    runner = open_runner(log, state)
    runner.run(Words(engine, "a"))
    with pytest.raises(ZeroDivisionError):
        runner.run(Words(engine, "a b b", interrupt=crash))
    with pytest.raises(RuntimeError, match="this run has failed"):
        runner.run(Words(engine, "a"))
    open_runner(log, state).run(Words(engine, "c"))
    assert counts(state, "a b c") == [1, None, 1]


def test_a_planned_batch_is_replayed_from_its_plan(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    def crash(record: ControlRecord) -> None:
        raise ZeroDivisionError

    runner = open_runner(log, state)
    runner.run(Words(engine, "a", plans={"words": [1]}))
    with pytest.raises(ZeroDivisionError):
        runner.run(Words(engine, "a", plans={"words": [2]}, interrupt=crash))
    work = Words(engine, "a", plans={"words": [99]})
    open_runner(log, state).run(work)
    assert work.calls[0] == ("emit", Token(2, 1), {"words": [2]})
    assert newest(log).metadata == {"words": [2]}


def test_emitted_metadata_travels_with_the_commit(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    work = Words(engine, "a")
    work.emitted_metadata = {"words": {"offset": 5}}
    open_runner(log, state).run(work)
    following = Words(engine, "a")
    open_runner(log, state).run(following)
    assert following.calls[1] == ("emit", Token(2, 1), {"words": {"offset": 5}})


# States that are not what the log knows


def test_new_logs_refuse_old_state_before_they_write(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(log, state).run(Words(engine, "a"))
    fresh = MemoryLog("fresh")
    with pytest.raises(OtherLogError, match=r"state count .*adopt="):
        open_runner(fresh, state)
    assert fresh.newest() is None


def test_a_lost_state_is_an_error(log: Log, state: OpaqueMap, engine: CountingEngine) -> None:
    open_runner(log, state).run(Words(engine, "a"))
    with pytest.raises(LostStateError, match="state count is lost"):
        open_runner(log, memory_state())


def test_a_rewound_state_is_an_error(log: Log, state: OpaqueMap, engine: CountingEngine) -> None:
    runner = open_runner(log, state)
    runner.run(Words(engine, "a"))
    old = state.backing.getControl()
    runner.run(Words(engine, "a"))
    assert old is not None
    state.backing.putControl(old, state.backing.getControl())
    with pytest.raises(RewoundStateError):
        open_runner(log, state)


def test_a_state_added_later_starts_empty(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(log, state).run(Words(engine, "a"))
    added = memory_state()
    open_runner(log, state, added).run(Words(CountingEngine(state, added), "a"))
    assert counts(state, "a") + counts(added, "a") == [2, 1]
    assert newest(log).states == {"count": Token(2, 1), "count2": Token(2, 1)}


def test_a_state_left_out_for_some_batches_goes_on(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    other = memory_state()
    open_runner(log, state, other).run(Words(CountingEngine(state, other), "a"))
    open_runner(log, state).run(Words(engine, "a"))
    assert newest(log).states == {"count": Token(2, 1), "count2": Token(1, 0)}
    open_runner(log, state, other).run(Words(CountingEngine(state, other), "a"))
    assert counts(state, "a") + counts(other, "a") == [3, 2]


def test_a_newcomer_touches_no_state_before_its_begin_is_in_the_log(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    def crash(record: ControlRecord) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_runner(log, state).run(Words(engine, "a", interrupt=crash))
    before = state.backing.getControl()

    class Lost(MemoryLog):
        def newest(self) -> Any:
            return log.newest()

        def append(self, entry: Any) -> None:
            assert state.backing.getControl() == before
            raise LogConflictError(self.place, entry.number)

    with pytest.raises(LogConflictError):
        open_runner(Lost("log"), state)
    assert state.backing.getControl() == before


def test_a_store_that_forgot_what_it_had_acknowledged_fails_the_attempt(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    runner = open_runner(log, state)
    runner.run(Words(engine, "a"))
    old = state.backing.getControl()
    failed: list[Token] = []

    def forget(record: ControlRecord) -> None:
        if not failed:
            failed.append(record.token)
            assert old is not None
            assert state.backing.putControl(old, record.encode())

    assert runner.run(Words(engine, "a", interrupt=forget)).attempts == 2
    assert failed == [Token(2, 0)]
    assert counts(state, "a") == [2]


class RestartingMap(MemoryMap):
    """A store whose server may restart."""

    lives = 1

    def incarnation(self) -> str:
        return str(self.lives)


def test_a_store_that_restarts_during_the_batch_fails_the_attempt(log: Log) -> None:
    backing = RestartingMap("restarting")
    state = OpaqueMap(backing)

    def restart(record: ControlRecord) -> None:
        if record.token.attempt == 0:
            backing.lives += 1
            backing.multiPut([b"a"], [None])

    runner = open_runner(log, state)
    progress = runner.run(Words(CountingEngine(state), "a", interrupt=restart))
    assert progress.attempts == 2
    assert counts(state, "a") == [1]


# Two drivers


@pytest.mark.parametrize("point", POINTS[:7])
def test_a_driver_that_is_overtaken_before_its_commit_stops_and_changes_nothing(
    log: Log, state: OpaqueMap, engine: CountingEngine, point: str
) -> None:
    slow = open_runner(log, state)
    slow.run(Words(engine, "a"))
    taken = False

    def take_over(reached: str, token: Token) -> None:
        nonlocal taken
        if reached == point and not taken:
            taken = True
            fast = open_runner(log, seen_elsewhere(state))
            fast.run(Words(CountingEngine(seen_elsewhere(state)), "b"))

    with watching(take_over), pytest.raises((TakenOverError, LogConflictError)):
        slow.run(Words(engine, "a a"))
    assert counts(state, "a b") == [1, 1]
    assert newest(log).committed == 2


@pytest.mark.parametrize("point", POINTS[7:])
def test_a_driver_that_is_overtaken_after_its_commit_has_committed(
    log: Log, state: OpaqueMap, engine: CountingEngine, point: str
) -> None:
    slow = open_runner(log, state)
    taken = False

    def take_over(reached: str, token: Token) -> None:
        nonlocal taken
        if reached == point and not taken:
            taken = True
            fast = open_runner(log, seen_elsewhere(state))
            fast.run(Words(CountingEngine(seen_elsewhere(state)), "b"))

    with watching(take_over):
        slow.run(Words(engine, "a a"))
    assert counts(state, "a b") == [2, 1]
    with pytest.raises((TakenOverError, LogConflictError)):
        slow.run(Words(engine, "a"))
    assert counts(state, "a b") == [2, 1]


def test_stale_without_another_writer_is_told_as_it_is(
    log: Log, state: OpaqueMap, engine: CountingEngine
) -> None:
    def stale(record: ControlRecord) -> None:
        raise StaleBatchError(record.token)

    with pytest.raises(StaleBatchError):
        open_runner(log, state).run(Words(engine, "a", interrupt=stale))


def test_a_store_that_is_away_after_the_commit_is_told_later(
    log: Log, state: OpaqueMap, engine: CountingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce, away = state.control.announce, [True, True]

    def announced(record: ControlRecord) -> bool:
        if away:
            away.pop()
            raise StateUnavailableError("count", "it is away")
        return announce(record)

    monkeypatch.setattr(state.control, "announce", announced)
    progress = open_runner(log, state).run(Words(engine, "a"))
    assert progress.attempts == 1
    assert counts(state, "a") == [1]


def test_what_fails_after_the_commit_is_no_failed_attempt(
    log: Log, state: OpaqueMap, engine: CountingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(record: ControlRecord) -> bool:
        raise LostWritesError("count", record.token)

    runner = open_runner(log, state)
    told: list[Any] = []
    monkeypatch.setattr(state.control, "announce", lost)
    monkeypatch.setattr(runner.monitor, "attempt_failed", lambda *failed: told.append(failed))
    with pytest.raises(LostWritesError):
        runner.run(Words(engine, "a"))
    assert newest(log).committed == 1
    assert not told


def test_hundreds_of_batches_leave_a_handful_of_files(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    runner = open_runner(FileLog(tmp_path), state)
    for _ in range(200):
        runner.run(Words(engine, "a"))
    assert len(list(tmp_path.iterdir())) <= 10
    assert counts(state, "a") == [200]
    assert newest(FileLog(tmp_path)).retried == {}
