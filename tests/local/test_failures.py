"""How a user's exception is shown."""

from __future__ import annotations

import json
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.backends.memory import MemoryMap, MemoryMapState
from trident.errors import (
    FailedException,
    OperationError,
    StaleBatchError,
    StateUnavailableError,
    TridentError,
)
from trident.operation_error import operation_error, shown_tuple
from trident.operations.builtin import Count, Sum
from trident.operations.interfaces import CombinerAggregator, Filter
from trident.spouts.fixed import FixedBatchSpout
from trident.states import OpaqueMap
from trident.states.values import Token


def inner(depth: int) -> int:
    return 1 // depth if depth == 0 else inner(depth - 1)


def deep(n: int) -> list[int]:
    return [inner(n)]


def failure(rows: list[Any], fields: str, step: Any) -> OperationError:
    """What a run over one batch stops with."""
    topology = TridentTopology()
    stream: Stream = topology.newStream("s", FixedBatchSpout(fields, len(rows), *rows))
    step(stream)
    with topology.start(trigger="available") as run, pytest.raises(OperationError) as caught:
        run.awaitTermination(30)
    return caught.value


def test_the_first_and_the_innermost_frames_of_the_user_are_shown() -> None:
    error = failure([(50,)], "n long", lambda s: s.each("n", deep, "made long"))
    lines = str(error).splitlines()
    assert lines[0] == "ZeroDivisionError: integer division or modulo by zero"
    assert lines[1].endswith("in deep")
    assert len([line for line in lines if "in inner" in line]) == 2
    assert len(lines) <= 15
    assert "50" in str(error.row)
    assert error.details.startswith("Traceback")
    assert isinstance(error.cause, ZeroDivisionError)


class Stops(Filter):
    def isKeep(self, tuple: Any) -> bool:
        return bool(among(tuple[0]))


class StopsAtFirst(CombinerAggregator[int]):
    def init(self, tuple: Any) -> int:
        return among(tuple[0])

    def combine(self, a: int, b: int) -> int:
        return a + b

    def zero(self) -> int:
        return 0


def among(n: int) -> int:
    return next(each for each in (1, 2) if each == n)


@pytest.mark.parametrize(
    "step",
    [
        lambda s: s.withColumn("m long", among, "n"),
        lambda s: s.each("n", lambda n: [among(n)], "m long"),
        lambda s: s.map(among),
        lambda s: s.flatMap(lambda n: [among(n)]),
        lambda s: s.filter("n", lambda n: among(n) > 0),
        lambda s: s.filter("n", Stops()),
        lambda s: s.peek(among),
        lambda s: s.aggregate("n", StopsAtFirst(), "m long"),
    ],
    ids="withColumn each map flatMap filter class_of_a_filter peek combiner".split(),
)
@pytest.mark.parametrize("rows", [[(1,), (9,), (2,)], [(1,), (9,)]], ids=["within", "last"])
def test_a_stop_iteration_of_a_function_loses_no_tuples(rows: list[Any], step: Any) -> None:
    error = failure(rows, "n long", step)
    assert "StopIteration" in str(error)
    assert "9" in str(error.row)


def test_what_is_printed_shows_the_user_and_no_more_than_the_way_to_the_failure() -> None:
    error = failure([(0,)], "n long", lambda s: s.each("n", deep, "made long"))
    printed = "".join(traceback.format_exception(error)).splitlines()
    assert len(printed) <= 20
    assert not [line for line in printed if "interpret.py" in line or "runner.py" in line]


def test_long_values_and_messages_are_shortened() -> None:
    def shout(text: str, n: int) -> list[str]:
        raise ValueError("\n".join([text] * 50))

    error = failure(
        [("z" * 10_000, 1)],
        "text string, n long",
        lambda s: s.each("text, n", shout, "made string"),
    )
    assert len(str(error)) < 2000
    assert len(str(error).splitlines()) <= 15
    assert str(error.row).endswith("n=1")


def test_a_built_in_operation_is_blamed_with_the_users_line() -> None:
    error = failure([("x",), (1,)], "n", lambda s: s.groupBy("n").aggregate("n", Sum(), "sum"))
    assert error.error.startswith("trident.errors.ValueTypeError: Sum() needs numbers")
    assert f"{Path(__file__).name}:" in error.declared
    assert error.step == "groupBy(n).aggregate(n, Sum(), sum)"
    assert error.row == "n='x'"


def test_a_key_that_cannot_be_stored_is_blamed_on_its_step() -> None:
    error = failure(
        [("a",)],
        "word string",
        lambda s: (
            s.each("word", lambda word: [{word}], "n")
            .groupBy("n")
            .persistentAggregate(MemoryMapState.Factory(), Count(), "count")
        ),
    )
    assert "found a builtins.set, in ({'a'},)" in error.error
    assert "groupBy(n).aggregate(Count(), count)" in error.step


def test_it_pickles_and_is_plain_json_values() -> None:
    error = failure([(0,)], "n long", lambda s: s.each("n", deep, "made long"))
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert again.cause is None
    assert str(OperationError(*json.loads(json.dumps(error.args)))) == str(error)


def test_batch_attempt_and_partition_are_named() -> None:
    shown = operation_error(
        KeyError("x"), step="each(f)", declared="job.py:3", token=Token(7, 2), partition=4
    )
    assert "batch 7, attempt 2, partition 4" in str(shown)
    assert "with the tuple" not in str(shown)


def test_a_value_that_cannot_show_itself_does_no_harm() -> None:
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown_tuple(["a", "b"], [Odd(), 1]).endswith("b=1")


@pytest.mark.parametrize("error", [FailedException("later"), StaleBatchError(None)])
def test_what_the_protocol_acts_upon_passes_as_it_is(error: Exception) -> None:
    def fails(n: int) -> list[int]:
        raise error

    topology = TridentTopology()
    topology.newStream("s", FixedBatchSpout("n long", 1, (1,))).each("n", fails, "m long")
    with (
        topology.start(trigger="available", retries=0) as run,
        pytest.raises(Exception, match=str(error)) as caught,
    ):
        run.awaitTermination(30)
    assert not isinstance(caught.value, OperationError)


class Gone(MemoryMap):
    """A store that goes away under a batch, which its driver tells at length."""

    def multiPutFenced(self, *given: Any) -> bool:
        try:
            return bool(inner(20))
        except ZeroDivisionError as error:
            raise StateUnavailableError("geo", "it sleeps") from error


def gone() -> Gone:
    return Gone("gone")


@pytest.mark.parametrize(
    "state", [OpaqueMap.factory(gone, name="n"), "redis://localhost:1/0?prefix=n"]
)
def test_an_error_of_a_store_comes_without_the_way_through_the_library(state: Any) -> None:
    topology = TridentTopology()
    words = topology.newStream("s", FixedBatchSpout("n long", 1, (1,))).groupBy("n")
    words.persistentAggregate(state, Count(), "count")
    with pytest.raises(TridentError) as raised:  # noqa: SIM117
        with topology.start(trigger="available", patience=0) as run:
            run.awaitTermination(30)
    printed = "".join(traceback.format_exception(raised.value)).splitlines()
    assert len(printed) <= 20
    assert not [line for line in printed if "runner.py" in line or "redis_" in line]
