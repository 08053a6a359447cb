"""The operations that come with the library, and their corners."""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from typing import Any

import pytest

from trident.errors import LongOverflowError, OperationTypeError, ValueTypeError
from trident.operations.builtin import (
    Count,
    Debug,
    Equals,
    FilterNull,
    Max,
    Min,
    Negate,
    Split,
    Sum,
)
from trident.operations.interfaces import CombinerAggregator
from trident.tuples.fields import Fields


def aggregate(combiner: CombinerAggregator[Any], *values: Any) -> Any:
    return reduce(combiner.combine, (combiner.init((v,)) for v in values), combiner.zero())


@pytest.mark.parametrize(
    ("combiner", "values", "result"),
    [
        (Count(), [], 0),
        (Count(), ["a", None], 2),
        (Sum(), [], 0),
        (Sum(), [None, None], 0),
        (Sum(), [1, None, 2], 3),
        (Sum(), [1, 2.5], 3.5),
        (Sum(), [1, Decimal("0.1"), 0.5], Decimal("1.6")),
        (Min(), [], None),
        (Min(), [None], None),
        (Min(), [3, None, 2], 2),
        (Max(), ["b", None, "c", "a"], "c"),
        (Max(), [], None),
    ],
)
def test_combiners(combiner: CombinerAggregator[Any], values: list[Any], result: Any) -> None:
    assert aggregate(combiner, *values) == result


@pytest.mark.parametrize("combiner", [Count(), Sum(), Min(), Max()])
def test_zero_is_an_identity_on_both_sides(combiner: CombinerAggregator[Any]) -> None:
    one = combiner.init((7,))
    assert combiner.combine(one, combiner.zero()) == one == combiner.combine(combiner.zero(), one)


def test_sums_of_integers_keep_64_bits() -> None:
    assert aggregate(Sum(), 2**63 - 2, 1) == 2**63 - 1
    with pytest.raises(LongOverflowError, match="9223372036854775808 does not fit into 64 bits"):
        aggregate(Sum(), 2**63 - 1, 1)
    with pytest.raises(LongOverflowError):
        Count().combine(2**63 - 1, 1)
    with pytest.raises(LongOverflowError):
        aggregate(Sum(), -(2**63), -1)


@pytest.mark.parametrize("value", ["x", True, [1]])
def test_sum_refuses_what_is_no_number(value: Any) -> None:
    with pytest.raises(ValueTypeError, match=r"Sum\(\) needs numbers"):
        Sum().init((value,))


def test_types_of_aggregates() -> None:
    assert list(Count().infer_types(Fields())) == ["long"]
    assert list(Sum().infer_types(Fields(n="int"))) == ["long"]
    assert list(Sum().infer_types(Fields(n=float))) == ["double"]
    assert list(Sum().infer_types(Fields("n"))) == [None]
    assert list(Max().infer_types(Fields(n=str))) == ["string"]
    with pytest.raises(OperationTypeError, match="adds numbers, not 'string'"):
        Sum().infer_types(Fields(n=str))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the man", ["the", "man"]),
        ("  a\t\tb\n", ["a", "b"]),
        ("", []),
        (" ", []),
        (None, []),
        ("été 猫", ["été", "猫"]),
    ],
)
def test_split(text: str | None, words: list[str]) -> None:
    assert list(Split().expand(text)) == words


def test_split_refuses_what_is_no_string() -> None:
    with pytest.raises(ValueTypeError, match=r"Split\(\) needs a string, found int 7"):
        Split().expand(7)  # type: ignore[arg-type]


def test_filters() -> None:
    assert FilterNull().isKeep((1, "a"))
    assert not FilterNull().isKeep((1, None))
    assert Equals().isKeep((None, None))
    assert Equals().isKeep((1,))
    assert not Equals().isKeep((1, 1, 2))
    assert Negate(Equals()).isKeep((1, 2))  # type: ignore[arg-type]


def test_negate_takes_filters_and_callables_only() -> None:
    assert Negate(Equals()).label == "Negate(Equals())"
    with pytest.raises(OperationTypeError, match="expected a filter, found"):
        Negate(Equals)  # type: ignore[arg-type]


def test_debug_prints_and_keeps(capsys: pytest.CaptureFixture[str]) -> None:
    assert Debug().isKeep(("a", 1))
    assert capsys.readouterr().out == "DEBUG: ('a', 1)\n"
