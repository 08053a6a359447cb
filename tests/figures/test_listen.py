"""What listeners are told, and what they can't do to a run."""

from __future__ import annotations

import logging
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.figures.topologies import counted, fed, words
from trident import BatchProgress, FeederBatchSpout, Run, TridentTopology
from trident.batch.events import AttemptFailed, GroupEnded, GroupStarted, QueryEnded
from trident.batch.watchpoints import watching
from trident.drpc.errors import DRPCExecutionError
from trident.errors import FailedException, OperationError
from trident.spouts.feeder import FeedError
from trident.states.errors import StateUnavailableError, UsageError
from trident.states.values import Token


def test_a_listener_is_told_of_the_start_each_batch_and_the_end() -> None:
    spout, told = fed(), list[Any]()
    with counted(spout).start() as run:
        run.listen(told.append)
        spout.feed([["cat"], ["the"]])
        spout.feed([["cat"]])
    start, first, second, end = told
    assert start == GroupStarted("words", 1, 0, False, False, start.at)
    assert [first, second] == run.recentProgress
    assert (first.tuples, second.tuples) == (2, 1)
    assert end == GroupEnded("words", "stopped", None, None, None, end.at)
    assert start.at <= first.at <= second.at <= end.at


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with counted(fed()).start() as run:
        for listen in (run.listen, run.drpc.listen):
            with pytest.raises(UsageError, match="can't be called, as it is None. Give a function"):
                listen(None)  # type: ignore[arg-type]


def test_who_listens_late_is_told_of_start_and_end() -> None:
    with counted(words("a b")).start(trigger="available") as run:
        run.awaitTermination()
    told: list[Any] = []
    run.listen(told.append)
    assert [type(event) for event in told] == [GroupStarted, GroupEnded]


def test_a_start_that_goes_on_says_after_which_batch_and_what_was_under_way(
    tmp_path: Path,
) -> None:
    state, told = f"sqlite:{tmp_path / 'counts.db'}", list[GroupStarted]()

    def killed(point: str, token: Token) -> None:
        if point == "after write":
            raise RuntimeError("killed")

    def fed_once() -> None:
        spout = fed()
        with counted(spout, state).start(checkpoint=tmp_path / "checkpoint") as run:
            with run.listen(lambda event: told.append(event)):
                assert pickle.loads(pickle.dumps(told[-1])) == told[-1]
            spout.feed([["cat"]])

    fed_once()
    with pytest.raises(RuntimeError, match="killed"), watching(killed):
        fed_once()
    fed_once()
    assert [(each.txid, each.attempt, each.recovered, each.under_way) for each in told] == [
        (1, 0, False, False),
        (2, 1, True, False),
        (2, 2, True, True),
    ]
    assert [each.text for each in told] == [
        "words begins with batch 1",
        "words goes on after batch 1",
        "words goes on after batch 1; batch 2 was under way, and is tried again as attempt 2",
    ]
    never = GroupStarted("words", 1, 1, recovered=True, under_way=False, at=0.0)
    assert never.text == "words goes on from its beginning"


def test_an_attempt_that_failed_is_told_with_its_reason_and_the_frame() -> None:
    spout, told, failing = fed(), list[Any](), [True]

    def often(word: str) -> str:
        if failing and failing.pop():
            raise FailedException("the geo service timed out")
        return word

    topology = TridentTopology()
    topology.newStream("words", spout).map(often, "word").peek(print)
    with topology.start() as run:
        run.listen(told.append)
        spout.feed([["cat"]])
    failed = told[1]
    assert isinstance(failed, AttemptFailed)
    assert (failed.txid, failed.attempt, failed.reason) == (1, 0, "failed")
    assert failed.error == "FailedException"
    assert failed.message == "the geo service timed out"
    assert failed.frame is not None
    assert failed.frame.startswith(f'File "{__file__}", line ')
    assert ", in often" in failed.frame
    assert told[2].attempts == 2


def test_an_error_is_told_without_the_tuple() -> None:
    spout, told = fed(), list[Any]()
    topology = TridentTopology()
    topology.newStream("words", spout).map(lambda word: 1 / 0, "n").peek(print)
    run = topology.start()
    run.listen(told.append)
    with pytest.raises(OperationError), run:
        spout.feed([["secret"]])
    _, failed, end = told
    assert (failed.reason, failed.error) == ("error", "ZeroDivisionError")
    assert failed.message == end.message == "ZeroDivisionError: division by zero"
    assert "<lambda>" in failed.frame
    assert (end.status, end.reason, end.error) == ("failed", "error", "ZeroDivisionError")
    assert "secret" not in repr(told)


def test_a_store_that_is_away_is_told_for_each_attempt_it_spoils() -> None:
    def away(point: str, token: Token) -> None:
        if point == "before write" and token.attempt < 2:
            raise StateUnavailableError("the store at here:1", "no answer")

    spout, told = fed(), list[Any]()
    with watching(away), counted(spout).start() as run:
        run.listen(told.append)
        spout.feed([["cat"]])
    failed = [event for event in told if isinstance(event, AttemptFailed)]
    assert [(each.attempt, each.reason) for each in failed] == [
        (0, "store_unavailable"),
        (1, "store_unavailable"),
    ]
    assert failed[0].message == "the store at here:1: no answer."


