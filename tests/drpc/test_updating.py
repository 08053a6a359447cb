"""Functions that update a state: each request is applied once, however often it is asked."""

from __future__ import annotations

import asyncio
import json
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.drpc import updating
from tests.drpc.asking import PATIENCE, until
from tests.drpc.updating import bank, lasting
from tests.states.abilities import PlainMap
from trident import (
    Count,
    DRPCClient,
    FixedBatchSpout,
    MapGet,
    MemoryMapState,
    Split,
    Sum,
    TridentTopology,
)
from trident.api.run import Run
from trident.backends import sqlite
from trident.backends.memory import MemoryMap
from trident.batch.events import AttemptFailed
from trident.batch.watchpoints import watching
from trident.drpc.errors import (
    DRPCClosedError,
    DRPCElsewhereError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCTimeoutError,
    MalformedRequestError,
    NoServerError,
)
from trident.drpc.service import LocalDRPC
from trident.errors import PlanError
from trident.operations.emitted import ListCollector
from trident.operations.kept_answers import KEPT, KeptAnswer, KeptAnswers, digest
from trident.server import DRPCServer
from trident.states.control import ControlRecord
from trident.states.errors import StateError
from trident.states.maps.factory import OpaqueMap
from trident.states.state import StateFactory
from trident.states.values import Token
from trident.testing.points import Hold, fail_at, hold_at
from trident.wire.thrift_binary import (
    CALL,
    REQUEST_ID,
    Message,
    framed,
    message_bytes,
    read_message,
)


def balance(run: Run, name: str = "ann") -> Any:
    [[found]] = json.loads(run.drpc.execute("balance", name))
    return found


@contextmanager
def held(run: Run) -> Iterator[Hold]:
    """A batch is held, so that all requests that come meanwhile are of the next one."""
    with hold_at("before begin") as hold, ThreadPoolExecutor(1) as pool:
        first = pool.submit(run.drpc.execute, "deposit", "zoe 1")
        hold.wait_reached()
        yield hold
        hold.release()
        first.result(PATIENCE)


def test_a_request_that_is_repeated_is_answered_alike_and_applied_once() -> None:
    with bank().start() as run:
        asked = [run.drpc.execute("deposit", "ann 5", request_id="a") for _ in range(3)]
        assert asked == ['[["ann",5]]'] * 3
        assert run.drpc.execute("deposit", "ann 5", request_id="b") == '[["ann",10]]'
        assert run.drpc.execute("deposit", "ann 5") == '[["ann",15]]'
        assert balance(run) == 15


def test_a_request_is_known_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        with lasting(tmp_path).start(checkpoint=tmp_path / "checkpoint") as run:
            assert run.drpc.execute("deposit", "ann 5", request_id="a") == '[["ann",5]]'
            assert balance(run) == 5


@pytest.mark.slow
def test_a_request_is_applied_once_whenever_the_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", updating.__name__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    # Each process has asked for the request that the one before was killed in.
    assert done.stdout.split() == [f'[["ann",{sum_}]]' for sum_ in range(1, 10)]


@pytest.mark.parametrize("point", ["after begin", "after write", "before commit", "after commit"])
def test_a_driver_that_is_taken_over_while_it_answers_applies_nothing_more(
    tmp_path: Path, point: str
) -> None:
    reached, released = threading.Event(), threading.Event()

    def hold_the_first(passed: str, token: Token) -> None:
        if (passed, token.txid) == (point, 2) and not reached.is_set():
            reached.set()
            assert released.wait(PATIENCE)

    checkpoint = tmp_path / "checkpoint"
    late = lasting(tmp_path).start(checkpoint=checkpoint)
    late.drpc.execute("deposit", "ann 1", request_id="a")
    with watching(hold_the_first), ThreadPoolExecutor(1) as pool, ExitStack() as at_last:
        at_last.callback(released.set)
        asked = pool.submit(late.drpc.execute, "deposit", "ann 2", PATIENCE, request_id="b")
        assert reached.wait(PATIENCE)
        (checkpoint / ".lock").unlink()  # as if it were on a machine that is out of reach
        with lasting(tmp_path).start(checkpoint=checkpoint) as run:
            # Of the batch that is tried again the request that it was about is no part.
            assert run.drpc.execute("deposit", "bob 7", request_id="c") == '[["bob",7]]'
            for _ in range(2):
                assert run.drpc.execute("deposit", "ann 2", request_id="b") == '[["ann",3]]'
            released.set()
            if point == "after commit":
                assert asked.result(PATIENCE) == '[["ann",3]]'
            else:
                with pytest.raises(DRPCInternalError, match="isn't known"):
                    asked.result(PATIENCE)
            with pytest.raises((DRPCInternalError, DRPCClosedError)):  # not even what it knows
                late.drpc.execute("deposit", "ann 1", request_id="a")
            assert (balance(run), balance(run, "bob")) == (3, 7)
    late.stop()


