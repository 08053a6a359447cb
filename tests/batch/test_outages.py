"""A store, or the log's disk, that is away: the batch waits, and nothing of it is lost."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from resource import RLIMIT_FSIZE, getrlimit, setrlimit
from typing import Any

import pytest

from tests.batch.counting import CountingEngine, Words, counts, memory_state, open_runner
from trident.backends.memory import MemoryMap
from trident.batch import failures
from trident.batch.errors import BatchFailedError, BatchInterruptedError, OutageError
from trident.batch.failures import FailurePolicy, Outage, Patience
from trident.batch.watchpoints import POINTS, watching
from trident.log import file_log
from trident.log.errors import LogUnavailableError, TakenOverError
from trident.log.file_log import FileLog
from trident.log.log import Log, MemoryLog
from trident.states.control import ControlRecord
from trident.states.errors import FailedException, StaleBatchError, StateUnavailableError
from trident.states.maps.factory import OpaqueMap
from trident.states.values import Token
from trident.testing import fail_at

AWAY = StateUnavailableError("redis at here:6379", "no answer within 1 s", "Is it paused?")


class Clock(threading.Event):
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.pauses: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.pauses.append(timeout)
        self.now += timeout
        self.meanwhile()
        return self.is_set()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(failures, "monotonic", lambda: clock.now)
    return clock


class Distant(MemoryMap):
    """A store that is away at times."""

    away = False

    def _answer(self) -> None:
        if self.away:
            raise AWAY

    def multiGet(self, keys: Any) -> Any:
        self._answer()
        return super().multiGet(keys)

    def getControl(self) -> bytes | None:
        self._answer()
        return super().getControl()

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        self._answer()
        return super().putControl(new, expected)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Distant:
    return Distant(request.node.nodeid)


@pytest.fixture
def state(store: Distant) -> OpaqueMap:
    return OpaqueMap(store)


@pytest.fixture
def engine(state: OpaqueMap) -> CountingEngine:
    return CountingEngine(state)


def away_from(store: Distant, point: str, clock: Clock, seconds: float) -> Any:
    """Have the store go away when the first attempt of batch 2 comes to `point`."""

    def leave(reached: str, token: Token) -> None:
        if reached == point and token == (2, 0):
            store.away = True
            back = clock.now + seconds

            def come_back() -> None:
                store.away = clock.now < back

            clock.meanwhile = come_back

    return watching(leave)


def begun(log: Log) -> Token:
    newest = log.newest()
    assert newest is not None
    return newest.begun


@pytest.mark.parametrize("point", POINTS[:5])
def test_a_store_that_is_away_costs_one_attempt_however_long_and_no_retry(
    store: Distant, state: OpaqueMap, engine: CountingEngine, clock: Clock, point: str
) -> None:
    log = MemoryLog("log")
    runner = open_runner(
        log, state, retries=0, on_failure="dead-letter", stopping=clock, backoff=0.1
    )
    runner.run(Words(engine, "a"))
    with away_from(store, point, clock, 300.0):
        progress = runner.run(Words(engine, "a b"))
    assert (progress.attempts, progress.dead_letter) == (2, None)
    assert counts(state, "a b") == [2, 1]
    assert 300 < clock.now < 306


def test_a_store_that_stays_away_ends_the_run_with_the_batch_kept_even_for_dead_letters(
    store: Distant, state: OpaqueMap, engine: CountingEngine, clock: Clock
) -> None:
    log = MemoryLog("log")
    runner = open_runner(
        log, state, on_failure="dead-letter", patience=60.0, stopping=clock, backoff=0.1
    )
    runner.run(Words(engine, "a"))
    with (
        away_from(store, "before write", clock, 1000.0),
        pytest.raises(OutageError, match="batch 2 of words waited 60.0 s.*redis at here") as raised,
    ):
        runner.run(Words(engine, "b"))
    assert clock.now == 60.0
    assert "Is it paused? Nothing was given up: remove the cause, and start" in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    assert begun(log) == Token(2, 0)
    store.away = False
    open_runner(log, state).run(Words(engine, "b"))
    assert counts(state, "a b") == [1, 1]


def test_a_store_that_answers_but_never_takes_the_batch_ends_the_run_too(
    state: OpaqueMap, engine: CountingEngine, clock: Clock
) -> None:
    def refuse(record: ControlRecord) -> None:
        raise StateUnavailableError("here", "3 entries were changed by somebody else", "Who?")

    log = MemoryLog("log")
    runner = open_runner(log, state, patience=3600.0, stopping=clock, backoff=0.1)
    with pytest.raises(OutageError, match="waited 3600.0 s.*by somebody else. Who?"):
        runner.run(Words(engine, "a", interrupt=refuse))
    # A versioned store tells 4,096 attempts apart.
    assert begun(log).attempt < 1000
    assert max(clock.pauses) == 5.0


def test_an_attempt_that_takes_longer_than_patience_is_followed_by_one_more(
    state: OpaqueMap, engine: CountingEngine, clock: Clock
) -> None:
    def late(record: ControlRecord) -> None:
        clock.now += 100.0
        if record.token.attempt < 2:
            raise AWAY

    runner = open_runner(MemoryLog("log"), state, patience=50.0, stopping=clock, backoff=0.1)
    assert runner.run(Words(engine, "a", interrupt=late)).attempts == 3


def test_stopping_ends_the_wait_for_a_store_at_once(
    store: Distant, state: OpaqueMap, engine: CountingEngine
) -> None:
    stopping = threading.Event()
    runner = open_runner(MemoryLog("log"), state, backoff=600.0, stopping=stopping)

    def leave_and_stop(record: ControlRecord) -> None:
        stopping.set()
        raise AWAY

    with pytest.raises(BatchInterruptedError, match="kept"):
        runner.run(Words(engine, "a", interrupt=leave_and_stop))


@pytest.mark.parametrize("error", [FailedException("poison"), OSError("poison")])
def test_a_failing_step_is_not_waited_for_though_a_store_was_away_meanwhile(
    state: OpaqueMap, engine: CountingEngine, clock: Clock, error: Exception
) -> None:
    def fail(record: ControlRecord) -> None:
        raise AWAY if record.token.attempt in (0, 2) else error

    work = Words(engine, "a", interrupt=fail)
    runner = open_runner(MemoryLog("log"), state, retries=1, stopping=clock, backoff=0.1)
    if isinstance(error, FailedException):
        with pytest.raises(BatchFailedError, match="batch 1 of words failed 2 times.*poison"):
            runner.run(work)
        assert len(work.called("run")) == 4
    else:
        with pytest.raises(OSError, match="poison"):
            runner.run(work)
        assert len(work.called("run")) == 2


def test_an_outage_is_told_when_it_begins_every_ten_seconds_and_when_it_ends(
    store: Distant,
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = open_runner(MemoryLog("log"), state, stopping=clock, backoff=0.1)
    runner.run(Words(engine, "a"))
    with away_from(store, "before write", clock, 42.0), caplog.at_level(logging.INFO, "trident"):
        runner.run(Words(engine, "b"))
    assert len(clock.pauses) == 14
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 5
    assert [record.getMessage() for record in caplog.records] == [
        f"batch 2 of words waits: {AWAY}",
        f"batch 2 of words has waited 11.3 s: {AWAY}",
        f"batch 2 of words has waited 21.3 s: {AWAY}",
        f"batch 2 of words has waited 31.3 s: {AWAY}",
        f"batch 2 of words goes on, after 46.3 s of: {AWAY}",
    ]


def test_the_announcement_waits_for_the_store_and_no_retry_is_counted(
    store: Distant,
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = open_runner(MemoryLog("log"), state, retries=0, stopping=clock, backoff=0.1)
    runner.run(Words(engine, "a"))
    with away_from(store, "before announce", clock, 300.0):
        assert runner.run(Words(engine, "a")).attempts == 1
    assert counts(state, "a") == [2]
    assert "the announcement of batch 2 of words waits: redis at here" in caplog.text


def test_a_commit_that_could_not_be_announced_is_announced_by_the_next_start(
    store: Distant, state: OpaqueMap, engine: CountingEngine, clock: Clock
) -> None:
    log = MemoryLog("log")
    runner = open_runner(log, state, patience=60.0, stopping=clock, backoff=0.1)
    runner.run(Words(engine, "a"))
    with (
        away_from(store, "before announce", clock, 1000.0),
        pytest.raises(OutageError, match="the announcement of batch 2 of words waited 60"),
    ):
        runner.run(Words(engine, "a"))
    store.away = False
    assert counts(state, "a") == [1]
    open_runner(log, state)
    assert counts(state, "a") == [2]


def test_a_store_that_is_away_at_the_start_is_told_at_once(
    store: Distant, state: OpaqueMap, clock: Clock
) -> None:
    store.away = True
    with pytest.raises(StateUnavailableError, match="redis at here"):
        open_runner(MemoryLog("log"), state, stopping=clock, backoff=0.1)
    assert clock.pauses == []


def test_pauses_grow_and_end_with_patience(clock: Clock) -> None:
    waiting = Outage(Patience("words", FailurePolicy(patience=8.0), clock), 1)
    with pytest.raises(OutageError):  # noqa: PT012 - the wait that raises is the last of several
        while True:
            waiting.wait(AWAY)
    assert clock.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 1.7])


# The log's disk


def for_files(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def for_folders(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


@contextmanager
def failing_sync(
    clock: Clock,
    which: Callable[[int], bool],
    seconds: float,
    calls: Sequence[str] = ("fsync", "fdatasync"),
) -> Iterator[None]:
    """Have the disk refuse to sync files or folders, or to write, for so long."""
    back = clock.now + seconds

    def refusing(call: Callable[..., Any]) -> Callable[..., Any]:
        def full(descriptor: int, *args: Any) -> Any:
            if which(descriptor) and clock.now < back:
                raise OSError(errno.ENOSPC, "No space left on device")
            return call(descriptor, *args)

        return full

    with pytest.MonkeyPatch.context() as disk:
        for name in calls:
            disk.setattr(os, name, refusing(getattr(os, name)))
        if which is for_folders:  # which are synced when there is another file in them
            disk.setattr(file_log, "_LARGEST", 1)
        yield


@pytest.mark.parametrize("which", [for_files, for_folders])
@pytest.mark.parametrize("plans", [None, {"words": [1]}])
def test_a_batch_whose_commit_the_disk_refuses_waits_and_counts_once(
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    tmp_path: Path,
    which: Callable[[int], bool],
    plans: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = FileLog(tmp_path)
    runner = open_runner(
        log, state, retries=0, on_failure="dead-letter", stopping=clock, backoff=0.1
    )
    runner.run(Words(engine, "a", plans=plans))
    work = Words(engine, "a b", plans=plans)
    with failing_sync(clock, which, 300.0):
        assert runner.run(work).attempts == 1
    assert clock.now >= 300
    assert work.called("run") == [("run", Token(2, 0))]
    runner.run(Words(engine, "a", plans=plans))
    assert counts(state, "a b") == [3, 1]
    assert f"batch 2 of words waits: the log {tmp_path} can't be read or written" in caplog.text
    assert "Make room on its disk" in caplog.text
    open_runner(FileLog(tmp_path), state).run(Words(engine, "a", plans=plans))
    assert counts(state, "a b") == [4, 1]


def test_a_batch_whose_commit_fits_only_in_part_waits_for_room(
    state: OpaqueMap, engine: CountingEngine, clock: Clock, tmp_path: Path
) -> None:
    soft, hard = getrlimit(RLIMIT_FSIZE)

    def make_room() -> None:
        if clock.now >= 300:
            setrlimit(RLIMIT_FSIZE, (soft, hard))

    runner = open_runner(FileLog(tmp_path), state, stopping=clock, backoff=0.1)
    clock.meanwhile = make_room
    setrlimit(RLIMIT_FSIZE, (10, hard))
    try:
        assert runner.run(Words(engine, "a")).attempts == 1
    finally:
        setrlimit(RLIMIT_FSIZE, (soft, hard))
    assert clock.now >= 300
    assert counts(state, "a") == [1]
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("which", [for_files, for_folders])
def test_the_next_attempt_waits_for_the_disk(
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    tmp_path: Path,
    which: Callable[[int], bool],
) -> None:
    runner = open_runner(FileLog(tmp_path), state, retries=1, stopping=clock, backoff=0.1)
    with fail_at("after write"), failing_sync(clock, which, 300.0):
        assert runner.run(Words(engine, "a")).attempts == 2
    assert counts(state, "a") == [1]


@pytest.mark.parametrize(
    ("which", "calls", "committed"),
    [
        (for_files, ["write"], 0),
        (for_files, ["fsync", "fdatasync"], 1),
        (for_folders, ["fsync"], 1),
    ],
)
def test_a_disk_that_stays_full_ends_the_run_and_what_the_log_then_holds_decides(
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    tmp_path: Path,
    which: Callable[[int], bool],
    calls: Sequence[str],
    committed: int,
) -> None:
    runner = open_runner(FileLog(tmp_path), state, patience=60.0, stopping=clock, backoff=0.1)
    with (
        failing_sync(clock, which, 1000.0, calls),
        pytest.raises(OutageError, match=f"waited 60.0 s.*the log {tmp_path}.*No space left"),
    ):
        runner.run(Words(engine, "a"))
    newest = FileLog(tmp_path).newest()
    assert newest is not None
    assert newest.committed == committed
    again = open_runner(FileLog(tmp_path), state)
    while again.next_txid < 3:
        again.run(Words(engine, "a"))
    assert counts(state, "a") == [2]


@pytest.fixture
def stale_log(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Have the folders of logs not be listed for some time."""
    listdir = os.listdir

    def stale(folder: Any) -> list[str]:
        if clock.now < 300:
            raise OSError(errno.ESTALE, "Stale file handle")
        return listdir(folder)

    return lambda: monkeypatch.setattr(os, "listdir", stale)


