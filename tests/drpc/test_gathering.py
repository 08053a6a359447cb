"""Calls that come together are answered together, and every call ends."""

from __future__ import annotations

import asyncio
import gc
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread, get_ident
from typing import Any
from weakref import ref

import pytest

from tests.drpc.asking import PATIENCE, Asked, HeldGet, asking, counts, held, until
from trident import Count, Function, MapGet, Split, Sum, TridentTopology
from trident.backends import sqlite
from trident.drpc import calls, errors
from trident.drpc import gathering as gathering_module
from trident.drpc.errors import (
    DRPCClosedError,
    DRPCError,
    DRPCExecutionError,
    DRPCInternalError,
    DRPCQueueFullError,
    DRPCTimeoutError,
    DRPCUnavailableError,
    DRPCUsageError,
)
from trident.drpc.query import Query
from trident.drpc.service import LocalDRPC
from trident.errors import FailedException
from trident.states.cut import BatchMovedOn
from trident.states.errors import CorruptStateError, StateUnavailableError
from trident.states.maps.reading import read_committed
from trident.states.state import StateFactory
from trident.states.values import Token


@pytest.fixture(autouse=True)
def no_answer_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the machine does meanwhile."""
    monkeypatch.setattr(gathering_module, "_AT_ONCE", 60.0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tick takes long."""
    monkeypatch.setattr(gathering_module, "LONG", 1e9)


@pytest.mark.usefixtures("patient")
def test_calls_that_come_together_ask_each_state_once() -> None:
    with held() as (drpc, get):
        callers = [Asked(drpc, "a b") for _ in range(8)]
        until(lambda: drpc.waiting("words") == 8)
        get.go_on.set()
        assert [each.ended() for each in callers] == ['[["a",1],["b",2]]'] * 8
        assert get.asked == [["held"], ["a", "b"] * 8]


@pytest.mark.usefixtures("patient")
def test_of_calls_that_are_answered_together_only_the_failing_one_fails() -> None:
    with held() as (drpc, get):
        callers = [Asked(drpc, args) for args in ("a", "broken", "b", "")]
        until(lambda: drpc.waiting("words") == 4)
        get.go_on.set()
        a, broken, b, nothing = [each.ended() for each in callers]
        assert (a, b, nothing) == ('[["a",1]]', '[["b",2]]', "[]")
        assert isinstance(broken, DRPCExecutionError)
        assert broken.summary.startswith("ValueError: broken is no word in the step stateQuery(")
        assert "File" not in broken.summary


def test_a_tick_that_takes_long_holds_nobody_up() -> None:
    with held() as (drpc, get):
        assert drpc.execute("words", "a") == '[["a",1]]'
        assert asyncio.run(drpc.execute_async("words", "b")) == '[["b",2]]'
        assert not get.go_on.is_set()


def test_a_caller_alone_is_answered_in_its_own_thread_unless_it_gives_a_time() -> None:
    topology = TridentTopology()
    known = topology.newStaticState(counts({}), name="counts")
    threads: list[int] = []
    (
        topology.newDRPCStream("f")
        .stateQuery(known, "args", MapGet(), "count")
        .peek(lambda *values: threads.append(get_ident()))
    )
    with LocalDRPC(topology.plan()) as drpc:
        drpc.execute("f", "a")
        drpc.execute("f", "a", timeout=5)
    assert threads[0] == get_ident() != threads[1]


def words(factory: StateFactory, function: Any) -> LocalDRPC:
    topology = TridentTopology()
    known = topology.newStaticState(factory, name="counts")
    (
        topology.newDRPCStream("words")
        .each("args", function, "word")
        .stateQuery(known, "word", MapGet(), "count")
        .aggregate("count", Sum(), "sum")
    )
    return LocalDRPC(topology.plan())


class Mine(Split):
    """What is derived from an operation of the library may do anything."""