def test_of_two_clients_with_one_id_at_the_same_time_one_is_applied_and_both_are_answered() -> None:
    with bank().start() as run, ThreadPoolExecutor(8) as pool:
        with held(run):
            asked = [
                pool.submit(run.drpc.execute, "deposit", "ann 5", request_id="a") for _ in range(8)
            ]
            until(lambda: run.drpc.waiting("deposit") == 8)
        assert {each.result(PATIENCE) for each in asked} == {'[["ann",5]]'}
        assert run.lastProgress is not None
        assert (run.lastProgress.txid, run.lastProgress.tuples, balance(run)) == (2, 8, 5)


def test_requests_that_come_together_are_one_batch_and_each_sees_those_before_it() -> None:
    with bank().start() as run, ThreadPoolExecutor(5) as pool:
        with held(run):
            asked = []
            for waiting in range(5):
                asked.append(pool.submit(run.drpc.execute, "deposit", "ann 5"))
                until(lambda waiting=waiting: run.drpc.waiting("deposit") == waiting + 1)
        sums = [json.loads(each.result(PATIENCE))[0][1] for each in asked]
        assert sums == [5, 10, 15, 20, 25]
        assert run.lastProgress is not None
        assert run.lastProgress.txid == 2


def test_a_request_that_fails_leaves_nothing_and_fails_no_other_of_its_batch() -> None:
    with bank().start() as run, ThreadPoolExecutor(3) as pool:
        with held(run):
            asked = []
            for waiting, args in enumerate(("ann 5", "ann many", "ann 6")):
                asked.append(pool.submit(run.drpc.execute, "deposit", args, request_id=args))
                until(lambda waiting=waiting: run.drpc.waiting("deposit") == waiting + 1)
        assert asked[0].result(PATIENCE) == '[["ann",5]]'
        with pytest.raises(DRPCExecutionError, match="invalid literal for int"):
            asked[1].result(PATIENCE)
        assert asked[2].result(PATIENCE) == '[["ann",11]]'
        with pytest.raises(DRPCExecutionError):  # a failure is not kept: it is asked anew
            run.drpc.execute("deposit", "ann many", request_id="ann many")
        assert balance(run) == 11


def storing(made: Callable[[str], Any], factory: StateFactory) -> TridentTopology:
    """``put`` keeps what a function makes of its arguments."""
    topology = TridentTopology()
    (
        topology.newDRPCStream("deposit", answers=MemoryMapState.Factory())
        .each("args", lambda args: [(args, made(args))], "name, value")
        .groupBy("name")
        .persistentAggregate(factory, "value", Sum(), "balance")
        .newValuesStream()
        .project("name")
    )
    return topology


def test_what_cannot_be_stored_fails_its_own_request_only(tmp_path: Path) -> None:
    made = storing(
        lambda args: 2 + 3j if args == "complex" else 1, sqlite.opaque(tmp_path / "values.db")
    )
    with made.start() as run, ThreadPoolExecutor(3) as pool:
        with held(run):
            names = ["ann", "complex", "bob"]
            asked = [pool.submit(run.drpc.execute, "deposit", name) for name in names]
            until(lambda: run.drpc.waiting("deposit") == 3)
        answers = [asked[0].result(PATIENCE), asked[2].result(PATIENCE)]
        assert answers == ['[["ann"]]', '[["bob"]]']
        with pytest.raises(DRPCExecutionError, match="complex"):
            asked[1].result(PATIENCE)
        assert run.drpc.execute("deposit", "cid") == '[["cid"]]'  # the run goes on


