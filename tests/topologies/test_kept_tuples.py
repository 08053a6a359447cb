"""Steps that keep whole tuples: the least, the greatest, and the first ones in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.api.topologies import sentences
from tests.topologies.conftest import Engine
from tests.topologies.test_aggregates import Step, carried
from trident.api.assemblies import FirstN
from trident.api.stream import Stream
from trident.api.topology import TridentTopology
from trident.errors import OperationError
from trident.operations.builtin import Count
from trident.operations.interfaces import CustomStreamGrouping, ReducerAggregator

# The partitions of Trident's own documentation.
PARTS = [
    [(123, 2), (113, 54), (23, 28), (237, 37), (12, 23), (62, 17), (98, 42)],
    [(64, 18), (72, 54), (2, 28), (742, 71), (98, 45), (62, 12), (19, 174)],
    [(27, 94), (82, 23), (9, 86), (53, 71), (74, 37), (51, 49), (37, 98)],
]
NUMBERED = [(part, *values) for part, rows in enumerate(PARTS) for values in rows]


class Joined(ReducerAggregator[str]):
    """All numbers in the order in which they come."""

    output_types = (str,)

    def init(self) -> str:
        return ""

    def reduce(self, curr: str, tuple: Any) -> str:
        return f"{curr} {tuple[0]}".strip()


class ByPart(CustomStreamGrouping):
    def chooseTasks(self, targetTasks: Sequence[int], values: Any) -> Sequence[int]:
        return [targetTasks[values["part"]]]


def parted(stream: Stream) -> Stream:
    return stream.partition(ByPart()).parallelismHint(3).project("id, count")


def backwards(a: int, b: int) -> int:
    return b - a


def by_sum(a: Any, b: Any) -> int:
    return int(sum(a) - sum(b))


PER_PARTITION: Mapping[str, tuple[Step, list[tuple[int, int]]]] = {
    "minBy": (lambda s: s.minBy("count"), [(123, 2), (62, 12), (82, 23)]),
    "maxBy": (lambda s: s.maxBy("count"), [(113, 54), (19, 174), (37, 98)]),
    "minBy with a comparator": (
        lambda s: s.minBy("count", backwards),
        [(113, 54), (19, 174), (37, 98)],
    ),
    "maxBy with a comparator": (
        lambda s: s.maxBy("count", backwards),
        [(123, 2), (62, 12), (82, 23)],
    ),
    "min": (lambda s: s.min(by_sum), [(12, 23), (2, 28), (9, 86)]),
    "max": (lambda s: s.max(by_sum), [(237, 37), (742, 71), (37, 98)]),
}


@pytest.mark.parametrize("name", PER_PARTITION)
def test_each_partition_keeps_its_own_tuple(engine: Engine, name: str) -> None:
    step, expected = PER_PARTITION[name]
    [found] = carried(engine, "part long, id long, count long", lambda s: step(parted(s)), NUMBERED)
    assert sorted(found) == sorted(expected)


def test_of_all_partitions_one_tuple_is_kept_after_global(engine: Engine) -> None:
    [found] = carried(
        engine,
        "part long, id long, count long",
        lambda s: parted(s).global_().maxBy("count"),
        NUMBERED,
    )
    assert found == [(19, 174)]


@pytest.mark.parametrize("call", ["minBy", "maxBy"])
def test_of_a_tie_the_last_tuple_is_kept_and_null_counts_for_nothing(
    engine: Engine, call: str
) -> None:
    rows = [(None, "null"), (1, "first"), (1, "last"), (None, "null")]
    [found] = carried(engine, "n long, s string", lambda s: getattr(s, call)("n"), rows)
    assert found == [(1, "last")]


def test_nan_is_the_greatest(engine: Engine) -> None:
    rows = [(1.5, "a"), (float("nan"), "b"), (2.5, "c")]
    fields = "x double, s string"
    [[least]] = carried(engine, fields, lambda s: s.minBy("x"), rows)
    assert least == (1.5, "a")


def test_the_greatest_may_be_nan(engine: Engine) -> None:
    rows = [(1.5, "a"), (float("nan"), "b"), (2.5, "c")]
    [[greatest]] = carried(engine, "x double, s string", lambda s: s.maxBy("x"), rows)
    assert greatest[1] == "b"


EMPTY: Mapping[str, Step] = {
    "min": lambda s: s.min(by_sum),
    "maxBy": lambda s: s.maxBy("n"),
    "FirstN": lambda s: s.applyAssembly(FirstN(2)),
    "FirstN of a field": lambda s: s.applyAssembly(FirstN(2, "n")),
}


@pytest.mark.parametrize("name", EMPTY)
def test_a_batch_without_tuples_gives_none(engine: Engine, name: str) -> None:
    def step(stream: Stream) -> Stream:
        return EMPTY[name](stream.parallelismHint(2)).aggregate(Count(), "kept")

    assert carried(engine, "n long", step, []) == [[(0,)]]


def test_a_batch_without_tuples_is_not_run_for_a_step_that_keeps_tuples() -> None:
    topology = TridentTopology()
    sentences(topology).minBy("id").applyAssembly(FirstN(3, "id"))
    assert "a batch without tuples changes nothing" in topology.explain()


FIRST: Mapping[str, tuple[FirstN, list[int | None]]] = {
    "seen": (FirstN(9), [1, 2, 3, 4, None, 5]),
    "least": (FirstN(3, "n"), [1, 2, 3]),
    "greatest": (FirstN(3, "n", reverse=True), [3, 4, 5]),
    "all, as there are fewer": (FirstN(9, "n"), [1, 2, 3, 4, 5, None]),
}


@pytest.mark.parametrize("name", FIRST)
def test_the_first_tuples_are_kept(engine: Engine, name: str) -> None:
    assembly, expected = FIRST[name]
    rows = [(3, "c"), (5, "e"), (None, "?"), (1, "a"), (4, "d"), (2, "b")]
    [found] = carried(
        engine,
        "n long, s string",
        lambda s: s.shuffle().parallelismHint(3).applyAssembly(assembly),
        rows,
    )
    assert sorted(found, key=repr) == sorted((row for row in rows if row[0] in expected), key=repr)


def test_the_first_tuples_come_in_order(engine: Engine) -> None:
    def step(stream: Stream) -> Stream:
        first = stream.applyAssembly(FirstN(3, "n", reverse=True))
        return first.aggregate("n", Joined(), "order")

    assert carried(engine, "n long", step, [(n,) for n in (2, 9, None, 4, 7)]) == [[("9 7 4",)]]


def test_many_tuples_are_sorted_again_and_again(engine: Engine) -> None:
    rows = [((n * 7919) % 5000,) for n in range(5000)]
    [found] = carried(engine, "n long", lambda s: s.applyAssembly(FirstN(3, "n")), rows)
    assert found == [(0,), (1,), (2,)]


def test_an_error_of_a_comparator_names_the_call_and_the_tuple(engine: Engine) -> None:
    def broken(a: Any, b: Any) -> int:
        raise ValueError("no order")

    with pytest.raises(OperationError, match=r"no order") as raised:
        carried(engine, "n long", lambda s: s.minBy("n", broken), [(1,), (2,)])
    assert "minBy(n, broken)" in str(raised.value)
    assert "n=2" in str(raised.value)
