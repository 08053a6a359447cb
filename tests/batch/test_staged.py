"""Batches that are staged and committed behind their clock, without Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.batch import staged_run
from tests.batch.staged_run import BATCHES, CLOCK_POINTS, EXPECTED, counts, draws
from trident.batch.computed import Computed
from trident.batch.errors import BatchFailedError, OutageError, TooManyBadTuplesError
from trident.batch.failures import FailurePolicy
from trident.batch.opening import LogTerms
from trident.batch.outcome import Outcome
from trident.batch.progress import BatchProgress
from trident.batch.runner import BatchRunner
from trident.batch.staged import StagedBatches
from trident.batch.watchpoints import POINTS, STAGING_POINTS, watching
from trident.batch.work import BatchWork
from trident.log.errors import (
    LogMismatchError,
    LogUnavailableError,
    PlacementError,
    ReplayError,
    StagingError,
    TakenOverError,
)
from trident.log.file_log import FileLog
from trident.log.folders import Folder
from trident.log.staging import StagedFile, StagingArea
from trident.operations.counters import CounterBook, count_bad
from trident.states.control import ControlRecord
from trident.states.errors import FailedException
from trident.states.values import Token
from trident.testing import fail_at, hold_at

POLICY = FailurePolicy(retries=1, backoff=0.0, patience=0.05)


@dataclass(frozen=True)
class Words(Computed):
    """Words in place of updates, as no state is there."""

    words: tuple[str, ...] = ()


def computed(words: Iterable[str]) -> Words:
    return Words((), Outcome(), tuple(words))


class Nothing(BatchWork):
    """A batch that must not run."""

    def write(self, record: ControlRecord, computed: Any) -> Outcome:
        raise AssertionError(record)


class Engine:
    """Writes words into a list, with the attempt."""

    def __init__(self) -> None:
        self.written: list[tuple[Token, list[str]]] = []

    def write(self, record: ControlRecord, computed: Computed) -> Outcome:
        assert isinstance(computed, Words)
        self.written.append((record.token, list(computed.words)))
        return computed.outcome + Outcome(written=len(computed.words))

    def packed(self, computed: Computed) -> Mapping[str, bytes | memoryview]:
        assert isinstance(computed, Words)
        return {"words": json.dumps(computed.words).encode()}

    def unpacked(self, parts: Mapping[str, bytes | memoryview]) -> Computed:
        return computed(json.loads(bytes(parts["words"])))


class Clock:
    """A run of some batches, as Spark makes them."""

    def __init__(self, folder: Path, most: int = 3, policy: FailurePolicy = POLICY) -> None:
        self.area = StagingArea(Folder(folder / "staged"))
        self.engine = Engine()
        self.runner = BatchRunner(
            FileLog(folder / "log"), {}, group="lines", source="spark", policy=policy
        )
        self.runner.open(LogTerms(streams={"lines": "line"}, clock="dataframe"))
        self.told: list[Any] = []
        self.bad: list[Mapping[str, int]] = []
        self.batches = StagedBatches(self.area, self.engine, self.runner, most, self._told)

    def _told(self, progress: BatchProgress | None, failure: BaseException | None) -> None:
        self.told.append(failure or (progress and progress.txid))
        self.bad += [progress.bad_tuples] if progress else []

    def stage(
        self,
        txid: int,
        compute: Callable[[], list[str]] | None = None,
        digest: str | None = None,
        query_id: str = "q1",
    ) -> None:
        make, digest = compute or (lambda: [f"word {txid}"]), digest or f"{txid:064x}"
        self.batches.run(txid, digest, query_id, lambda record: computed(make()))

    @property
    def staged(self) -> list[int]:
        return [each.txid for each in self.area.staged()]


@contextmanager
def clock(folder: Path, passed: int = 0, **options: Any) -> Iterator[Clock]:
    made = Clock(folder, **options)
    made.batches.open(passed)
    try:
        yield made
    finally:
        made.batches.close()


@contextmanager
def left(folder: Path) -> Iterator[None]:
    """Leave three batches staged, of which the first can't be written."""
    with (
        fail_at("before write", 1, times=9),
        hold_at("before begin", 1) as hold,
        clock(folder) as first,
    ):
        for txid in (1, 2, 3):
            first.stage(txid)
        hold.release()
        with pytest.raises(BatchFailedError):
            first.batches.settle()
    assert first.staged == [1, 2, 3]
    yield