def test_what_fails_costs_the_other_requests_of_its_batch_one_more_run() -> None:
    runs: list[str] = []

    def made(args: str) -> int:
        runs.append(args)
        if args.startswith("bob"):
            raise ValueError("no bob")
        return 1

    names = [f"{name}{number}" for number in range(16) for name in ("ann", "bob")]
    with storing(made, MemoryMapState.Factory()).start() as run, ThreadPoolExecutor(32) as pool:
        with held(run):
            asked = []
            for waiting, name in enumerate(names):
                asked.append(pool.submit(run.drpc.execute, "deposit", name, request_id=name))
                until(lambda waiting=waiting: run.drpc.waiting("deposit") == waiting + 1)
        for name, each in zip(names, asked, strict=True):
            if name.startswith("bob"):
                with pytest.raises(DRPCExecutionError, match="no bob"):
                    each.result(PATIENCE)
            else:
                assert each.result(PATIENCE) == f'[["{name}"]]'
        assert max(map(runs.count, names)) == 2
        assert run.drpc.execute("deposit", "ann7", request_id="ann7") == '[["ann7"]]'
    assert runs.count("ann7") == 2


class Narrow(MemoryMap):
    """A store that refuses some keys, which it tells when it is to write them."""

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[Any], fence: bytes) -> bool:
        if any(b"bob" in key for key in keys):
            raise StateError("this store takes no bob")
        return super().multiPutFenced(keys, values, fence)


def test_what_the_store_refuses_costs_the_other_requests_of_its_batch_no_time() -> None:
    def narrow() -> MemoryMap:
        return Narrow("narrow")

    made = storing(lambda args: 1, OpaqueMap.factory(narrow, hosted="driver"))
    names = [*(f"ann{number}" for number in range(62)), "bob", "cid"]
    failures = []
    with made.start() as run, ThreadPoolExecutor(64) as pool:
        run.listen(lambda event: failures.append(event) if isinstance(event, AttemptFailed) else 0)
        with held(run):
            asked = []
            for waiting, name in enumerate(names):
                asked.append(pool.submit(run.drpc.execute, "deposit", name))
                until(lambda waiting=waiting: run.drpc.waiting("deposit") == waiting + 1)
        for name, each in zip(names, asked, strict=True):
            if name == "bob":
                with pytest.raises(DRPCInternalError, match="this store takes no bob"):
                    each.result(PATIENCE)
            else:
                assert each.result(PATIENCE) == f'[["{name}"]]'
    assert len(failures) == 2  # that of all requests, and that of the one to blame


def test_an_answer_that_is_too_long_to_be_kept_fails_and_nothing_is_applied() -> None:
    made = storing(lambda args: 1, MemoryMapState.Factory())
    with made.start() as run:
        with pytest.raises(DRPCExecutionError, match="and 65,536 are kept at most"):
            run.drpc.execute("deposit", "a" * 2**16, request_id="a")
        assert run.drpc.execute("deposit", "a" * 2**16) == f'[["{"a" * 2**16}"]]'


def test_what_a_state_says_of_the_entries_of_a_request_fails_that_request_only() -> None:
    class Refusing(updating.Note):
        def updateState(self, state: Any, tuples: Any, collector: Any) -> None:
            if tuples[0][0] == "bob":
                raise StateError("this store takes no bob")
            super().updateState(state, tuples, collector)

    topology = TridentTopology()
    topology.newDRPCStream("note", answers=MemoryMapState.Factory()).partitionPersist(
        MemoryMapState.Factory(), "args", Refusing()
    )
    with topology.start() as run:
        for _ in range(2):
            with pytest.raises(DRPCInternalError, match="this store takes no bob"):
                run.drpc.execute("note", "bob")
            assert run.drpc.execute("note", "ann") == "[]"


@pytest.mark.parametrize("point", ["after write", "before commit"])
def test_a_request_is_applied_once_where_an_attempt_of_its_batch_fails(point: str) -> None:
    with bank().start(retries=0) as run:
        with fail_at(point):
            assert run.drpc.execute("deposit", "ann 5", request_id="a") == '[["ann",5]]'
        until(lambda: run.lastProgress)
        assert run.lastProgress is not None
        assert run.lastProgress.attempts == 2
        assert run.drpc.execute("deposit", "ann 5", request_id="a") == '[["ann",5]]'
        assert balance(run) == 5