def test_a_query_that_never_waits_is_answered_in_the_thread_of_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Thread] = []

    class Noted(Thread):
        def start(self) -> None:
            started.append(self)
            super().start()

    monkeypatch.setattr("trident.drpc.gathering.Thread", Noted)

    async def answered(drpc: LocalDRPC, args: str, expected: str, workers: int) -> None:
        assert await drpc.execute_async("words", args) == expected
        assert len(started) == workers
        started.clear()

    entries = {"a": 1, "b": 2}
    with words(counts(entries), Split()) as drpc:
        asyncio.run(answered(drpc, "a b c", "[[3]]", 0))
        asyncio.run(answered(drpc, "a " * 1_000, "[[1000]]", 1))  # it may take long
    for factory, function in (
        (counts(entries), Mine()),
        (counts(entries), str.split),
        (counts(entries, sqlite.opaque(tmp_path / "counts.db", prefix="counts")), Split()),
    ):
        with words(factory, function) as drpc:
            asyncio.run(answered(drpc, "a b c", "[[3]]", 1))


def test_calls_that_come_in_one_turn_of_the_loop_are_answered_together_in_its_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    answer_together = Query.answer_together

    def noted(query: Query, requests: Any) -> Any:
        asked.append((get_ident(), len(requests)))
        return answer_together(query, requests)

    monkeypatch.setattr(Query, "answer_together", noted)

    async def all_at_once(drpc: LocalDRPC) -> list[Any]:
        calls = [drpc.execute_async("words", args) for args in ("a", "b", "a b", "b")]
        return await asyncio.gather(*calls)

    with words(counts({"a": 1, "b": 2}), Split()) as drpc:
        assert asyncio.run(all_at_once(drpc)) == ["[[1]]", "[[2]]", "[[3]]", "[[2]]"]
    assert asked == [(get_ident(), 1), (get_ident(), 3)]


def test_after_an_answer_that_took_long_workers_answer_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with words(counts({"a": 1}), Split()) as drpc:
        monkeypatch.setattr(gathering_module, "_AT_ONCE", -1.0)
        monkeypatch.setattr(gathering_module, "_WARY", 1)
        answers = [asyncio.run(drpc.execute_async("words", "a")) for _ in range(3)]
        assert answers == ["[[1]]"] * 3
        assert drpc._workers._threads == 1


@pytest.mark.usefixtures("patient")
def test_a_call_ends_in_time_with_function_time_and_queue_and_is_never_answered() -> None:
    with held() as (drpc, get):
        other = Asked(drpc, "b")
        until(lambda: drpc.waiting("words") == 1)
        with pytest.raises(DRPCTimeoutError) as caught:
            drpc.execute("words", "a", timeout=0.01)
        assert (caught.value.function, caught.value.waiting) == ("words", 1)
        assert 0.01 <= caught.value.elapsed < 5
        with pytest.raises(DRPCTimeoutError, match="within 0.0. s, with 1 more calls"):
            asyncio.run(drpc.execute_async("words", "a", timeout=0.01))
        get.go_on.set()
        assert other.ended() == '[["b",2]]'
        assert get.asked == [["held"], ["b"]]


def test_a_step_that_never_ends_keeps_no_caller_that_gives_a_time() -> None:
    with held() as (drpc, _), pytest.raises(DRPCTimeoutError):
        drpc.execute("words", "held", timeout=0.01)


@pytest.mark.usefixtures("patient")
def test_a_cancelled_task_leaves_the_queue() -> None:
    async def cancelled(drpc: LocalDRPC) -> None:
        task = asyncio.create_task(drpc.execute_async("words", "a"))
        while not drpc.waiting("words"):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not drpc.waiting("words")

    with held() as (drpc, get):
        asyncio.run(cancelled(drpc))
        get.go_on.set()
    assert get.asked == [["held"]]