def test_batches_are_committed_behind_their_clock_in_their_order(tmp_path: Path) -> None:
    with clock(tmp_path) as run:
        with hold_at("before begin", 1):
            run.stage(1)
            run.stage(2)
            assert run.staged == [1, 2]
            assert run.told == []
            assert run.batches.next_txid == 3
        run.batches.settle()
        assert run.told == [1, 2]
        assert run.staged == []
    assert run.engine.written == [(Token(1, 0), ["word 1"]), (Token(2, 0), ["word 2"])]


def test_the_clock_waits_where_as_many_as_may_are_pending(tmp_path: Path) -> None:
    with clock(tmp_path, most=2) as run, hold_at("before begin", 1) as hold:
        run.stage(1)
        run.stage(2)
        committed: list[int] = []

        def compute() -> list[str]:
            committed.extend(run.told)
            return ["word 3"]

        third = threading.Thread(target=run.stage, args=(3, compute))
        third.start()
        hold.wait_reached()
        hold.release()
        third.join(60)
        assert committed[0] == 1


def test_a_batch_is_staged_before_any_state_is_written(tmp_path: Path) -> None:
    with clock(tmp_path) as run:

        def watch(point: str, token: Token) -> None:
            if point in ("before begin", "before unstage"):
                assert token.txid in run.staged
            if point == "after unstage":
                assert token.txid not in run.staged
                assert run.runner.next_txid > token.txid

        with watching(watch):
            for txid in (1, 2, 3):
                run.stage(txid)
            run.batches.settle()
    assert run.told == [1, 2, 3]


def test_a_batch_with_too_many_bad_tuples_is_not_staged(tmp_path: Path) -> None:
    book = CounterBook()
    count_bad(book, "parse", 1, 2)
    bad = Words((), Outcome(counters=book.take()), ("a word",))
    with clock(tmp_path, policy=FailurePolicy(max_errors=0.0)) as run:
        with pytest.raises(TooManyBadTuplesError):
            run.batches.run(1, "1" * 64, "q1", lambda record: bad)
        assert run.staged == []
    with clock(tmp_path) as again:
        again.batches.settle()
        assert again.engine.written == []


def test_what_a_staged_batch_has_counted_is_told_by_the_next_run_and_is_in_its_share(
    tmp_path: Path,
) -> None:
    book = CounterBook()
    count_bad(book, "parse", 1, 2)
    bad = Words((), Outcome(counters=book.take()), ("a word",))

    def stage(run: Clock, txid: int) -> None:
        run.batches.run(txid, f"{txid:064x}", "q1", lambda record: bad)

    with (
        fail_at("before write", 1, times=9),
        hold_at("before begin", 1) as hold,
        clock(tmp_path) as first,
    ):
        stage(first, 1)
        stage(first, 2)
        hold.release()
        with pytest.raises(BatchFailedError):
            first.batches.settle()
    with (
        clock(tmp_path, policy=replace(POLICY, max_errors=0.0)) as run,  # which allows less
        pytest.raises(TooManyBadTuplesError, match="3 of the last 6"),
    ):
        stage(run, 3)
    assert run.told == [1, 2]
    assert run.bad == [{"parse": 1}, {"parse": 1}]


def test_every_attempt_writes_what_was_computed_once(tmp_path: Path) -> None:
    words = iter(["first", "second", "third"])
    with clock(tmp_path) as run, fail_at("after write", 1):
        run.stage(1, lambda: [next(words)])
        run.batches.settle()
    assert run.engine.written == [(Token(1, 0), ["first"]), (Token(1, 1), ["first"])]


def test_what_could_not_be_computed_is_staged_when_it_is(tmp_path: Path) -> None:
    words = iter([FailedException("no"), ["second"], ["third"]])

    def compute() -> list[str]:
        word = next(words)
        if isinstance(word, Exception):
            raise word
        return word

    with clock(tmp_path) as run, fail_at("after write", 1):
        with pytest.raises(BatchFailedError):
            run.stage(1, compute)
        assert run.staged == [1]
    with clock(tmp_path) as again:
        again.batches.settle()
    assert run.engine.written == [(Token(1, 0), ["second"])]
    assert again.engine.written == [(Token(1, 1), ["second"])]


def test_a_close_commits_what_is_staged(tmp_path: Path) -> None:
    with hold_at("before begin", 1) as hold, clock(tmp_path) as run:
        run.stage(1)
        run.stage(2)
        run.runner.stopping.set()
        hold.release()
    assert run.told == [1, 2]
    assert run.staged == []