def test_a_log_that_cannot_be_read_is_waited_for(
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    tmp_path: Path,
    stale_log: Callable[[], None],
) -> None:
    runner = open_runner(FileLog(tmp_path), state, stopping=clock, backoff=0.1)
    stale_log()
    with fail_at("after write"):
        assert runner.run(Words(engine, "a")).attempts == 2
    assert counts(state, "a") == [1]


def test_an_overtaken_attempt_is_told_by_whom_when_the_log_can_be_read_again(
    state: OpaqueMap,
    engine: CountingEngine,
    clock: Clock,
    tmp_path: Path,
    stale_log: Callable[[], None],
) -> None:
    def overtaken(record: ControlRecord) -> None:
        open_runner(FileLog(tmp_path), OpaqueMap(state.backing))
        stale_log()
        raise StaleBatchError(record.token)

    runner = open_runner(FileLog(tmp_path), state, stopping=clock, backoff=0.1)
    with pytest.raises(TakenOverError):
        runner.run(Words(engine, "a", interrupt=overtaken))
    assert clock.now >= 300


def test_a_full_disk_at_the_start_is_told_at_once(tmp_path: Path, clock: Clock) -> None:
    with (
        failing_sync(clock, for_files, 1000.0),
        pytest.raises(LogUnavailableError, match="No space left on device. Make room"),
    ):
        open_runner(FileLog(tmp_path), memory_state(), stopping=clock, backoff=0.1)
    assert clock.pauses == []