def test_a_call_whose_time_is_over_before_its_batch_is_not_applied() -> None:
    with bank().start() as run:
        with held(run):
            with pytest.raises(DRPCTimeoutError):
                run.drpc.execute("deposit", "ann 5", timeout=0.05)
            assert run.drpc.waiting("deposit") == 0
        run.processAllAvailable()
        assert balance(run) is None


def test_a_request_that_reads_what_it_updates_reads_what_those_before_it_have_left() -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("take", answers=MemoryMapState.Factory())
    taken = stream.groupBy("args").persistentAggregate(MemoryMapState.Factory(), Count(), "taken")
    stream.stateQuery(taken, "args", MapGet(), "before").project("before")
    assert "each request is a batch" in topology.explain()
    with topology.start() as run, ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda _: run.drpc.execute("take", "seat"), range(8))
        assert {*found} == {"[[null]]", *(f"[[{before}]]" for before in range(1, 8))}


def test_an_id_that_had_other_arguments_is_refused() -> None:
    with bank().start() as run:
        run.drpc.execute("deposit", "ann 5", request_id="a")
        with pytest.raises(MalformedRequestError, match="'a' was given to other arguments before"):
            run.drpc.execute("deposit", "bob 5", request_id="a")
        for none in ("", "a" * 201, "\n", "ü", 1):
            with pytest.raises(MalformedRequestError, match="printable ASCII"):
                run.drpc.execute("deposit", "bob 5", request_id=none)  # type: ignore[arg-type]
        assert balance(run, "bob") is None


def test_a_stopped_run_answers_who_waits_and_refuses_others() -> None:
    run = bank().start()
    with ThreadPoolExecutor(2) as pool:
        with held(run) as hold:
            asked = pool.submit(run.drpc.execute, "deposit", "ann 5")
            until(lambda: run.drpc.waiting("deposit") == 1)
            stopping = pool.submit(run.stop)
            until(lambda: run.groups["drpc/deposit"]._waiting.closed)  # type: ignore[attr-defined]
            with pytest.raises(DRPCClosedError):
                run.drpc.execute("deposit", "ann 5")
            hold.release()
        assert asked.result(PATIENCE) == '[["ann",5]]'
        stopping.result(PATIENCE)


def test_a_run_that_fails_tells_that_nobody_knows_whether_a_request_was_applied() -> None:
    def break_down(reached: str, token: Token) -> None:
        if reached == "before commit":
            raise ZeroDivisionError("by the test")

    run = bank().start()
    with watching(break_down), pytest.raises(DRPCInternalError, match="isn't known"):
        run.drpc.execute("deposit", "ann 5")
    with pytest.raises(ZeroDivisionError):
        run.awaitTermination(PATIENCE)
    with pytest.raises(DRPCClosedError):
        run.drpc.execute("deposit", "ann 5")
    run.stop()


def test_who_waits_for_all_requests_is_told_what_the_run_fails_with() -> None:
    closing_down, released = threading.Event(), threading.Event()

    class Slow(updating.Note):
        def cleanup(self) -> None:
            closing_down.set()
            assert released.wait(PATIENCE)

    def break_down(reached: str, token: Token) -> None:
        raise ZeroDivisionError("by the test")

    topology = TridentTopology()
    topology.newDRPCStream("f", answers=MemoryMapState.Factory()).partitionPersist(
        MemoryMapState.Factory(), "args", Slow()
    )
    run = topology.start()
    with ThreadPoolExecutor(1) as pool, ExitStack() as at_last:
        at_last.callback(released.set)
        with watching(break_down), pytest.raises(DRPCInternalError):
            run.drpc.execute("f", "a")
        assert closing_down.wait(PATIENCE)
        waiting = pool.submit(run.processAllAvailable)
        with pytest.raises(TimeoutError):
            waiting.result(0.05)
        released.set()
        with pytest.raises(ZeroDivisionError):
            waiting.result(PATIENCE)
    run.stop()