def test_a_batch_that_fails_is_told_and_those_behind_it_stay_staged(tmp_path: Path) -> None:
    with left(tmp_path), clock(tmp_path) as run:
        run.batches.settle()
        assert run.told == [1, 2, 3]
        run.stage(4)
    assert [token.txid for token, _ in run.engine.written] == [1, 2, 3, 4]
    assert [token.attempt for token, _ in run.engine.written] == [2, 0, 0, 0]


def test_the_next_batch_is_staged_while_those_that_were_found_are_committed(
    tmp_path: Path,
) -> None:
    with left(tmp_path), hold_at("before begin", 1) as hold, clock(tmp_path, most=5) as run:
        run.stage(4)
        assert run.staged == [1, 2, 3, 4]
        hold.release()
    assert run.told == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("txid", "query_id", "error"),
    [(2, "q1", PlacementError), (5, "q1", PlacementError), (4, "another", LogMismatchError)],
)
def test_a_batch_that_is_not_next_is_refused_when_those_before_it_are_committed(
    tmp_path: Path, txid: int, query_id: str, error: type[Exception]
) -> None:
    with left(tmp_path), clock(tmp_path) as run:
        with pytest.raises(error):
            run.stage(txid, query_id=query_id)
        assert run.told == [1, 2, 3]
        assert run.staged == []


def test_a_replay_is_skipped_when_those_before_it_are_committed(tmp_path: Path) -> None:
    with left(tmp_path), clock(tmp_path) as run:
        run.stage(3)
        assert run.told == [1, 2, 3, 3]
    assert [token.txid for token, _ in run.engine.written] == [1, 2, 3]


def test_without_max_pending_nothing_is_staged(tmp_path: Path) -> None:
    points: list[str] = []
    with watching(lambda point, _: points.append(point)), clock(tmp_path, most=1) as run:
        run.stage(1)
        assert run.told == [1]
    assert not {*points} & {*STAGING_POINTS}


def test_staging_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = StagingArea.stage
    failures = 2

    def fail(area: StagingArea, batch: StagedFile) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise LogUnavailableError("staged", "No space left on device")
        stage(area, batch)

    monkeypatch.setattr(StagingArea, "stage", fail)
    with clock(tmp_path, policy=FailurePolicy(backoff=0.001)) as run:
        run.stage(1)
    assert run.engine.written == [(Token(1, 0), ["word 1"])]


def test_a_disk_that_stays_away_stops_the_run_with_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(area: StagingArea, batch: StagedFile) -> None:
        raise LogUnavailableError("staged", "No space left on device")

    monkeypatch.setattr(StagingArea, "stage", fail)
    with clock(tmp_path) as run, pytest.raises(OutageError, match="the staging of batch 1"):
        run.stage(1)
    assert run.engine.written == []


def test_what_was_committed_before_a_crash_is_not_committed_again(tmp_path: Path) -> None:
    with clock(tmp_path) as run:
        run.stage(1)
        run.batches.settle()
    ledger, parts = run.runner.ledger, {"words": b'["word 1"]'}
    run.area.stage(StagedFile(ledger.entry.log_id, ledger.claim, "q1", 1, f"{1:064x}", None, parts))
    with clock(tmp_path, passed=1) as again:
        assert again.staged == []
        assert again.batches.next_txid == 2
    assert again.engine.written == []


def path_of(run: Path, txid: int) -> Path:
    [path] = (run / "staged").glob(f"{txid:020d}-*")
    return path


@pytest.mark.parametrize(
    ("lost", "missing", "because"),
    [
        ((1,), 1, "but batch 2 is there"),
        ((2,), 2, "but batch 3 is there"),
        ((3,), 3, "but spark is done with batch 3"),
        ((1, 2, 3), 1, "but spark is done with batch 3"),
    ],
)
def test_a_lost_batch_is_an_error_that_says_how_to_go_on(
    tmp_path: Path, lost: tuple[int, ...], missing: int, because: str
) -> None:
    with left(tmp_path):
        for txid in lost:
            path_of(tmp_path, txid).unlink()
        with pytest.raises(StagingError) as raised, clock(tmp_path, passed=3):
            pass
    told = str(raised.value)
    assert f"batch {missing} is neither committed nor staged, {because}" in told
    assert f"the files numbered {missing - 1} and higher" in told


