"""The library's own operations over columns do what they do with each tuple by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from unittest.mock import patch
from weakref import ref

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident.api.topology import TridentTopology
from trident.errors import OperationError
from trident.kernels import aggregate_kernels, arrow_forms, column_forms
from trident.kernels.aggregate_kernels import CombinerKernel, PartialKernel
from trident.kernels.kernel import Kernel
from trident.kernels.task import StepName, Task
from trident.kernels.tuple_kernels import EachKernel, FilterKernel
from trident.kernels.type_check import type_check
from trident.operations.builtin import Count, Equals, FilterNull, Max, Min, Negate, Split, Sum
from trident.operations.interfaces import operation_name
from trident.spouts.fixed import FixedBatchSpout
from trident.tuples import arrow_columns
from trident.tuples.block import Block
from trident.tuples.fields import Fields

STEP = StepName("the step", "job.py:7")
TASK = Task(1, None, 0, 1)
INPUTS = Fields("a", "b")
LONG = 2**63

SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
TEXTS = (
    st.none()
    | st.text(max_size=5)
    | st.text(f"ab{SPACES}", max_size=5)
    | st.sampled_from(["", "a b", " a", "a  b ", "ä\u2003ö", "\0", "\ud800"])
)
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


Form = Callable[[Block], Block]


def listed(block: Block) -> Block:
    """The block in lists, which stay so: it is short."""
    return Block({name: block.values(name) for name in block.names}, block.length)


def arrived(block: Block) -> Block:
    """The block with all columns in Arrow that have a form there."""
    arrays = {name: arrow_columns.array_of(block.values(name)) for name in block.names}
    lists = {name: block.values(name) for name in block.names if arrays[name] is None}
    found = {name: column for name, column in arrays.items() if column is not None}
    return Block(lists, block.length, found)


class Eager(Block):
    """A block in lists whose columns become Arrow as if they were long."""

    suits_arrow = True  # type: ignore[assignment]


def asked(block: Block) -> Block:
    return Eager({name: block.values(name) for name in block.names}, block.length)


FORMS = [listed, arrived, asked]


def outcome(kernel: Kernel, *blocks: Block) -> Any:
    """What a kernel makes of blocks, told apart by type, or what it raises."""
    try:
        made = [made for made in kernel.run(blocks, TASK) if made.length]
        return [
            (name, list(map(repr, one.values(name)))) for one in made for name in sorted(one.names)
        ]
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
    check = type_check(STEP, node.operation, node.makes)
    assert (check is not None) is checked


@given(block=blocks(), carried=st.sampled_from([(), ("key",), ("a", "key")]))
def test_split(block: Block, carried: tuple[str, ...]) -> None:
    def kernel(split: Any) -> Kernel:
        return EachKernel(STEP, split, Fields("a"), carried, ("word",))

    alone = outcome(kernel(one_by_one(Split())), block)
    for form in FORMS:
        assert outcome(kernel(Split()), form(block)) == alone, form


FILTERS = [FilterNull(), Equals(), Negate(FilterNull()), Negate(Negate(Equals()))]


@pytest.mark.parametrize("filter", FILTERS, ids=operation_name)
@pytest.mark.parametrize(
    "inputs", [Fields(), Fields("a"), INPUTS, Fields("a", "b", "key")], ids=str
)
@given(block=blocks())
def test_filters(filter: Any, inputs: Fields, block: Block) -> None:
    def kernel(filter: Any) -> Kernel:
        return FilterKernel(STEP, filter, inputs, ("a", "b", "key"))

    alone = outcome(kernel(one_by_one(filter)), block)
    for form in FORMS:
        assert outcome(kernel(filter), form(block)) == alone, form


COMBINERS = pytest.mark.parametrize("combiner", [Count(), Sum(), Min(), Max()], ids=operation_name)


@COMBINERS
@pytest.mark.parametrize("group", [(), ("b",), ("key", "b")], ids=str)
@given(block=blocks())
def test_aggregates(combiner: Any, group: tuple[str, ...], block: Block) -> None:
    def kernel(combiner: Any) -> Kernel:
        return CombinerKernel(STEP, combiner, group, Fields("a"), ("made",))

    alone = outcome(kernel(one_by_one(combiner)), block)
    for form in FORMS:
        assert outcome(kernel(combiner), form(block)) == alone, form


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
    words = column_forms.expanded(Split(), block, ["a"], [], ["word"])
    assert words is not None
    assert words.values("word") == ["x", "y", "z"]
    assert column_forms.expanded(one_by_one(Split()), block, ["a"], [], ["word"]) is None
    assert column_forms.mask(one_by_one(FilterNull()), block, ["a"]) is None
    assert totals(one_by_one(Count()), [1, 1]) is None


@COMBINERS
@pytest.mark.parametrize("group", [(), ("b",)], ids=str)
@given(
    parts=st.lists(st.tuples(blocks(), st.sampled_from(FORMS)), max_size=3),
    waiting=st.sampled_from([0, 2**20]),
)
def test_several_blocks_are_aggregated_as_one(
    combiner: Any, group: tuple[str, ...], parts: list[tuple[Block, Form]], waiting: int
) -> None:
    by_column, alone = (
        CombinerKernel(STEP, one, group, Fields("a"), ("made",))
        for one in (combiner, one_by_one(combiner))
    )
    with patch.object(arrow_forms, "_MOST_WAITING", waiting):
        found = outcome(by_column, *(form(block) for block, form in parts))
    assert found == outcome(alone, *(block for block, _ in parts))


@COMBINERS
@given(parts=st.lists(blocks(), max_size=3), most=st.sampled_from([1, 2**20]))
def test_what_partitions_come_to_is_combined(combiner: Any, parts: list[Block], most: int) -> None:
    def made(one: Any, form: Form) -> Any:
        first = PartialKernel(STEP, one, ("key",), Fields("a"), ("made",))
        final = CombinerKernel(STEP, one, ("key",), Fields("made"), ("all",), partial=True)
        try:
            with patch.object(aggregate_kernels, "_MOST_COMBINED", most):
                partials = [form(made) for made in first.run(map(form, parts), TASK)]
        except OperationError as error:
            return str(error)
        return outcome(final, *partials)

    alone = made(one_by_one(combiner), listed)
    for form in FORMS:
        assert made(combiner, form) == alone, form


def test_what_waits_keeps_no_memory_of_other_columns() -> None:
    class Memory(bytearray):
        """The body of a record batch: columns of Arrow are parts of it."""

    body = Memory(16)
    alive = ref(body)
    totals = arrow_forms.group_totals(Count(), ["value"], None, partial=False)
    assert totals is not None
    keys = pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(body)])
    assert totals.take_in(Block({}, 2, {"value": keys}))
    del body, keys
    assert alive() is None
    [waiting] = totals.waiting()
    assert waiting.values("value") == [0, 0]


def test_many_keys_are_not_gone_over_for_every_few_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    fold, folds = arrow_forms.GroupTotals._fold, []

    def counted(totals: arrow_forms.GroupTotals) -> bool:
        folds.append(totals)
        return fold(totals)

    monkeypatch.setattr(arrow_forms.GroupTotals, "_fold", counted)
    monkeypatch.setattr(arrow_forms, "_MOST_WAITING", 0)
    kernel = CombinerKernel(STEP, Count(), ("key",), Fields(), ("n",))
    given = [Block({}, 2, {"key": pa.array([2 * n, 2 * n + 1])}) for n in range(256)]
    [made] = kernel.run(given, TASK)
    assert made.values("key") == list(range(512))
    assert len(folds) < 12