def test_over_http_and_thrift_the_id_goes_with_the_request() -> None:
    with bank().start() as run:
        server = run.serve(port=0, thrift_port=0)
        request = Request(
            f"{server.url}/drpc/deposit", b"ann 5", {"Idempotency-Key": "a"}, method="POST"
        )
        assert [urlopen(request).read() for _ in range(2)] == [b'[["ann",5]]'] * 2
        with DRPCClient(f"thrift://127.0.0.1:{server.thrift_port}") as client:
            assert client.execute("deposit", "ann 5", request_id="a") == '[["ann",5]]'
            assert client.execute("deposit", "ann 5", request_id="b") == '[["ann",10]]'
            assert client.execute("deposit", "ann 5") == '[["ann",15]]'
        for unreadable in (b"\xff", b""):
            answer = asked_over_thrift(server.thrift_port, "ann 5", unreadable)
            assert "printable ASCII" in answer.fields[1][1]
        with DRPCClient(server.url) as client:
            asked = client.execute_async("deposit", "ann 5", request_id="b")
            assert asyncio.run(asked) == '[["ann",10]]'
        assert balance(run) == 15


def asked_over_thrift(port: int | None, args: str, request_id: bytes) -> Message:
    """What a client is told that sends the bytes as the id of a deposit."""
    sent = message_bytes("execute", CALL, 0, {1: "deposit", 2: args, REQUEST_ID: "~"})
    sent = sent.replace(b"\0\0\0\1~", len(request_id).to_bytes(4, "big") + request_id)
    with socket.create_connection(("127.0.0.1", port or 0), PATIENCE) as connection:
        connection.sendall(framed(sent))
        answer = connection.makefile("rb")
        return read_message(answer.read(int.from_bytes(answer.read(4), "big")))


@pytest.mark.parametrize("scheme", ["http", "thrift"])
def test_a_client_whose_answer_is_lost_asks_the_next_server_with_the_same_id(scheme: str) -> None:
    with bank().start() as run:
        server = run.serve(port=0, thrift_port=0)
        port = server.port if scheme == "http" else server.thrift_port
        with losing_answers(port) as lossy:
            addresses = [f"{scheme}://127.0.0.1:{each}" for each in (lossy, port)]
            with DRPCClient(*addresses) as client:
                assert client.execute("deposit", "ann 5") == '[["ann",5]]'
        assert balance(run) == 5


@contextmanager
def losing_answers(port: int | None) -> Iterator[int]:
    """A port with one connection, which ends when the server has answered a call of a function."""
    listening = socket.create_server(("127.0.0.1", 0))

    def pass_on() -> None:
        client, _ = listening.accept()
        listening.close()
        with client, socket.create_connection(("127.0.0.1", port or 0)) as server:
            called = False
            while not called:
                for each in select.select([client, server], [], [], PATIENCE)[0]:
                    data = each.recv(4096)
                    if each is client:
                        called = called or b"ann" in data
                        server.sendall(data)
                    elif not called:
                        client.sendall(data)
            server.settimeout(PATIENCE)
            assert server.recv(4096)

    thread = threading.Thread(target=pass_on, daemon=True)
    thread.start()
    with closing(listening):
        yield listening.getsockname()[1]
        thread.join(PATIENCE)


def test_another_process_refuses_and_a_client_asks_the_server_of_the_run(tmp_path: Path) -> None:
    with lasting(tmp_path).start(checkpoint=tmp_path / "checkpoint") as run:
        own = run.serve(port=0)
        run.drpc.execute("deposit", "ann 5")
        with DRPCServer(lasting(tmp_path), port=0, thrift_port=0) as other:
            with pytest.raises(HTTPError) as refused:
                urlopen(f"{other.url}/drpc/deposit", b"ann 5")
            assert refused.value.code == 421
            assert json.loads(refused.value.read())["error"] == "ELSEWHERE"
            assert urlopen(f"{other.url}/drpc/balance/ann").read() == b"[[5]]"
            with DRPCClient(other.url) as client, pytest.raises(DRPCElsewhereError):
                client.execute("deposit", "ann 5")
            with DRPCClient(other.url, own.url) as client:
                assert client.execute("deposit", "ann 6") == '[["ann",11]]'
            thrift = f"thrift://127.0.0.1:{other.thrift_port}"
            with DRPCClient(thrift) as client, pytest.raises(DRPCElsewhereError):
                client.execute("deposit", "ann 5")
            with DRPCClient(thrift, own.url) as client:
                assert client.execute("deposit", "ann 6") == '[["ann",17]]'
            with DRPCClient("127.0.0.1:1", other.url) as client, pytest.raises(NoServerError):
                client.execute("deposit", "ann 5")
    with LocalDRPC(bank().plan()) as drpc, pytest.raises(DRPCElsewhereError):
        drpc.execute("deposit", "ann 5")