@pytest.mark.usefixtures("patient")
def test_a_full_queue_refuses_at_once() -> None:
    with held() as (drpc, _):
        callers = [Asked(drpc, "a") for _ in range(10)]
        until(lambda: drpc.waiting("words") == 10)
        with pytest.raises(DRPCQueueFullError, match="has 10 calls in its queue"):
            drpc.execute("words", "b")
    assert {each.ended() for each in callers} == {'[["a",1]]'}


@pytest.mark.usefixtures("patient")
def test_a_queue_takes_no_more_than_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_BYTES", sys.getsizeof("a" * 1000))
    with held() as (drpc, _):
        for args in ("a" * 1001, "🐄" * 300):  # four bytes each
            with pytest.raises(DRPCQueueFullError):
                drpc.execute("words", args)
        caller = Asked(drpc, "a" * 1000)
        until(lambda: drpc.waiting("words") == 1)
        with pytest.raises(DRPCQueueFullError):
            drpc.execute("words", "a")
    assert caller.ended() == f'[["{"a" * 1000}",null]]'


@pytest.mark.usefixtures("patient")
def test_closing_answers_those_who_wait_and_refuses_those_who_come() -> None:
    with held() as (drpc, get):
        waiting = Asked(drpc, "a")
        until(lambda: drpc.waiting("words") == 1)
        closing = Closing(drpc, 30)
        until(lambda: isinstance(refusal(drpc), DRPCClosedError))
        assert waiting.answer is None
        get.go_on.set()
        assert waiting.ended() == '[["a",1]]'
        closing.join(30)


@pytest.mark.usefixtures("patient")
def test_closing_ends_the_calls_that_are_not_answered_in_time() -> None:
    with held() as (drpc, _):
        waiting = Asked(drpc, "a")
        until(lambda: drpc.waiting("words") == 1)
        drpc.close(drain=0.01)
        assert isinstance(waiting.ended(), DRPCClosedError)


def test_closing_waits_for_who_is_answered_in_his_own_thread() -> None:
    begun, go_on = Event(), Event()
    ended: list[str] = []

    class Slow(Function):
        def execute(self, tuple: Any, collector: Any) -> None:
            begun.set()
            assert go_on.wait(PATIENCE)
            collector.emit([not ended])

        def cleanup(self) -> None:
            ended.append("cleaned up")

    topology = TridentTopology()
    topology.newDRPCStream("f").each("args", Slow(), "first").project("first")
    drpc = LocalDRPC(topology.plan())
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(drpc.execute, "f", "")
        assert begun.wait(PATIENCE)
        closed = pool.submit(drpc.close, PATIENCE)
        until(lambda: isinstance(refusal(drpc, "f"), DRPCClosedError))
        assert not closed.done()
        go_on.set()
        assert asked.result(PATIENCE) == "[[true]]"
        closed.result(PATIENCE)
    assert ended == ["cleaned up"]


def test_a_call_is_answered_as_soon_as_a_thread_is_to_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused: list[Thread] = []

    class Refused(Thread):
        def start(self) -> None:
            if len(refused) < 2:
                refused.append(self)
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr("trident.drpc.gathering.Thread", Refused)
    with LocalDRPC(asking(MapGet(), counts({"a": 1})).plan()) as drpc:
        assert drpc.execute("words", "a", timeout=PATIENCE) == '[["a",1]]'
        assert len(refused) == 2
        assert asyncio.run(drpc.execute_async("words", "a")) == '[["a",1]]'


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "5", True])
def test_a_time_is_a_number_of_seconds(timeout: Any) -> None:
    with (
        LocalDRPC(asking(MapGet(), counts({})).plan()) as drpc,
        pytest.raises(DRPCUsageError, match="number of seconds, found"),
    ):
        drpc.execute("words", "a", timeout)