def test_a_callback_that_raises_hurts_nobody_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spout, told = fed(), list[Any]()

    def broken(event: Any) -> None:
        raise SystemExit if isinstance(event, GroupStarted) else ValueError("broken")

    with caplog.at_level(logging.INFO, "trident"), counted(spout).start() as run:
        run.listen(broken)
        run.listen(told.append)
        spout.feed([["cat"]])
        spout.feed([["cat"]])
    assert len(told) == 4
    logged = [each for each in caplog.records if "listener" in each.getMessage()]
    assert [each.getMessage() for each in logged] == ["a listener failed on a GroupStarted"]
    assert "in broken" in str(logged[0].exc_text)


def test_events_come_in_the_thread_of_the_group() -> None:
    spout, threads = fed(), list[str]()
    with counted(spout).start() as run:
        run.listen(lambda event: threads.append(threading.current_thread().name))
        spout.feed([["cat"]])
    assert threads == [threading.current_thread().name, "trident-words", "trident-words"]


def test_stopping_ends_the_listening_also_from_within() -> None:
    spout, told = fed(), list[Any]()
    with counted(spout).start() as run:
        with run.listen(told.append):
            pass
        listening = run.listen(lambda event: (told.append(event), listening.stop()))
        spout.feed([["cat"]])
        spout.feed([["cat"]])
    assert [type(event) for event in told] == [GroupStarted, GroupStarted, BatchProgress]


def test_a_callback_may_ask_the_run_and_listen_itself() -> None:
    spout, told = fed(), list[Any]()

    def nested(event: Any) -> None:
        told.append(run.figures()["groups"][0]["batches"])
        if isinstance(event, BatchProgress):
            run.listen(told.append).stop()

    with counted(spout).start() as run:
        run.listen(nested)
        spout.feed([["cat"]])
    assert told[0:2] == [0, 1]
    assert isinstance(told[2], GroupStarted)


@pytest.mark.parametrize("when", [GroupStarted, BatchProgress, GroupEnded])
def test_a_callback_that_stops_the_run_is_refused_and_ends_it_by_asking(when: type) -> None:
    spout, refused = fed(), list[str]()

    def stopping(event: Any) -> None:
        if isinstance(event, when):
            try:
                run.stop()
            except RuntimeError as error:
                refused.append(str(error))

    with counted(spout).start() as run:
        run.listen(stopping)
        if when is BatchProgress:
            spout.feed([["cat"]])
        elif when is GroupEnded:
            run.groups["words"].request_stop()
        assert run.groups["words"].awaitTermination(30)
    assert [text.rpartition(": ")[2] for text in refused] == [
        "use run.groups['words'].request_stop()"
    ]


def test_each_group_is_told_of() -> None:
    spouts = {name: FeederBatchSpout("word") for name in "ab"}
    topology = TridentTopology()
    for name, spout in spouts.items():
        topology.newStream(name, spout).peek(lambda word: None)
    told: list[Any] = []
    with topology.start() as run:
        run.listen(told.append)
        spouts["b"].feed([["x"]])
        spouts["a"].feed([["x"]])
    assert {done.group for done in run.recentProgress} == {"b", "a"}
    assert sorted(event.group for event in told) == ["a"] * 3 + ["b"] * 3


def test_who_listens_to_queries_is_told_of_each_end_and_of_no_argument() -> None:
    def strict(args: str) -> str:
        return str(int(args))

    topology = TridentTopology()
    topology.newDRPCStream("strict").map(strict, "text")
    told: list[QueryEnded] = []
    with topology.start() as run:
        run.drpc.listen(told.append)
        run.drpc.execute("strict", "1")
        run.drpc.execute("strict", "1", timeout=10)
        with pytest.raises(DRPCExecutionError):
            run.drpc.execute("strict", "secret")
    assert [(each.function, each.error) for each in told] == [
        ("strict", None),
        ("strict", None),
        ("strict", "DRPCExecutionError"),
    ]
    assert "secret" not in repr(told)


def test_a_run_without_groups_has_nothing_to_tell() -> None:
    assert Run([]).recentProgress == []
    assert Run([]).figures()["groups"] == []


def test_an_exception_whose_text_can_not_be_had_ends_the_run_all_the_same() -> None:
    class Broken(FailedException):
        def __str__(self) -> str:
            raise ValueError("no text")

    def broken(word: str) -> str:
        raise Broken

    topology = TridentTopology()
    topology.newStream("words", spout := fed()).map(broken, "word").peek(print)
    told: list[Any] = []
    run = topology.start(retries=0)
    run.listen(told.append)
    with pytest.raises(FeedError):
        spout.feed([["cat"]])
    with pytest.raises(ValueError, match="no text"):
        run.groups["words"].awaitTermination(60)
    assert told[1].message == "Broken"
    run.stop()
