"""The library's own operations over columns do what they do with each tuple by itself."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident.api.topology import TridentTopology
from trident.errors import OperationError
from trident.kernels import column_forms
from trident.kernels.aggregate_kernels import CombinerKernel
from trident.kernels.kernel import Kernel
from trident.kernels.task import StepName, Task
from trident.kernels.tuple_kernels import EachKernel, FilterKernel
from trident.kernels.type_check import type_check
from trident.operations.builtin import Count, Equals, FilterNull, Max, Min, Negate, Split, Sum
from trident.operations.interfaces import operation_name
from trident.spouts.fixed import FixedBatchSpout
from trident.tuples.block import Block
from trident.tuples.fields import Fields

STEP = StepName("the step", "job.py:7")
TASK = Task(1, None, 0, 1)
INPUTS = Fields("a", "b")
LONG = 2**63

TEXTS = st.none() | st.text(max_size=5) | st.sampled_from(["", "a b", " a", "ä\u2003ö", "\0"])
LONGS = st.integers(-3, 3) | st.sampled_from([LONG - 1, -LONG, LONG, 2**62, True])
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, float("nan")])


class Odd:
    """Compares with nothing, as arrays of other libraries do."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Odd()"


OTHERS = st.sampled_from([Decimal("0.5"), b"a", "a", None, False, Odd()])
VALUES = [TEXTS, LONGS, FLOATS, st.none() | LONGS, LONGS | FLOATS, LONGS | OTHERS, TEXTS | OTHERS]


@st.composite
def blocks(draw: st.DrawFn) -> Block:
    length = draw(st.integers(1, 6))
    values = [draw(st.sampled_from(VALUES)) for _ in range(2)]
    made = [draw(st.lists(kind, min_size=length, max_size=length)) for kind in values]
    return Block({"a": made[0], "b": made[1], "key": [n % 2 for n in range(length)]}, length)


def one_by_one(operation: Any) -> Any:
    """The same operation as a class of a user's, which has no form over columns."""
    if isinstance(operation, Negate):
        return Negate(one_by_one(operation.filter))
    kind = type(operation)
    return type(kind.__name__, (kind,), {})()


def outcome(kernel: Kernel, block: Block) -> Any:
    """What a kernel makes of a block, told apart by type, or what it raises."""
    try:
        made = [made for made in kernel.run([block], TASK) if made.length]
        return [(name, list(map(repr, one.values(name)))) for one in made for name in one.names]
    except OperationError as error:
        return str(error)


@pytest.mark.parametrize(
    ("operation", "field", "checked"),
    [
        (Split(), "made", False),
        (one_by_one(Split()), "made", True),
        (Split(), "made varchar(9)", True),
        (Count(), "made", False),
        (one_by_one(Count()), "made", True),
        (Count(), "made int", True),
        (Max(), "made", True),
    ],
)
def test_only_what_the_library_surely_makes_goes_unchecked(
    operation: Any, field: str, checked: bool
) -> None:
    stream = TridentTopology().newStream("s", FixedBatchSpout("text string", 1))
    made = stream.each if isinstance(operation, Split) else stream.aggregate
    node = made("text", operation, field)._node
    assert (type_check(node) is not None) is checked


@given(blocks(), st.sampled_from([(), ("key",), ("a", "key")]))
def test_split(block: Block, carried: tuple[str, ...]) -> None:
    by_column, alone = (
        outcome(EachKernel(STEP, split, Fields("a"), carried, ("word",)), block)
        for split in (Split(), one_by_one(Split()))
    )
    assert by_column == alone


FILTERS = [FilterNull(), Equals(), Negate(FilterNull()), Negate(Negate(Equals()))]


@pytest.mark.parametrize("filter", FILTERS, ids=operation_name)
@pytest.mark.parametrize(
    "inputs", [Fields(), Fields("a"), INPUTS, Fields("a", "b", "key")], ids=str
)
@given(block=blocks())
def test_filters(filter: Any, inputs: Fields, block: Block) -> None:
    by_column, alone = (
        outcome(FilterKernel(STEP, one, inputs, ("a", "b", "key")), block)
        for one in (filter, one_by_one(filter))
    )
    assert by_column == alone


@pytest.mark.parametrize("combiner", [Count(), Sum(), Min(), Max()], ids=operation_name)
@pytest.mark.parametrize("group", [(), ("key",), ("key", "b")], ids=str)
@given(block=blocks())
def test_aggregates(combiner: Any, group: tuple[str, ...], block: Block) -> None:
    by_column, alone = (
        outcome(CombinerKernel(STEP, one, group, Fields("a"), ("made",)), block)
        for one in (combiner, one_by_one(combiner))
    )
    assert by_column == alone


def totals(combiner: Any, values: Sequence[Any]) -> Any:
    """The aggregate of one group by columns; None where there is no form."""
    made = column_forms.no_totals(combiner)
    block = Block({"a": values}, len(values))
    return made if column_forms.take_in(combiner, made, [0] * len(values), block, ["a"]) else None


def test_what_may_leave_the_64_bits_is_added_tuple_by_tuple() -> None:
    assert totals(Sum(), [LONG // 2 - 1, 1]) == {0: LONG // 2}
    assert totals(Sum(), [LONG - 1, 1]) is None
    assert totals(Sum(), [LONG - 1, 1, -5]) is None


def test_an_operation_of_the_users_has_no_form_over_columns() -> None:
    block = Block({"a": ["x y", "z"]}, 2)
    assert column_forms.items(Split(), block, ["a"]) == ["x", "y", "z"]
    assert column_forms.items(one_by_one(Split()), block, ["a"]) is None
    assert column_forms.lists(one_by_one(Split()), block, ["a"]) is None
    assert column_forms.mask(one_by_one(FilterNull()), block, ["a"]) is None
    assert totals(one_by_one(Count()), [1, 1]) is None


@pytest.mark.parametrize("combiner", [Count(), Sum(), Min(), Max()], ids=operation_name)
@given(parts=st.lists(blocks(), max_size=3))
def test_several_blocks_are_aggregated_as_one(combiner: Any, parts: list[Block]) -> None:
    def made(one: Any) -> Any:
        kernel = CombinerKernel(STEP, one, ("key",), Fields("a"), ("made",))
        try:
            return [
                sorted(map(repr, block.tuples(["key", "made"])))
                for block in kernel.run(parts, TASK)
            ]
        except OperationError as error:
            return str(error)

    assert made(combiner) == made(one_by_one(combiner))