@pytest.mark.usefixtures("patient")
def test_coroutines_that_come_together_ask_each_state_once() -> None:
    async def ask(drpc: LocalDRPC, get: HeldGet) -> list[str]:
        calls = [asyncio.create_task(drpc.execute_async("words", "a")) for _ in range(10)]
        while drpc.waiting("words") < 10:
            await asyncio.sleep(0)
        get.go_on.set()
        return await asyncio.gather(*calls)

    with held() as (drpc, get):
        assert asyncio.run(ask(drpc, get)) == ['[["a",1]]'] * 10
        assert get.asked == [["held"], ["a"] * 10]


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (FailedException("not now"), DRPCExecutionError),
        (CorruptStateError("counts", "no entry", "b"), DRPCInternalError),
        (SystemExit(2), DRPCInternalError),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_whatever_one_call_raises_no_other_fails_for_it(raised: BaseException, kind: type) -> None:
    class Raising(HeldGet):
        def batchRetrieve(self, state: Any, tuples: Any) -> Any:
            if any(each[0] == "raise" for each in tuples):
                raise raised
            return super().batchRetrieve(state, tuples)

    with held(Raising()) as (drpc, get):
        callers = [Asked(drpc, args) for args in ("a", "raise", "b")]
        until(lambda: drpc.waiting("words") == 3)
        get.go_on.set()
        a, failed, b = [each.ended() for each in callers]
        assert (a, type(failed), b) == ('[["a",1]]', kind, '[["b",2]]')


def test_an_event_loop_that_has_ended_is_not_kept() -> None:
    with LocalDRPC(asking(MapGet(), counts({"a": 1})).plan()) as drpc:
        loops = []

        async def ask() -> str:
            loops.append(ref(asyncio.get_running_loop()))
            return await drpc.execute_async("words", "a")

        assert asyncio.run(ask()) == '[["a",1]]'
        gc.collect()
        assert [loop() for loop in loops] == [None]


