"""The sums that a run keeps."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.figures.topologies import counted, fed, words
from trident import (
    BatchProgress,
    FeederBatchSpout,
    FixedBatchSpout,
    GeneratorSpout,
    TridentTopology,
)
from trident.batch.lag import Lag
from trident.batch.listening import Listeners
from trident.drpc.errors import DRPCQueueFullError, DRPCTimeoutError
from trident.drpc.query_figures import BOUNDS, QueryFigures
from trident.drpc.service import LocalDRPC
from trident.errors import FailedException
from trident.figures import group_figures
from trident.figures.group_figures import GroupFigures
from trident.figures.group_monitor import GroupMonitor
from trident.figures.reasons import message_of, reason_of
from trident.states.values import Token
from trident.testing import fail_at


def test_figures_are_the_sums_of_all_batches_as_json() -> None:
    with counted(words("cat the", "cat sat", "cat")).start(trigger="available") as run:
        run.awaitTermination()
    told = run.figures()
    assert json.loads(json.dumps(told)) == told
    [group] = told["groups"]
    assert (told["status"], group["status"], group["engine"]) == ("stopped", "stopped", "local")
    assert (group["group"], group["txid"]) == ("words", 3)
    assert (group["batches"], group["tuples"], group["attempts"]) == (3, 5, 3)
    assert (group["keys_read"], group["keys_written"]) == (5, 5)
    assert (group["late"], group["dead_letters"], group["failures"]) == (0, 0, {})
    recent = run.recentProgress
    assert group["recent"] == [json.loads(done.json) for done in recent]
    for step, seconds in group["seconds"].items():
        assert seconds == pytest.approx(sum(done.seconds[step] for done in recent))


def test_failed_attempts_are_counted_by_reason_and_the_last_errors_kept() -> None:
    spout = fed()

    def never(word: str) -> str:
        raise FailedException(f"no {word}")

    topology = TridentTopology()
    topology.newStream("words", spout).map(never, "word").peek(print)
    with topology.start(retries=1, on_failure="dead-letter") as run:
        spout.feed([["cat"]])
    [group] = run.figures()["groups"]
    assert group["failures"] == {"failed": 2}
    assert (group["batches"], group["attempts"], group["dead_letters"]) == (1, 3, 1)
    assert [(each["txid"], each["attempt"]) for each in group["errors"]] == [(1, 0), (1, 0)]
    assert group["errors"][0]["message"] == "no cat"
    assert "in never" in group["errors"][0]["frame"]


def test_what_ends_a_group_is_among_the_errors_once() -> None:
    monitor = GroupMonitor("words")
    monitor.started(Token(5, 0), recovered=True, under_way=False, committed=4)
    monitor.attempt_failed(Token(5, 0), ValueError("broken"), 0.1)
    monitor.ended(ValueError("broken"))
    assert [each["message"] for each in monitor.figures()["errors"]] == ["broken"]
    other = GroupMonitor("words")
    other.started(Token(5, 0), recovered=True, under_way=False, committed=4)
    other.ended(ValueError("before any attempt"))
    told = other.figures()
    [error] = told["errors"]
    assert (error["txid"], error["reason"]) == (5, "error")
    assert told["failures"] == {}


def test_memory_is_bounded_whatever_fails() -> None:
    monitor = GroupMonitor("words")
    for number in range(1000):
        monitor.attempt_failed(Token(1, number), ValueError("x" * 10_000), 0.0)
    errors = monitor.figures()["errors"]
    assert len(errors) == 20
    assert errors[-1]["attempt"] == 999
    assert len(json.dumps(errors)) < 20_000


def test_a_replay_is_no_batch() -> None:
    figures = GroupFigures(0.0)
    figures.add(BatchProgress("words", 4, attempts=0))
    told = figures.to_dict()
    assert (told["txid"], told["batches"], told["attempts"]) == (4, 0, 0)


def test_nothing_is_lost_however_batches_are_summed_up() -> None:
    figures = GroupFigures(0.0)
    for txid in range(1, 1001):
        steps = {"emit": 0.5, "spark" if txid % 7 == 0 else "compute": 0.25}
        engine = "spark" if txid % 7 == 0 else ""
        late = int(txid == 5)
        figures.add(BatchProgress("words", txid, 1, 2, late=late, seconds=steps, engine=engine))
        if txid == 300:
            assert figures.to_dict()["batches"] == 300
    told = figures.to_dict()
    assert (told["batches"], told["tuples"], told["late"], told["txid"]) == (1000, 2000, 1, 1000)
    assert told["seconds"] == {"emit": 500.0, "compute": 858 * 0.25, "spark": 142 * 0.25}
    assert told["engine"] == "spark"


def test_tuples_per_second_are_of_the_last_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(group_figures, "time", lambda: now)
    figures = GroupFigures(0.0)
    assert figures.to_dict()["tuples_per_second"] == 0.0
    for tenth in range(300):
        progress = BatchProgress("words", tenth + 1, attempts=1, tuples=7, at=tenth / 10)
        figures.add(progress)
    now = 30.0
    assert figures.to_dict()["tuples_per_second"] == pytest.approx(70.0)
    now = 35.0
    assert figures.to_dict()["tuples_per_second"] == pytest.approx(35.0)
    now = 100.0
    assert figures.to_dict()["tuples_per_second"] == 0.0
    figures.add(BatchProgress("words", 301, attempts=1, tuples=7, at=3.0))  # the clock is set back
    now = 4.0
    assert figures.to_dict()["tuples_per_second"] == pytest.approx(7 / 4)


def test_calls_of_a_query_are_counted_however_they_end() -> None:
    held, release = threading.Event(), threading.Event()

    def slow(args: str) -> str:
        if args == "wait":
            held.set()
            release.wait()
        return str(1 // len(args))

    topology = TridentTopology()
    topology.newDRPCStream("slow").map(slow, "text")
    with LocalDRPC(topology.plan(), most_waiting=1) as drpc:
        drpc.execute("slow", "a")
        asyncio.run(drpc.execute_async("slow", "a"))
        with pytest.raises(Exception, match="ZeroDivisionError"):
            drpc.execute("slow", "")
        with pytest.raises(DRPCTimeoutError):
            drpc.execute("slow", "wait", timeout=0.01)
        held.wait()
        release.set()
        [told] = drpc.figures()
        assert (told["calls"], told["failed"]) == (4, 2)
        assert told["timed"] == told["within"][f"{BOUNDS[-1]:g}"] == 4
        assert told["p50"] <= told["p99"]
        with pytest.raises(Exception, match="no DRPC function"):
            drpc.execute("made up", "")
        assert [each["function"] for each in drpc.figures()] == ["slow"]


def test_a_refused_call_has_failed_and_took_no_time() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").map(str.upper, "text")
    with LocalDRPC(topology.plan(), most_waiting=0) as drpc:
        with pytest.raises(DRPCQueueFullError):
            drpc.execute("f", "a", timeout=1)
        [told] = drpc.figures()
    assert (told["calls"], told["failed"], told["timed"], told["p50"]) == (1, 1, 0, None)


def test_no_call_is_lost_whichever_threads_ask() -> None:
    figures = QueryFigures("f", Listeners())

    def many() -> None:
        for _ in range(2000):
            figures.add(0.001)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told: dict[str, Any] = figures.to_dict(waiting=0)
    assert (told["calls"], told["within"]["0.001"], told["p99"]) == (8000, 8000, 0.001)


def test_spouts_tell_how_many_tuples_wait() -> None:
    fixed = words("a b", "c")
    assert [fixed.lag(txid) for txid in (1, 2, 3, 4)] == [3, 1, 0, 0]
    assert FixedBatchSpout("word", 1, ("a",), cycle=True).lag(1) is None
    numbers = GeneratorSpout("n long", lambda n: [n], total=10, batch=4)
    pace = numbers.getCoordinator("n", {}, None)
    assert pace.lag(1) is None  # where the last run ended isn't known yet
    pace.initializeTransaction(1, {"from": 0, "to": 2}, None)
    assert pace.lag(1) == 4


def test_the_lag_of_a_group_is_that_of_its_streams() -> None:
    held, release = threading.Event(), threading.Event()

    def slow(word: str) -> str:
        held.set()
        release.wait()
        return word

    class Silent(FeederBatchSpout):
        def lag(self, txid: int) -> int:
            raise RuntimeError("nobody is hurt by this")

    spout, silent = fed(), Silent("word")
    topology = TridentTopology()
    streams = [topology.newStream("a", spout), topology.newStream("b", silent)]
    topology.merge(*streams).map(slow, "word").peek(lambda word: None)
    with topology.start() as run:
        feeding = threading.Thread(target=spout.feed, args=([["x"], ["y"]],))
        feeding.start()
        held.wait()
        told = {"tuples": 2, "detail": "a: 2, b: not known", "held_back": None}
        assert run.figures()["groups"][0]["lag"] == told
        release.set()
        feeding.join()
        assert run.groups["a"].lag() == Lag(0, "a: 0, b: not known")
    assert run.figures()["groups"][0]["lag"] is None


def test_batches_that_overlap_are_counted_once_with_their_failures(tmp_path: Path) -> None:
    spout, state = words(*["cat the"] * 20), f"sqlite:{tmp_path / 'counts.db'}"
    told: list[Any] = []
    with fail_at("before write", txid=7), counted(spout, state).start(max_pending=4) as run:
        run.listen(told.append)
        run.processAllAvailable()
        assert run.drpc.execute("count", "cat") == "[[20]]"
    [group] = run.figures()["groups"]
    assert (group["batches"], group["tuples"], group["failures"]) == (20, 40, {"failed": 1})
    assert sum(done.attempts for done in run.recentProgress) == group["attempts"] == 21
    txids = [event.txid for event in told if isinstance(event, BatchProgress)]
    assert txids == sorted(txids)


def test_a_failure_is_told_by_its_reason_and_a_message_that_is_cut() -> None:
    assert reason_of(FailedException("the geo service timed out")) == "failed"
    assert reason_of(ValueError("no")) == "error"
    assert message_of(ValueError("x" * 1000))[-5:] == "xxxx…"
