"""A new checkpoint continues old state: once, exactly, and only when told to."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

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
from trident.batch.adopt import Adopt
from trident.batch.errors import BatchFailedError
from trident.batch.opening import LogTerms
from trident.batch.runner import BatchRunner
from trident.batch.states import GroupStates
from trident.errors import PlanError
from trident.log.checkpoint import Checkpoint, Place, groups_at, hold_checkpoint, local_folder
from trident.log.errors import (
    AdoptionError,
    CheckpointInUseError,
    LogUnavailableError,
    TakenOverError,
)
from trident.log.folders import Folder
from trident.log.held import HeldCheckpoint
from trident.log.log import Log, MemoryLog
from trident.log.staging import StagedFile, StagingArea
from trident.states import OpaqueValue, Token, TransactionalValue
from trident.states.control import ControlRecord
from trident.states.errors import (
    CopiedLogError,
    LostStateError,
    OtherLogError,
    StateError,
    UnownedStateError,
)
from trident.states.maps.factory import NonTransactionalMap, OpaqueMap, TransactionalMap
from trident.states.maps.stored_map import StoredMap
from trident.testing import fail_at
from trident.testing.servers.promised import Served


@pytest.fixture
def state() -> OpaqueMap:
    return memory_state()


@pytest.fixture
def engine(state: OpaqueMap) -> CountingEngine:
    return CountingEngine(state)


def crash(record: ControlRecord) -> None:
    raise ZeroDivisionError


def newest(log: Log) -> Any:
    entry = log.newest()
    assert entry is not None
    return entry


@contextmanager
def closing_checkpoint(place: str) -> Iterator[HeldCheckpoint]:
    held = hold_checkpoint(place)
    try:
        yield held
    finally:
        held.release()


def log_id(state: OpaqueMap) -> str:
    record = state.control.read()
    assert record is not None
    return record.log_id


def old_checkpoint(path: Path, state: OpaqueMap, engine: CountingEngine) -> None:
    """Two committed batches, and a third that crashed after its writes."""
    checkpoint = Checkpoint(path)
    runner = open_runner(checkpoint.log("words"), state)
    runner.run(Words(engine, "a a"), digest="d")
    runner.run(Words(engine, "b"), digest="d")
    with pytest.raises(ZeroDivisionError):
        runner.run(Words(engine, "a c", interrupt=crash))
    checkpoint.release()


@pytest.mark.parametrize("more", ["x", "x x x"], ids=["one batch", "three batches"])
def test_a_checkpoint_older_than_its_state_is_not_taken_over(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine, more: str
) -> None:
    checkpoint = Checkpoint(tmp_path / "original")
    runner = open_runner(checkpoint.log("words"), state)
    runner.run(Words(engine, "x"))
    shutil.copytree(tmp_path / "original", tmp_path / "backup")
    for word in more.split():
        runner.run(Words(engine, word))
    checkpoint.release()
    before = state.control.read()
    with pytest.raises(CopiedLogError, match="restored from an older backup than the store"):
        open_runner(MemoryLog("new"), state, adopt=Adopt.from_checkpoint(tmp_path / "backup"))
    assert state.control.read() == before
    open_runner(Checkpoint(tmp_path / "original").log("words"), state)


def test_a_new_log_continues_where_the_old_one_was(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    old_checkpoint(tmp_path / "old", state, engine)
    old = log_id(state)
    log = Checkpoint(tmp_path / "new").log("words")
    with pytest.raises(OtherLogError, match=old):
        open_runner(log, state)
    runner = open_runner(log, state, adopt=Adopt.from_checkpoint(tmp_path / "old"))
    assert (runner.ledger.entry.base, runner.next_txid, runner.ledger.last) == (2, 3, None)
    assert newest(log).adopted == (old,)
    assert log_id(state) == newest(log).log_id != old
    assert counts(state, "a b c") == [2, 1, None]
    work = Words(engine, "c")
    runner.run(work)
    assert work.called("run") == [("run", Token(3, 1))]
    assert counts(state, "a b c") == [2, 1, 1]


def test_committed_retries_and_planned_batches_are_taken_over(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    checkpoint = Checkpoint(tmp_path / "old")
    runner = open_runner(checkpoint.log("words"), state)
    with fail_at("after write"):
        runner.run(Words(engine, "a b", "a", plans={"words": 1}))
    with pytest.raises(ZeroDivisionError):
        runner.run(Words(engine, "c", plans={"words": 2}, interrupt=crash))
    checkpoint.release()
    work = Words(engine, "a b c", plans={"words": 3})
    open_runner(MemoryLog("new"), state, adopt=Adopt.from_checkpoint(tmp_path / "old")).run(work)
    assert work.calls[0] == ("emit", Token(2, 1), {"words": 2})
    assert counts(state, "a b c") == [2, 1, 1]


def test_what_the_old_spouts_had_stored_is_taken_over(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    checkpoint = Checkpoint(tmp_path / "old")
    work = Words(engine, "a")
    work.emitted_metadata = {"words": {"offset": 5}}
    open_runner(checkpoint.log("words"), state).run(work)
    checkpoint.release()
    following = Words(engine, "a")
    open_runner(MemoryLog("new"), state, adopt=Adopt.from_checkpoint(tmp_path / "old")).run(
        following
    )
    assert following.calls[1] == ("emit", Token(2, 1), {"words": {"offset": 5}})


def test_adopting_again_at_the_next_start_changes_nothing(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    old_checkpoint(tmp_path / "old", state, engine)
    log = Checkpoint(tmp_path / "new").log("words")
    open_runner(log, state, adopt=Adopt.from_checkpoint(tmp_path / "old")).run(Words(engine, "c"))
    open_runner(log, state, adopt=Adopt.from_checkpoint(tmp_path / "old")).run(Words(engine, "c"))
    assert counts(state, "a b c") == [2, 1, 2]


def test_the_old_checkpoint_is_closed_for_good(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    old_checkpoint(tmp_path / "old", state, engine)
    open_runner(
        Checkpoint(tmp_path / "new").log("words"),
        state,
        adopt=Adopt.from_checkpoint(tmp_path / "old"),
    )
    with pytest.raises(AdoptionError, match=f"taken over by {tmp_path}/new"):
        open_runner(Checkpoint(tmp_path / "old").log("words"), state)
    with pytest.raises(CheckpointInUseError):
        open_runner(MemoryLog("third"), state, adopt=Adopt.from_checkpoint(tmp_path / "old"))


def test_two_new_checkpoints_cannot_adopt_one(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    old_checkpoint(tmp_path / "old", state, engine)
    open_runner(MemoryLog("second"), state, adopt=Adopt.from_checkpoint(tmp_path / "old"))
    with pytest.raises(AdoptionError, match="taken over by second"):
        open_runner(MemoryLog("third"), state, adopt=Adopt.from_checkpoint(tmp_path / "old"))


def test_a_crash_between_closing_the_old_log_and_beginning_the_new_one_is_continued(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_checkpoint(tmp_path / "old", state, engine)

    class Crashing(MemoryLog):
        def append(self, entry: Any) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        open_runner(Crashing("new"), state, adopt=Adopt.from_checkpoint(tmp_path / "old"))
    open_runner(MemoryLog("new"), state, adopt=Adopt.from_checkpoint(tmp_path / "old")).run(
        Words(engine, "c")
    )
    assert counts(state, "a b c") == [2, 1, 1]


def test_a_driver_of_the_old_log_that_still_lives_is_shut_out(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    log = Checkpoint(tmp_path / "old")
    old = open_runner(log.log("words"), state)
    log.release()  # as if the holder were out of reach
    taken = seen_elsewhere(state)

    def adopt(record: ControlRecord) -> None:
        runner = open_runner(MemoryLog("new"), taken, adopt=Adopt.from_checkpoint(tmp_path / "old"))
        runner.run(Words(CountingEngine(taken), "b"))

    with pytest.raises(TakenOverError):
        old.run(Words(engine, "a", interrupt=adopt))
    assert counts(state, "a b") == [None, 1]


def test_adopted_state_that_is_gone_is_lost(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    old_checkpoint(tmp_path / "old", state, engine)
    with pytest.raises(LostStateError):
        open_runner(MemoryLog("new"), memory_state(), adopt=Adopt.from_checkpoint(tmp_path / "old"))


def test_there_must_be_a_log_of_the_same_group(tmp_path: Path, state: OpaqueMap) -> None:
    with pytest.raises(AdoptionError, match="no log of the group words"):
        open_runner(MemoryLog("new"), state, adopt=Adopt.from_checkpoint(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_log_with_state_of_its_own_cannot_adopt(
    tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    other = memory_state()
    old_checkpoint(tmp_path / "old", other, CountingEngine(other))
    log = MemoryLog("log")
    open_runner(log, state).run(Words(engine, "a"))
    with pytest.raises(AdoptionError, match="Only a new checkpoint can adopt"):
        open_runner(log, state, adopt=Adopt.from_checkpoint(tmp_path / "old"))


# The old log is gone


def orphan(state: OpaqueMap, *, in_flight: str | None) -> None:
    """State whose log is gone: a is 2; with a batch in flight that made it 3 and wrote c.

    That batch ended at the point `in_flight`.
    """
    engine = CountingEngine(state)
    runner = open_runner(MemoryLog("gone"), state, retries=0)
    runner.run(Words(engine, "a a"))
    if in_flight:
        with fail_at(in_flight), pytest.raises(BatchFailedError):
            runner.run(Words(engine, "a c"))


@pytest.mark.parametrize(("in_flight", "found"), [("committed", [3, 1, 1]), ("burn", [2, None, 1])])
def test_what_was_in_flight_is_committed_or_burnt(
    state: OpaqueMap, engine: CountingEngine, in_flight: Any, found: list[int | None]
) -> None:
    orphan(state, in_flight="before commit")
    adopt = Adopt.from_states(log_id(state), in_flight=in_flight)
    log = MemoryLog("new")
    runner = open_runner(log, state, adopt=adopt)
    assert counts(state, "a c d") == [*found[:2], None]
    runner.run(Words(engine, "d"))
    assert counts(state, "a c d") == found
    open_runner(log, state, adopt=adopt).run(Words(engine, "a c"))
    assert counts(state, "a c") == [(found[0] or 0) + 1, (found[1] or 0) + 1]


def test_a_batch_that_was_not_ready_cannot_be_committed(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    orphan(state, in_flight="before ready")
    with pytest.raises(AdoptionError, match=r"not everything was written to count.*burn"):
        open_runner(
            MemoryLog("new"), state, adopt=Adopt.from_states(log_id(state), in_flight="committed")
        )
    runner = open_runner(
        MemoryLog("new"), state, adopt=Adopt.from_states(log_id(state), in_flight="burn")
    )
    runner.run(Words(engine, "a"))
    assert counts(state, "a c") == [3, None]


@pytest.mark.parametrize("in_flight", ["committed", "burn"])
def test_nothing_in_flight_leaves_nothing_to_decide(
    state: OpaqueMap, engine: CountingEngine, in_flight: Any
) -> None:
    orphan(state, in_flight=None)
    adopt = Adopt.from_states(log_id(state), in_flight=in_flight)
    open_runner(MemoryLog("new"), state, adopt=adopt).run(Words(engine, "a"))
    assert counts(state, "a") == [3]


def test_a_batch_that_not_all_states_had_begun_cannot_be_committed(state: OpaqueMap) -> None:
    orphan(state, in_flight="before commit")
    other = memory_state()
    record = state.control.read()
    assert record is not None
    before = ControlRecord(record.log_id, Token(1, 0))
    other.control.begin(before)
    other.control.announce(other.control.ready(before))
    with pytest.raises(AdoptionError, match="burn"):
        open_runner(
            MemoryLog("new"),
            state,
            other,
            adopt=Adopt.from_states(record.log_id, in_flight="committed"),
        )
    runner = open_runner(
        MemoryLog("new"), state, other, adopt=Adopt.from_states(record.log_id, in_flight="burn")
    )
    runner.run(Words(CountingEngine(state, other), "a"))
    assert counts(state, "a") + counts(other, "a") == [3, 1]


def test_the_loss_of_a_state_whose_last_batch_was_burnt_can_be_accepted(state: OpaqueMap) -> None:
    orphan(state, in_flight="before commit")
    log, lost = MemoryLog("new"), memory_state()
    open_runner(log, state, adopt=Adopt.from_states(log_id(state), in_flight="burn"))
    runner = open_runner(log, lost, accept_loss={"count": 2})
    runner.run(Words(CountingEngine(lost), "a"))
    open_runner(log, lost)
    assert counts(lost, "a") == [1]


def test_burning_is_for_opaque_maps_only() -> None:
    state = TransactionalMap(MemoryMap("burning"))
    runner = open_runner(MemoryLog("gone"), state)
    with pytest.raises(ZeroDivisionError):
        runner.run(Words(CountingEngine(state), "a", interrupt=crash))
    record = state.control.read()
    assert record is not None
    with pytest.raises(AdoptionError, match="only what opaque maps hold"):
        open_runner(
            MemoryLog("new"), state, adopt=Adopt.from_states(record.log_id, in_flight="burn")
        )


def test_a_log_id_that_no_state_has_is_refused(state: OpaqueMap) -> None:
    orphan(state, in_flight="before commit")
    log = MemoryLog("new")
    with pytest.raises(AdoptionError, match="the log id unknown: no state has this log id"):
        open_runner(log, state, adopt=Adopt.from_states("unknown", in_flight="burn"))
    assert log.newest() is None


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (
            lambda: Adopt.from_states("a1", in_flight=cast(Any, "maybe")),
            "in_flight is 'maybe'; there are: committed, burn",
        ),
        (lambda: Adopt.from_states("", in_flight="burn"), "the log id .* found \"''\""),
        (
            lambda: Adopt.from_states("redis://:s3cr3t@cache", in_flight="burn"),
            r"found .*use Adopt\.from_checkpoint",
        ),
        (lambda: Adopt.from_checkpoint(""), "found an empty str"),
        (lambda: Adopt.from_checkpoint(cast(Any, 7)), "found int"),
        (lambda: Adopt.from_checkpoint(cast(Any, b"redis://:s3cr3t@cache")), "found bytes"),
        (lambda: Adopt.from_checkpoint("/words", cast(Any, ["/mnt"])), "found list"),
        (lambda: Adopt(cast(Any, "redis://:s3cr3t@cache")), r"not made of str\. .*from_checkpoint"),
    ],
)
def test_what_says_too_little_is_refused(made: Callable[[], Adopt], problem: str) -> None:
    with pytest.raises(PlanError, match=problem) as raised:
        made()
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("adopt", "text"),
    [
        (Adopt.from_checkpoint("/old"), "Adopt.from_checkpoint('/old')"),
        (
            Adopt.from_checkpoint("redis://:s3cr3t@cache/0?prefix=words", Path("/mnt")),
            "Adopt.from_checkpoint('redis://:***@cache/0?prefix=words', '/mnt')",
        ),
        (
            Adopt.from_checkpoint("redis://cache/0", "redis://:s3cr3t@cache/0"),
            "Adopt.from_checkpoint('redis://cache/0', 'redis://:***@cache/0')",
        ),
        (Adopt.from_states("a1", in_flight="burn"), "Adopt.from_states('a1', in_flight='burn')"),
        (Adopt.from_storm(17), "Adopt.from_storm(17)"),
    ],
)
def test_what_is_adopted_is_shown_as_it_is_written_and_without_a_password(
    adopt: Adopt, text: str
) -> None:
    assert repr(adopt) == text
    assert "s3cr3t" not in repr(adopt.source)


# Storm wrote the state


def storms(**entries: OpaqueValue) -> OpaqueMap:
    """A state without a control record."""
    state = memory_state()
    state.backing.multiPut([key.encode() for key in entries], list(entries.values()))
    return state


def test_storms_state_is_read_at_once_and_counted_on() -> None:
    state = storms(a=OpaqueValue(17, 0, 5, 4), b=OpaqueValue(3, 0, 2, 1))
    log = MemoryLog("new")
    runner = open_runner(log, state, adopt=Adopt.from_storm(17))
    assert (runner.ledger.entry.base, runner.next_txid, runner.ledger.last) == (17, 18, None)
    assert counts(state, "a b c") == [5, 2, None]
    runner.run(Words(CountingEngine(state), "a c"))
    assert counts(state, "a b c") == [6, 2, 1]
    assert newest(log).committed == 18


def test_what_storms_last_batch_left_uncommitted_does_not_count() -> None:
    state = storms(a=OpaqueValue(18, 0, 9, 5), b=OpaqueValue(18, 0, 1, None))
    runner = open_runner(MemoryLog("new"), state, adopt=Adopt.from_storm(17))
    assert counts(state, "a b") == [5, None]
    runner.run(Words(CountingEngine(state), "a"))
    runner.run(Words(CountingEngine(state), "b"))
    assert counts(state, "a b") == [6, 1]


def test_storms_state_is_taken_over_once() -> None:
    state = storms(a=OpaqueValue(17, 0, 5, 4))
    log = MemoryLog("new")
    open_runner(log, state, adopt=Adopt.from_storm(17)).run(Words(CountingEngine(state), "a"))
    open_runner(log, state, adopt=Adopt.from_storm(17)).run(Words(CountingEngine(state), "a"))
    assert counts(state, "a") == [7]
    with pytest.raises(OtherLogError):
        open_runner(MemoryLog("other"), state, adopt=Adopt.from_storm(17))


@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        (OpaqueMap, OpaqueValue(1, 0, 1, None)),
        (TransactionalMap, TransactionalValue(17, 5)),
        (NonTransactionalMap, 5),
    ],
)
def test_storms_state_is_neither_counted_from_nor_over_unless_told_so(
    kind: type[StoredMap], entry: Any
) -> None:
    state = kind(MemoryMap(uuid4().hex))
    state.backing.multiPut([b"a"], [entry])
    log = MemoryLog("new")
    for _ in range(2):
        with pytest.raises(UnownedStateError, match=r"the entry b'a'.*adopt=Adopt.from_storm"):
            open_runner(log, state)
    assert state.control.read() is None
    assert state.backing.multiGet([b"a"]) == [entry]
    assert log.newest() is None, "so that adopt= can still be given"


def test_a_state_that_is_added_to_a_running_log_has_to_be_empty(engine: CountingEngine) -> None:
    [state] = engine.states
    log = MemoryLog("log")
    open_runner(log, state).run(Words(engine, "a"))
    with pytest.raises(UnownedStateError):
        open_runner(log, state, storms(a=OpaqueValue(1, 0, 1, None)))


def test_a_state_that_begins_without_a_log_has_to_be_empty_too() -> None:
    state = storms(a=OpaqueValue(7, 0, 1, None))
    with pytest.raises(UnownedStateError):
        state.beginCommit(1)


def test_entries_of_an_attempt_that_never_committed_are_no_strangers(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    log = MemoryLog("log")
    with pytest.raises(ZeroDivisionError):
        open_runner(log, state).run(Words(engine, "a", interrupt=crash))
    open_runner(log, state).run(Words(engine, "a"))
    assert counts(state, "a") == [1]


# A state that waits for its first batch


def test_readers_know_a_state_from_its_logs_first_start_on(state: OpaqueMap) -> None:
    open_runner(MemoryLog("log"), state)
    waiting = state.control.read()
    assert waiting is not None
    assert (waiting.token, waiting.committed) == ((0, 0), 0)
    assert counts(state, "a") == [None]


def test_a_start_that_died_before_it_told_the_states_is_made_up_for(
    state: OpaqueMap, engine: CountingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog("log")
    with monkeypatch.context() as dying:
        dying.setattr(GroupStates, "own", lambda states, entry, names: crash(entry))
        with pytest.raises(ZeroDivisionError):
            open_runner(log, state)
    assert state.control.read() is None
    open_runner(log, state).run(Words(engine, "a"))
    assert counts(state, "a") == [1]


def test_a_restart_writes_nothing_to_a_state_that_waits(state: OpaqueMap) -> None:
    log = MemoryLog("log")
    open_runner(log, state)
    before = state.backing.getControl()
    open_runner(log, state)
    assert state.backing.getControl() == before


def test_a_state_in_which_no_batch_began_is_free_for_another_checkpoint(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    open_runner(MemoryLog("forgotten"), state)
    open_runner(MemoryLog("new"), state).run(Words(engine, "a"))
    assert counts(state, "a") == [1]


def test_of_two_checkpoints_that_wait_the_first_to_begin_a_batch_has_the_state(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    first = open_runner(MemoryLog("first"), state)
    elsewhere = seen_elsewhere(state)
    second = open_runner(MemoryLog("second"), elsewhere)
    first.run(Words(engine, "a"))
    with pytest.raises(OtherLogError):
        second.run(Words(CountingEngine(elsewhere), "a"))
    first.run(Words(engine, "a"))
    assert counts(state, "a") == [2]


def test_two_states_in_one_place_are_noticed_at_their_first_batch(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    alias = seen_elsewhere(state)
    runner = open_runner(MemoryLog("log"), state, alias)
    with pytest.raises(StateError, match="kept in one place"):
        runner.run(Words(engine, "a"))


def test_a_state_that_waits_can_be_lost_and_begins_anew(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    log = MemoryLog("log")
    runner = open_runner(log, state)
    state.backing._database.control = None  # type: ignore[attr-defined]
    runner.run(Words(engine, "a"))
    assert counts(state, "a") == [1]


def test_a_lost_record_whose_loss_is_accepted_is_made_anew_beside_the_entries(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    log = MemoryLog("log")
    open_runner(log, state).run(Words(engine, "a"))
    state.backing._database.control = None  # type: ignore[attr-defined]
    with pytest.raises(LostStateError):
        open_runner(log, state)
    open_runner(log, state, accept_loss={"count": 1}).run(Words(engine, "a"))
    assert counts(state, "a") == [2]


def test_what_the_log_lists_and_another_checkpoint_waits_in_belongs_to_neither(
    state: OpaqueMap, engine: CountingEngine
) -> None:
    log = MemoryLog("log")
    open_runner(log, state).run(Words(engine, "a"))
    emptied = memory_state()
    open_runner(MemoryLog("other"), emptied)
    with pytest.raises(OtherLogError):
        open_runner(log, emptied)


@pytest.mark.parametrize("base", [0, -1, "17", None, True, 1.0])
def test_storms_last_txid_is_a_number_from_1(base: Any) -> None:
    with pytest.raises(PlanError, match="the last txid that Storm committed"):
        Adopt.from_storm(base)


@pytest.fixture(params=["redis_server", "zookeeper_server"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a checkpoint that isn't there yet."""
    server: Served = request.getfixturevalue(request.param)
    named = "?prefix=" if server.url.startswith("redis") else "/tests/"
    return f"{server.url}{named}{uuid4().hex}"