def test_answers_are_kept_for_as_long_as_is_said() -> None:
    keeping, first = KeptAnswers(), KeptAnswer("a", digest("x"), "[]")
    state: Any = MemoryMapState.Factory().makeState({}, None, 0, 1)
    then = 1_000 + int(KEPT * 1000)
    for txid, (reached, known) in enumerate([(1_000, False), (then - 1, True), (then, False)], 1):
        record = ControlRecord("a log", Token(txid, 0), txid - 1, reached=reached)
        state.control.begin(record)
        state.beginCommit(record)
        assert keeping.known(state, ["a", "b"]) == ({"a": first} if known else {})
        kept = first if txid == 1 else KeptAnswer("c", "", "[]")
        keeping.updateState(state, [kept], ListCollector("answers", 0))
        state.commit(record)
        state.control.announce(state.control.ready(record))


def test_answers_are_refused_a_store_that_they_could_not_leave() -> None:
    topology = TridentTopology()
    _counted(topology.newDRPCStream("g", answers=OpaqueMap.factory(PlainMap)))
    with pytest.raises(PlanError, match="the store of the answers of 'g' lists its entries and"):
        topology.start()


def _counted(stream: Any) -> Any:
    return stream.groupBy("args").persistentAggregate(MemoryMapState.Factory(), Count(), "count")


def _without_answers(topology: TridentTopology, stream: Any) -> object:
    return _counted(topology.newDRPCStream("g"))


def _reads_other_batches(topology: TridentTopology, stream: Any) -> object:
    words = topology.newStream("words", FixedBatchSpout("args string", 1))
    other = _counted(words)
    return stream.stateQuery(other, "args", MapGet(), "known").partitionPersist(
        MemoryMapState.Factory(), "args", updating.Note(), name="noted"
    )


def _read_by_a_stream(topology: TridentTopology, stream: Any) -> object:
    words = topology.newStream("words", FixedBatchSpout("word string", 1))
    return words.stateQuery(_counted(stream), "word", MapGet(), "count")


def _only_answers(topology: TridentTopology, stream: Any) -> object:
    stream.map(str.upper, "text")
    return topology.start()


def _until_done(topology: TridentTopology, stream: Any) -> object:
    _counted(stream)
    return topology.start(trigger="available")


def _plain_answers(topology: TridentTopology, stream: Any) -> object:
    return topology.newDRPCStream("g", answers="sqlite:answers.db?kind=transactional")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_without_answers, r'newDRPCStream\("g", answers="sqlite:answers.db"\)'),
        (_read_by_a_stream, "a stream can't read a state that the requests to a function update"),
        (_reads_other_batches, "can't read a state of other batches: 'count'"),
        (_only_answers, "answers= is for a DRPC stream that updates a state"),
        (_until_done, "requests come at any time"),
        (_plain_answers, "the answers are kept in an opaque map"),
    ],
)
def test_what_requests_cannot_do_is_refused(
    change: Callable[[TridentTopology, Any], object], text: str
) -> None:
    topology = TridentTopology()
    stream = topology.newDRPCStream("f", answers=MemoryMapState.Factory())
    with pytest.raises(PlanError, match=text):
        change(topology, stream)


def test_an_update_that_is_not_the_last_step_answers_with_what_follows_it() -> None:
    topology = TridentTopology()
    (
        topology.newDRPCStream("count", answers=MemoryMapState.Factory())
        .each("args", Split(), "word")
        .groupBy("word")
        .persistentAggregate(MemoryMapState.Factory(), Count(), "count")
        .newValuesStream()
        .aggregate("count", Sum(), "sum")
    )
    assert "clock: requests" in topology.explain()
    with topology.start() as run:
        assert run.drpc.execute("count", "the cat the") == "[[3]]"
        assert run.drpc.execute("count", "the") == "[[3]]"