def test_answers_given_together_are_those_given_one_by_one() -> None:
    def parsed(args: str) -> list[int]:
        return [int(each) for each in args.split()]

    topology = TridentTopology()
    known = topology.newStaticState(counts({"a": 1, "b": 2, "x": 5}), name="counts")
    stream = topology.newDRPCStream("f").each("args", Split(), "word").parallelismHint(2)
    (
        stream.shuffle()
        .stateQuery(known, "word", MapGet(), "count")
        .filter("count", lambda count: count is not None)
        .groupBy("word")
        .aggregate("count", Sum(), "sum")
        .stateQuery(known, "word", MapGet(), "again")
        .each("word, sum", lambda word, sum: [1 // (sum - 5)], "quotient")
        .aggregate(Count(), "n")
    )
    requests = ["a b a", "", "x", "c", "b", "a x"]
    queries = topology.plan().drpc
    query = Query(topology.plan(), queries["f"], None)
    query.prepare()

    def alone(args: str) -> str:
        try:
            return query.answer(args)
        except DRPCError as error:
            return str(error)

    together = [str(each) for each in query.answer_together(requests)]
    assert together == [alone(args) for args in requests]
    assert "ZeroDivisionError" in together[2]
    query.close()


def test_a_value_that_a_function_changes_in_place_is_changed_for_its_own_tuple_only() -> None:
    def spoil(found: list[str]) -> list[Any]:
        found.append("spoiled")
        return [found]

    topology = TridentTopology()
    known = topology.newStaticState(counts({"a": ["fresh"]}), name="known")
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .stateQuery(known, "word", MapGet(), "found")
        .each("found", spoil, "spoiled")
        .project("spoiled")
    )
    plan = topology.plan()
    query = Query(plan, plan.drpc["words"], None)
    query.prepare()
    once = '[[["fresh","spoiled"]]]'
    assert query.answer_together(["a", "a"]) == [once, once]
    assert query.answer("a") == once  # nor has the store's own been changed
    assert query.answer("a a") == '[[["fresh","spoiled"]],[["fresh","spoiled"]]]'
    query.close()


def test_steps_before_the_first_look_up_run_once_whatever_batches_do() -> None:
    seen: list[str] = []
    moved = iter([True, True])

    class Moving(MapGet):
        def batchRetrieve(self, state: Any, tuples: Any) -> Any:
            if next(moved, False):
                raise BatchMovedOn(Token(1, 0))
            return super().batchRetrieve(state, tuples)

    topology = TridentTopology()
    known = topology.newStaticState(counts({"a": 1}), name="counts")
    (topology.newDRPCStream("f").peek(seen.append).stateQuery(known, "args", Moving(), "count"))
    query = Query(topology.plan(), topology.plan().drpc["f"], None)
    query.prepare()
    assert query.answer_together(["a", "b"]) == ['[["a",1]]', '[["b",null]]']
    assert seen == ["a", "b"]
    query.close()


def test_look_ups_that_were_of_no_moment_are_made_again_from_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def twice(states: Any, ask: Any) -> Any:
        """As where a batch that has removed entries is seen after the query only."""
        for _ in range(2):
            made = read_committed(states, ask)
        return made

    monkeypatch.setattr("trident.drpc.query.read_committed", twice)
    topology = TridentTopology()
    known = topology.newStaticState(counts({"a": 1, "b": 2}), name="counts")
    (
        topology.newDRPCStream("f")
        .each("args", Split(), "word")
        .stateQuery(known, "word", HeldGet(), "count")
        .flatMap(lambda args, word, count: [count] * 2, "key")
        .stateQuery(known, "key", MapGet(), "nothing")
        .project("key")
    )
    query = Query(topology.plan(), topology.plan().drpc["f"], None)
    query.prepare()
    a, b, broken = query.answer_together(["a", "b a", "broken"])
    assert (a, b) == ("[[1],[1]]", "[[2],[2],[1],[1]]")
    assert isinstance(broken, DRPCExecutionError)
    query.close()


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (FailedException("not now"), DRPCExecutionError),
        (StateUnavailableError("redis://h:1", "refused"), DRPCUnavailableError),
    ],
)
@pytest.mark.parametrize("requests", [["a"], ["a", "b"]])
def test_what_a_state_raises_fails_every_call_that_asked_it(
    requests: list[str], raised: Exception, kind: type
) -> None:
    class Failing(MapGet):
        def batchRetrieve(self, state: Any, tuples: Any) -> Any:
            raise raised

    topology = asking(Failing(), counts({}))
    query = Query(topology.plan(), topology.plan().drpc["words"], None)
    query.prepare()
    assert [type(each) for each in query.answer_together(requests)] == [kind] * len(requests)
    query.close()


def test_a_state_that_has_not_begun_is_no_fault_of_the_caller(tmp_path: Path) -> None:
    topology = asking(MapGet(), sqlite.opaque(tmp_path / "empty.db"))
    with (
        LocalDRPC(topology.plan()) as drpc,
        pytest.raises(DRPCUnavailableError, match="there is no state"),
    ):
        drpc.execute("words", "a")


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownFunctionError("f", ["g"]),
        errors.DRPCExecutionError("f", "a", "cause", "summary"),
        errors.DRPCUnavailableError("f", "a", "cause"),
        errors.DRPCInternalError("f", "a", "cause"),
        errors.DRPCTimeoutError("f", 5.1, 3),
        errors.DRPCQueueFullError("f", 10),
        errors.DRPCClosedError("f"),
        errors.ArgumentsTooLargeError("f", 10),
        errors.MalformedRequestError("its arguments are no UTF-8"),
        errors.DRPCAccessError("f", "alice"),
        errors.DRPCAccessError("f"),
        errors.NoServerError("h:1: refused"),
        errors.DRPCUsageError("what", "found"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_pickles(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def refusal(drpc: LocalDRPC, function: str = "words") -> BaseException | None:
    try:
        drpc.waiting(function)
    except DRPCClosedError as error:
        return error
    return None


class Closing(Asked):
    """Closes a service in a thread of its own."""

    def __init__(self, drpc: LocalDRPC, drain: float) -> None:
        super().__init__(drpc, "", drain)

    def run(self) -> None:
        self._drpc.close(self._timeout or 0)