@pytest.mark.parametrize("leaves_it", [True, False], ids=["from a URL", "to a URL"])
def test_a_state_moves_between_a_folder_and_a_url(
    url: str, leaves_it: bool, tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    folder = str(tmp_path / "folder")
    old, new = (url, folder) if leaves_it else (folder, url)
    with closing_checkpoint(old) as held:
        open_runner(held.log("words"), state).run(Words(engine, "a"))
        place = held.log("words").place
    with closing_checkpoint(new) as held:
        runner = open_runner(held.log("words"), state, adopt=Adopt.from_checkpoint(old))
        runner.run(Words(engine, "a b"))
        successor = held.log("words").place
    assert counts(state, "a b") == [2, 1]
    with closing_checkpoint(old) as held:
        told = f"{place}: its state was taken over by {successor}"
        with pytest.raises(AdoptionError, match=re.escape(told)):
            open_runner(held.log("words"), state)


def test_nothing_begins_behind_an_end_of_the_old_log_that_is_not_confirmed(
    redis_server: Served, state: OpaqueMap, engine: CountingEngine
) -> None:
    url = f"{redis_server.url}?prefix={uuid4().hex}"
    with closing_checkpoint(url) as held:
        open_runner(held.log("words"), state).run(Words(engine, "a"))
    log = MemoryLog("new")
    for _ in range(2):
        with pytest.raises(LogUnavailableError, match="of 99 replicas have acknowledged"):
            open_runner(
                log, state, adopt=Adopt.from_checkpoint(f"{url}&wait_replicas=99&wait_timeout=0.01")
            )
        assert log.newest() is None
    open_runner(log, state, adopt=Adopt.from_checkpoint(url)).run(Words(engine, "a"))
    assert counts(state, "a") == [2]


def test_a_checkpoint_by_url_that_is_not_there_is_not_made(url: str, state: OpaqueMap) -> None:
    with pytest.raises(AdoptionError, match="adopt=.*no log of the group words"):
        open_runner(MemoryLog("new"), state, adopt=Adopt.from_checkpoint(url))
    assert groups_at(url) == []


def test_what_is_staged_beside_a_url_is_asked_for(
    redis_server: Served, tmp_path: Path, state: OpaqueMap, engine: CountingEngine
) -> None:
    url = f"{redis_server.url}?prefix={uuid4().hex}"

    def folder_at(place: Place) -> Folder:
        return local_folder(tmp_path if place == "s3a://bucket/words" else place)

    def open_of_frame(log: Log, adopt: Adopt | None = None) -> BatchRunner:
        runner = make_runner(log, state)
        runner.open(LogTerms(streams=STREAMS, clock="dataframe", adopt=adopt, folder_at=folder_at))
        return runner

    with closing_checkpoint(url) as held:
        log = held.log("words")
        runner = open_of_frame(log)
        runner.run(Words(engine, "a"), digest="d", query_id="q")
        log_id = newest(log).log_id
    with pytest.raises(
        AdoptionError, match="its batches may be staged.*Give both: Adopt.from_checkpoint"
    ):
        open_of_frame(MemoryLog("new"), Adopt.from_checkpoint(url))
    wrong = Adopt.from_checkpoint(url, tmp_path / "not mounted")
    with pytest.raises(AdoptionError, match="not mounted/words: it is empty"):
        open_of_frame(MemoryLog("new"), wrong)
    staged = StagingArea(Folder(tmp_path / "words" / "staged"))
    staged.stage(StagedFile(log_id, 1, "q", 2, "5f3a", "91c0"))
    adopt = Adopt.from_checkpoint(url, "s3a://bucket/words")
    with pytest.raises(AdoptionError, match="batches 2 to 2 are staged there"):
        open_of_frame(MemoryLog("new"), adopt)
    staged.remove(staged.staged()[0])
    assert open_of_frame(MemoryLog("new"), adopt).next_txid == 2
