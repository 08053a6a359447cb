"""Batches of Structured Streaming that are staged, and committed while the next is computed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.lines import NATIVE_SPLIT, PATIENCE, Lines
from tests.spark.test_streaming import failing_once, inverse
from trident import Adopt, Count, TridentTopology
from trident.backends import StateSpec, sqlite
from trident.batch.errors import BatchFailedError
from trident.batch.watchpoints import watching
from trident.errors import OperationError
from trident.log.errors import AdoptionError, ReplayError, StagingError
from trident.states.errors import FailedException, StateUnavailableError
from trident.states.values import Token
from trident.testing import fail_at, hold_at


@pytest.fixture
def lines(spark: SparkSession, tmp_path: Path) -> Lines:
    return Lines(spark, tmp_path)


def staged(lines: Lines) -> list[int]:
    """The batches that are staged."""
    folder = lines.checkpoint / "lines" / "staged"
    found = folder.glob("*.staged") if folder.is_dir() else []
    return sorted(int(path.name.split("-")[0]) for path in found)


def spark_log(lines: Lines, name: str) -> list[int]:
    folder = lines.checkpoint / "lines" / "spark" / name
    found = folder.iterdir() if folder.is_dir() else []
    return sorted(int(path.name) for path in found if path.name.isdecimal())


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < deadline
        sleep(0.01)


def leave_staged(lines: Lines, **options: Any) -> None:
    """Stage the first two batches, and end with none of them committed."""
    with fail_at("before write", 1, times=9), hold_at("before begin", 1) as hold:
        run = lines.start(max_pending=3, retries=0, **options)
        wait_for(lambda: spark_log(lines, "commits") == [0, 1])
        hold.release()
        with pytest.raises(BatchFailedError, match="batch 1"):
            run.awaitTermination(PATIENCE)
        run.stop()
    assert staged(lines) == [1, 2]


@pytest.mark.parametrize("split", [None, NATIVE_SPLIT], ids=["python", "native"])
def test_every_file_is_counted_once_over_restarts(lines: Lines, split: Any) -> None:
    lines.write("the cow", "jumped over\nthe moon", "the end")
    lines.count(lines.topology(split), max_pending=2)
    assert lines.counts == lines.expected
    lines.write("the  end", "", "the cow")
    lines.count(lines.topology(split), max_pending=3)
    assert lines.counts == lines.expected
    assert staged(lines) == []


def test_the_next_batches_are_staged_while_one_is_committed_up_to_max_pending(
    lines: Lines,
) -> None:
    lines.write("a", "b", "c", "d")
    with hold_at("before write", 1) as hold, lines.start(max_pending=3) as run:
        hold.wait_reached()
        wait_for(lambda: staged(lines) == [1, 2, 3])
        wait_for(lambda: spark_log(lines, "offsets") == [0, 1, 2, 3])
        assert run.lastProgress is None
        hold.release()
        assert run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert [(each.txid, each.attempts, each.tuples) for each in progress] == [
        (txid, 1, 1) for txid in (1, 2, 3, 4)
    ]
    assert staged(lines) == []
    assert lines.counts == lines.expected


def test_a_state_sees_one_batch_after_the_other(lines: Lines) -> None:
    lines.write("a", "b", "c")
    passed: list[tuple[str, int]] = []
    with watching(lambda point, token: passed.append((point, token.txid))):
        lines.count(max_pending=3)
    points = ("before begin", "after commit", "after announce", "after unstage")
    seen = [each for each in passed if each[0] in points]
    assert seen == [(point, txid) for txid in (1, 2, 3) for point in points]
    for txid in (1, 2, 3):
        assert passed.index(("after stage", txid)) < passed.index(("before begin", txid))


def test_a_stop_commits_all_that_is_staged(lines: Lines) -> None:
    lines.write("a", "b", "c", "d", "e")
    with hold_at("before begin", 1) as hold:
        run = lines.start(trigger=None, max_pending=3)
        wait_for(lambda: staged(lines) == [1, 2, 3])
        stopping = threading.Thread(target=run.stop)
        stopping.start()
        hold.release()
        stopping.join(PATIENCE)
    assert run.exception() is None
    assert staged(lines) == []
    assert len(lines.counts) >= 3
    lines.count()
    assert lines.counts == lines.expected


def test_waiting_for_all_that_is_available_waits_for_the_commits(lines: Lines) -> None:
    lines.write("a b", "a")
    with lines.start(trigger=None, max_pending=3) as run:
        run.processAllAvailable()
        assert run.drpc.execute("words", "a b c") == "[[3]]"
        lines.write("c")
        run.processAllAvailable()
        assert run.drpc.execute("words", "a b c") == "[[4]]"
        assert staged(lines) == []


def test_a_batch_that_fails_is_written_again_as_it_was_computed(lines: Lines) -> None:
    lines.write("a b a", "b", "c")
    computed: list[int] = []

    def watch(point: str, token: Token) -> None:
        if point == "before stage":
            computed.append(token.txid)

    with watching(watch), fail_at("after write", 2, times=2), lines.start(max_pending=3) as run:
        assert run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert computed == [1, 2, 3]
    assert [each.attempts for each in progress] == [1, 3, 1]
    assert lines.counts == lines.expected


@pytest.mark.parametrize(
    "error", [FailedException("not yet"), StateUnavailableError("geo", "it is away")]
)
def test_a_batch_that_fails_while_it_is_computed_has_another_attempt(
    lines: Lines, tmp_path: Path, error: Exception
) -> None:
    lines.write("a b a", "b")
    with lines.start(lines.topology(failing_once(tmp_path, error)), max_pending=2) as run:
        assert run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert [each.attempts for each in progress] == [2, 1]
    assert lines.counts == lines.expected


def test_a_users_error_stops_the_run_after_the_batches_before_it(lines: Lines) -> None:
    lines.write("ok", "fine", "\n")
    run = lines.start(lines.topology(inverse), max_pending=3)
    with pytest.raises(OperationError, match="ZeroDivisionError"):
        run.awaitTermination(PATIENCE)
    run.stop()
    assert lines.counts == {"0.5": 1, "0.25": 1}
    assert staged(lines) == []
    lines.count()  # splits, in place of what failed
    assert lines.counts == {"0.5": 1, "0.25": 1}


def test_a_batch_that_is_given_up_leaves_those_behind_it_as_they_are(lines: Lines) -> None:
    lines.write("a b a", "b", "c")
    with (
        fail_at("after write", 2, times=2),
        lines.start(max_pending=3, retries=1, on_failure="dead-letter") as run,
    ):
        assert run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert [each.dead_letter is None for each in progress] == [True, False, True]
    assert lines.counts == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("pending", [1, 3])
def test_a_start_commits_what_is_staged_first(lines: Lines, pending: int) -> None:
    lines.write("a b", "b")
    leave_staged(lines)
    assert lines.counts == {}
    with lines.start(max_pending=pending) as run:
        assert run.awaitTermination(PATIENCE)
        progress = run.groups["lines"].recentProgress
    assert [(each.txid, each.attempts) for each in progress] == [(1, 1), (2, 1)]
    assert staged(lines) == []
    lines.write("c")
    lines.count(max_pending=pending)
    assert lines.counts == lines.expected


def test_a_staged_batch_is_not_read_from_its_source_again(lines: Lines) -> None:
    lines.write("a b", "b")
    leave_staged(lines)
    expected = lines.expected
    (lines.checkpoint / "lines" / "spark" / "commits" / "1").unlink()  # Spark replays batch 2
    for path in lines.texts.iterdir():
        path.write_text("other words")
    lines.count(max_pending=2)
    assert lines.counts == expected


def test_a_staged_batch_that_is_replayed_with_other_content_is_an_error(lines: Lines) -> None:
    lines.write("a b", "b")
    leave_staged(lines)
    (lines.checkpoint / "lines" / "spark" / "commits" / "1").unlink()
    offsets = lines.checkpoint / "lines" / "spark" / "offsets" / "1"
    offsets.write_text(offsets.read_text().replace("batchTimestampMs", "batchTimestampMz"))
    crc = offsets.with_name(".1.crc")
    crc.unlink(missing_ok=True)
    run = lines.start(max_pending=2)
    with pytest.raises(ReplayError, match="batch 2 is committed"):
        run.awaitTermination(PATIENCE)
    run.stop()
    assert lines.counts == lines.expected


@pytest.mark.parametrize("stage", [True, False], ids=["staged", "committed"])
def test_where_the_last_batch_ends_has_to_be_where_it_ended(lines: Lines, stage: bool) -> None:
    lines.write("a b", "b")
    leave_staged(lines) if stage else lines.count()
    offsets = lines.checkpoint / "lines" / "spark" / "offsets" / "1"
    offsets.write_text(offsets.read_text().replace('"logOffset":1', '"logOffset":0'))
    offsets.with_name(".1.crc").unlink(missing_ok=True)
    run = lines.start(max_pending=2)
    with pytest.raises(ReplayError, match="batch 2 is committed"):
        run.awaitTermination(PATIENCE)
    run.stop()
    assert lines.counts == lines.expected


def test_a_staged_batch_that_is_lost_is_an_error_that_says_how_to_go_on(lines: Lines) -> None:
    lines.write("a b", "b", "c")
    with fail_at("before write", 2, times=9), hold_at("before begin", 2) as hold:
        run = lines.start(max_pending=3, retries=0)
        wait_for(lambda: spark_log(lines, "commits") == [0, 1, 2])
        hold.release()
        with pytest.raises(BatchFailedError):
            run.awaitTermination(PATIENCE)
        run.stop()
    [second, third] = sorted((lines.checkpoint / "lines" / "staged").iterdir())
    second.unlink()
    with pytest.raises(StagingError, match="batch 2 is neither committed nor staged, but batch 3"):
        lines.start(max_pending=3)
    third.unlink()
    with pytest.raises(StagingError, match="is done with batch 3") as raised:
        lines.start()
    assert "/offsets and /commits the files numbered 1 and higher" in str(raised.value)
    assert lines.counts == {"a": 1, "b": 1}
    for name in ("offsets", "commits"):
        for path in (lines.checkpoint / "lines" / "spark" / name).iterdir():
            if int(path.name.strip(".").partition(".")[0]) >= 1:
                path.unlink()
    lines.count(max_pending=3)
    assert lines.counts == lines.expected


def test_a_damaged_staged_batch_is_an_error(lines: Lines) -> None:
    lines.write("a b", "b")
    leave_staged(lines)
    [first, _] = sorted((lines.checkpoint / "lines" / "staged").iterdir())
    whole = first.read_bytes()
    first.write_bytes(whole[:-20])
    with pytest.raises(StagingError, match="truncated or damaged"):
        lines.start()
    first.write_bytes(whole)
    lines.count()
    assert lines.counts == lines.expected


def test_staged_batches_of_another_topology_are_refused(lines: Lines) -> None:
    def counted(state: Any, name: str) -> TridentTopology:
        topology = TridentTopology()
        words = topology.newStream("lines", lines.stream()).each("value", str.split, "word string")
        words.groupBy("word").persistentAggregate(state, Count(), "count", name=name)
        return topology

    lines.write("a b", "b")
    leave_staged(lines)
    other = counted(sqlite.opaque(lines.folder / "counts.db", "others"), "others")
    with pytest.raises(StagingError, match="hold updates of count, but .* updates others"):
        lines.start(other)
    newer = StateSpec(lines.factory, schema_version=2, upgrade=lambda value, version: value)
    with pytest.raises(StagingError, match="1 to 2 update the state 'count' as it was"):
        lines.start(counted(newer, "count"))
    lines.count(counted(StateSpec(lines.factory, renamed_from="count"), "counts"))
    assert lines.counts == lines.expected


def test_a_checkpoint_with_staged_batches_is_not_adopted(lines: Lines) -> None:
    lines.write("a b", "b")
    leave_staged(lines)
    old, lines.checkpoint = lines.checkpoint, lines.folder / "another"
    with pytest.raises(AdoptionError, match="batches 1 to 2 are staged"):
        lines.start(adopt=Adopt.from_checkpoint(old))
    lines.checkpoint = old
    lines.count()
    assert lines.counts == lines.expected
    lines.checkpoint = lines.folder / "another"
    lines.count(adopt=Adopt.from_checkpoint(old))


def test_staged_batches_of_a_log_that_is_gone_are_refused(lines: Lines) -> None:
    lines.write("a b", "b")
    leave_staged(lines)
    for path in (lines.checkpoint / "lines" / "log").iterdir():
        path.unlink()
    (lines.folder / "counts.db").unlink()
    with pytest.raises(StagingError, match="batch 1 was staged for the log"):
        lines.start()


def test_no_batch_is_computed_while_too_many_bytes_are_staged(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trident.batch.committer.PENDING_BYTES", 1)
    lines.write("a", "b", "c", "d")
    with hold_at("before write", 1) as hold, lines.start(max_pending=9) as run:
        hold.wait_reached()
        wait_for(lambda: spark_log(lines, "offsets") == [0, 1])
        assert staged(lines) == [1]
        hold.release()
        assert run.awaitTermination(PATIENCE)
    assert lines.counts == lines.expected