def test_what_an_overtaken_run_stages_does_not_replace_what_the_later_one_has(
    tmp_path: Path,
) -> None:
    overtaken = Clock(tmp_path)
    overtaken.batches.open(0)
    with left(tmp_path):
        overtaken.stage(1, lambda: ["another word"])
        with pytest.raises(TakenOverError):
            overtaken.batches.settle()
        with clock(tmp_path, passed=3) as again:
            again.batches.settle()
    assert overtaken.engine.written == []
    assert [words for _, words in again.engine.written] == [["word 1"], ["word 2"], ["word 3"]]


def test_what_a_start_has_found_staged_counts_before_what_an_overtaken_run_adds_later(
    tmp_path: Path,
) -> None:
    first, second = Clock(tmp_path), Clock(tmp_path)
    for overtaken in (first, second):
        overtaken.batches.open(0)

    def stage_too_late(run: Clock, word: str) -> None:
        run.stage(1, lambda: [word])
        with pytest.raises(TakenOverError):
            run.batches.settle()

    stage_too_late(first, "found")
    third = Clock(tmp_path)
    with fail_at("after write", 1, times=9):
        third.batches.open(1)
        with pytest.raises(BatchFailedError):
            third.batches.settle()
    stage_too_late(second, "added later")
    with clock(tmp_path, passed=1) as last:
        last.batches.settle()
    written = [words for run in (third, last) for _, words in run.engine.written]
    assert set(map(tuple, written)) == {("found",)}


def test_what_a_start_has_listed_stays_where_one_before_it_goes_on_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with left(tmp_path):
        overtaken, later = Clock(tmp_path), Clock(tmp_path)
        names = later.area.folder.names

        def names_before() -> list[str]:
            listed = names()
            overtaken.batches.open(3)
            overtaken.batches.close()
            return listed

        monkeypatch.setattr(later.area.folder, "names", names_before)
        later.batches.open(3)
        monkeypatch.undo()
        later.batches.settle()
        later.batches.close()
    assert overtaken.engine.written == []
    assert [words for _, words in later.engine.written] == [["word 1"], ["word 2"], ["word 3"]]


def test_a_start_removes_nothing_of_a_later_one(tmp_path: Path) -> None:
    with left(tmp_path):
        overtaken = Clock(tmp_path)
        with hold_at("before begin", 1) as hold, clock(tmp_path, passed=3) as later:
            overtaken.batches.open(3)
            claims = [file.claim for file in overtaken.area.staged()]
            hold.release()
        overtaken.batches.close()
    assert claims == [later.runner.ledger.claim] * 3


def test_a_staged_batch_has_to_go_on_from_the_one_that_counts(tmp_path: Path) -> None:
    overtaken = Clock(tmp_path)
    overtaken.batches.open(0)
    with hold_at("before begin", 1):
        later = Clock(tmp_path)
        later.batches.open(0)
        later.stage(1)
        overtaken.stage(1, digest="another end")
        overtaken.stage(2)
        again = Clock(tmp_path)
        with pytest.raises(ReplayError, match="batch 1 .* with another end"):
            again.batches.open(2)
    for run in (overtaken, later):
        run.batches.close()
        assert run.engine.written == []


def test_batches_that_were_staged_for_another_log_are_refused(tmp_path: Path) -> None:
    with left(tmp_path):
        for path in (tmp_path / "log").iterdir():
            path.unlink()
        with pytest.raises(StagingError, match="batch 1 was staged for the log"):
            Clock(tmp_path).batches.open(0)


def killed(folder: Path, point: str, txid: int) -> int:
    """Run the word count until it is killed at a point of a batch; how it ended."""
    ended = forks.run(staged_run, folder, point, txid)
    assert "Traceback" not in ended.printed, ended.printed
    return ended.code


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("point", [*STAGING_POINTS, *CLOCK_POINTS, *POINTS])
def test_every_word_counts_once_as_computed_where_the_driver_is_killed(
    tmp_path: Path, point: str, most: int
) -> None:
    assert killed(tmp_path, point, 4) == -9
    # The next driver dies while it commits what it has found, or what comes then.
    assert killed(tmp_path, "after write", 6) == -9
    staged_run.run(tmp_path, most)
    assert counts(tmp_path) == EXPECTED
    # What an earlier attempt has written of a batch is what counts: nothing was drawn again.
    assert draws(tmp_path) == [1] * BATCHES
    assert list((tmp_path / "staged").iterdir()) == []
