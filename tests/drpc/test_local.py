"""Queries in this process: answers, errors, and many callers at once."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import pytest

from trident.api.topology import TridentTopology
from trident.backends import sqlite
from trident.backends.memory import MemoryMapState
from trident.client.drpc_client import DRPCClient
from trident.drpc.errors import DRPCClosedError, DRPCExecutionError, UnknownFunctionError
from trident.drpc.service import LocalDRPC
from trident.errors import FailedException, OperationError
from trident.operations.builtin import Count, FilterNull, MapGet, SnapshotGet, Split, Sum
from trident.server.limits import DRPCLimits
from trident.spouts.feeder import FeederBatchSpout
from trident.spouts.fixed import FixedBatchSpout
from trident.states.state import StateFactory


def answered_by(step: Any, fields: str = "made") -> LocalDRPC:
    topology = TridentTopology()
    topology.newDRPCStream("f").each("args", step, fields).project(fields)
    return LocalDRPC(topology.plan())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        (2.5, "2.5"),
        ("ü🐄", '"ü🐄"'),
        ([1, [None]], "[1,[null]]"),
        ({"a": 1, 2: "b"}, '{"a":1,"2":"b"}'),
        (2**70, str(2**70)),
        (b"a\xff", '"Yf8="'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), '"2026-01-02T03:00:00+00:00"'),
        (Decimal("1.50"), '"1.50"'),
        (nan, "null"),
        (1 + 2j, '"(1+2j)"'),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_an_answer_is_storms_json(value: object, shown: str) -> None:
    with answered_by(lambda args: [value]) as drpc:
        assert drpc.execute("f", "") == f"[[{shown}]]"


def test_no_tuple_is_an_empty_answer() -> None:
    with answered_by(lambda args: None) as drpc:
        assert drpc.execute("f", "") == "[]"


def test_an_unknown_function_is_answered_with_the_nearest() -> None:
    with (
        answered_by(str.split) as drpc,
        pytest.raises(UnknownFunctionError, match="'ff'; there are: f. Did you mean 'f'"),
    ):
        drpc.execute("ff", "")


def test_a_topology_without_queries_says_so() -> None:
    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("w string", 1, ("a",)))
    with (
        topology.start() as run,
        pytest.raises(UnknownFunctionError, match="newDRPCStream"),
    ):
        run.drpc.execute("words", "")


def test_a_failing_query_names_function_arguments_and_cause() -> None:
    def parsed(args: str) -> list[int]:
        return [int(args)]

    with answered_by(parsed) as drpc:
        with pytest.raises(DRPCExecutionError, match=r"f\('x'\) failed: ValueError") as caught:
            drpc.execute("f", "x")
        assert isinstance(caught.value.__cause__, OperationError)
        assert "in parsed" in str(caught.value.__cause__)
        assert "Program" not in str(caught.value)
        assert "in parsed" in str(pickle.loads(pickle.dumps(caught.value)))  # without its cause
        assert drpc.execute("f", "7") == "[[7]]"


def test_a_failed_attempt_of_a_query_is_its_failure() -> None:
    def fails(args: str) -> list[int]:
        raise FailedException("not now")

    with answered_by(fails) as drpc, pytest.raises(DRPCExecutionError, match="not now"):
        drpc.execute("f", "")


def test_arguments_are_text() -> None:
    with answered_by(str.split) as drpc, pytest.raises(DRPCExecutionError, match="found int"):
        drpc.execute("f", 5)  # type: ignore[arg-type]


def test_arguments_of_a_class_below_str_are_plain_text() -> None:
    class Text(str):
        __slots__ = ()

    with answered_by(lambda args: [type(args).__name__, args]) as drpc:
        assert drpc.execute("f", Text("a")) == '[["str"],["a"]]'


def test_a_stopped_run_answers_no_more() -> None:
    topology = TridentTopology()
    topology.newDRPCStream("f").each("args", Split(), "word")
    with topology.start() as run:
        assert run.drpc.execute("f", "a") == '[["a","a"]]'
    with pytest.raises(DRPCClosedError):
        run.drpc.execute("f", "a")


class Counts:
    """Two states of one stream; the query sees both."""

    def __init__(self, words: StateFactory, total: StateFactory) -> None:
        self.topology = TridentTopology()
        self.spout = FeederBatchSpout("sentence string")
        stream = self.topology.newStream("s", self.spout).each("sentence", Split(), "word")
        by_word = stream.groupBy("word").persistentAggregate(words, Count(), "count")
        of_all = stream.persistentAggregate(total, Count(), "total")
        (
            self.topology.newDRPCStream("both")
            .each("args", Split(), "word")
            .groupBy("word")
            .stateQuery(by_word, "word", MapGet(), "count")
            .stateQuery(of_all, SnapshotGet(), "total")
            .each("count", FilterNull())
            .project("word, count, total")
        )
        (
            self.topology.newDRPCStream("words")
            .each("args", Split(), "word")
            .groupBy("word")
            .stateQuery(by_word, "word", MapGet(), "count")
            .each("count", FilterNull())
            .aggregate("count", Sum(), "sum")
        )


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.slow
@pytest.mark.parametrize(("store", "batches"), [("memory", 150), ("sqlite", 30)])
def test_many_callers_see_whole_batches_only_while_batches_run(
    store: str, batches: int, tmp_path: Path
) -> None:
    if store == "memory":
        counts = Counts(MemoryMapState.Factory(), MemoryMapState.Factory())
    else:
        path = tmp_path / "counts.db"
        counts = Counts(sqlite.opaque(path), sqlite.opaque(path))
    finished = threading.Event()

    def ask(execute: Callable[[str, str], str]) -> int:
        asked = seen = 0
        last = False
        while not (last and asked > 50):
            last = finished.is_set()
            rows = json.loads(execute("both", "a b c"))
            # Every batch has one of each, so that a torn read would show.
            assert {(count * 3 == total) for _, count, total in rows} <= {True}
            assert rows == [] or rows[0][1] >= seen
            seen = rows[0][1] if rows else 0
            asked += 1
        return seen

    with counts.topology.start() as run, ThreadPoolExecutor(8) as pool, event_loop() as loop:

        def from_the_loop(function: str, args: str) -> str:
            call = run.drpc.execute_async(function, args, 60)
            return asyncio.run_coroutine_threadsafe(call, loop).result()

        server = run.serve(port=0, thrift_port=0, limits=DRPCLimits(timeout=60))
        over_http = DRPCClient(server.url, timeout=60)
        over_thrift = DRPCClient(f"thrift://127.0.0.1:{server.thrift_port}", timeout=60)
        ways = [run.drpc.execute, from_the_loop, over_http.execute, over_thrift.execute] * 2
        callers = [pool.submit(ask, way) for way in ways]
        try:
            for _ in range(batches):
                counts.spout.feed([("a b",), ("c",)], 60)
        finally:
            finished.set()
        assert [caller.result() for caller in callers] == [batches] * 8
        over_http.close()
        over_thrift.close()


def test_states_are_answered_for_without_a_run(tmp_path: Path) -> None:
    counts = Counts(sqlite.opaque(tmp_path / "db"), sqlite.opaque(tmp_path / "db"))
    with LocalDRPC(counts.topology.plan()) as drpc:
        with pytest.raises(DRPCExecutionError, match="there is no state with the prefix"):
            drpc.execute("words", "a b")
        with counts.topology.start(checkpoint=tmp_path / "run") as run:
            assert run.drpc.execute("words", "a b") == "[[0]]"
            counts.spout.feed([("a b a",)], 60)
            assert run.drpc.execute("words", "a b") == "[[3]]"
        assert drpc.execute("words", "a b") == "[[3]]"
        assert json.loads(drpc.execute("both", "b")) == [["b", 1, 3]]
