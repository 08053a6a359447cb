"""What plain callables are called with, and what they may return."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import pytest

from trident.errors import EmittedValueError, OperationError, OperationTypeError
from trident.kernels.task import StepName, Task
from trident.kernels.tuple_kernels import EachKernel, FlatMapKernel, MapKernel
from trident.operations.callables import (
    CallableColumn,
    CallableConsumer,
    CallableFilter,
    CallableFlatMap,
    CallableFunction,
    CallableMap,
    Native,
    native,
)
from trident.operations.interfaces import Function, Operation, PlainFunction
from trident.tuples.block import Block
from trident.tuples.fields import Fields


def rows(function: Any, *values: Any, outputs: str = "a") -> list[tuple[Any, ...]]:
    return made_by(CallableFunction(function), outputs, *values)


KERNELS = {CallableMap: MapKernel, CallableFlatMap: FlatMapKernel}


def made_by(operation: Operation, outputs: str, *values: Any) -> list[tuple[Any, ...]]:
    """What an operation makes of a tuple; raises what it raised."""
    kind: Any = KERNELS.get(type(operation), EachKernel)
    names = Fields.of([f"x{place}" if place else "x" for place in range(len(values))])
    kernel = kind(StepName("f", "job.py:1"), operation, names, (), Fields.of(outputs).names)
    block = Block({name: [value] for name, value in zip(names, values, strict=True)}, 1)
    try:
        return list(kernel.apply(block, Task(1, None, 0, 1)).tuples(kernel.outputs))
    except OperationError as error:
        raise error.cause or error from None


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (["a", "b"], [("a",), ("b",)]),
        (("a", "b"), [("a",), ("b",)]),
        (iter(["a"]), [("a",)]),
        ([("a",), "b"], [("a",), ("b",)]),
        ([["a"]], [(["a"],)]),
        ([None], [(None,)]),
        (["ab"], [("ab",)]),
        ([], []),
        (None, []),
    ],
)
def test_with_one_output_each_item_is_the_value(returned: Any, expected: Any) -> None:
    assert rows(lambda x: returned, "x") == expected


def test_with_several_outputs_each_item_is_a_row() -> None:
    assert rows(lambda x: [(x, 1), [x, 2]], "x", outputs="a, b") == [("x", 1), ("x", 2)]


@pytest.mark.parametrize(
    ("returned", "outputs", "text"),
    [
        ("ab", "a", "returned str 'ab', expected an iterable"),
        (b"ab", "a", "returned bytes"),
        (7, "a", "returned int 7, expected an iterable of values"),
        ([("a", "b")], "a", "emitted 2 values for 1 output fields"),
        ([("a",)], "a, b", "emitted 1 values for 2 output fields"),
        (["ab"], "a, b", "emitted str 'ab', expected a list of 2 values"),
    ],
)
def test_what_does_not_fit_is_an_error(returned: Any, outputs: str, text: str) -> None:
    with pytest.raises(EmittedValueError, match=f"<lambda> {text}"):
        rows(lambda x: returned, "x", outputs=outputs)


def test_a_plain_value_in_place_of_an_iterable_is_told_of_with_column() -> None:
    for returned in (7, "ab"):
        with pytest.raises(EmittedValueError, match=r"write withColumn\(name, function\)"):
            rows(lambda x, returned=returned: returned, "x")
        with pytest.raises(EmittedValueError) as found:
            made_by(CallableFlatMap(lambda _, returned=returned: returned), "a", "x")
        assert "withColumn" not in str(found.value)


@pytest.mark.parametrize("value", [7, "ab", None, ["a"], {"a": 1}, b"x"])
def test_with_column_appends_what_the_function_returns(value: Any) -> None:
    assert made_by(CallableColumn(lambda x: value), "a", "x") == [(value,)]


def lengths(word: str) -> list[int]: ...


def test_the_type_of_a_column_is_that_of_the_function() -> None:
    column = CallableColumn(lengths)
    assert column.infer_types(Fields.of("word string")) == ["array<long>"]


def test_a_function_gets_one_argument_for_each_input_field() -> None:
    assert rows(lambda x, y: [x + y], 1, 2) == [(3,)]
    assert rows(str.split, "a b") == [("a",), ("b",)]


def test_a_filter_returns_a_bool() -> None:
    assert CallableFilter(str.isupper).isKeep(("A",))  # type: ignore[arg-type]
    for returned in (None, "x", 1, ["a"]):
        keep: Callable[[Any], Any] = {"f": lambda _, r=returned: r}["f"]
        with pytest.raises(EmittedValueError, match="a filter returns a bool"):
            CallableFilter(keep).isKeep(("x",))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("returned", "outputs", "row"),
    [
        ("x", "a", ("x",)),
        (None, "a", (None,)),
        (("x",), "a", ("x",)),
        (["x"], "a", (["x"],)),
        (("x", 1), "a, b", ("x", 1)),
        (["x", 1], "a, b", ("x", 1)),
    ],
)
def test_map_returns_the_new_tuple(returned: Any, outputs: str, row: Any) -> None:
    assert made_by(CallableMap(lambda _: returned), outputs, "x") == [row]


@pytest.mark.parametrize("returned", [None, "xy", 7, ("x",)])
def test_map_to_several_fields_returns_a_row_of_them(returned: Any) -> None:
    with pytest.raises(EmittedValueError):
        made_by(CallableMap(lambda _: returned), "a, b", "x")


def test_flat_map_returns_an_iterable_of_tuples() -> None:
    assert made_by(CallableFlatMap(str.split), "a", "a b") == [("a",), ("b",)]
    assert made_by(CallableFlatMap(lambda _: None), "a", "x") == []
    with pytest.raises(EmittedValueError, match="returned str"):
        made_by(CallableFlatMap(str.upper), "a", "x")


def test_a_consumer_gets_the_values() -> None:
    seen: list[Any] = []
    CallableConsumer(lambda a, b: seen.append((a, b))).accept(("x", 1))  # type: ignore[arg-type]
    assert seen == [("x", 1)]


def iterator(x: Any) -> Iterator[str]: ...
def generator(x: Any) -> Generator[tuple[str, int], None, None]: ...
def optional(x: Any) -> list[int] | None: ...
def pairs(x: Any) -> Iterable[tuple[str, float]]: ...
def arrays(x: Any) -> list[list[str]]: ...
def odd(x: Any) -> list[complex]: ...
def unresolved(x: Any) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821
def silent(x): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (iterator, ["string"]),
        (generator, ["string", "long"]),
        (optional, ["long"]),
        (pairs, ["string", "double"]),
        (arrays, ["array<string>"]),
        (odd, [None]),
        (unresolved, [None]),
        (silent, [None]),
        (lambda x: x, [None]),
        (str.split, [None]),
    ],
)
def test_types_come_from_annotations(function: Any, types: list[str | None]) -> None:
    assert list(CallableFunction(function).infer_types(Fields())) == types


def test_a_callable_object_is_annotated_at_its_call() -> None:
    class Letters:
        def __call__(self, word: str) -> list[str]:
            return list(word)

    adapted = CallableFunction(Letters())
    assert list(adapted.infer_types(Fields())) == ["string"]
    assert adapted.label == "Letters"


def test_a_callable_says_that_it_is_not_deterministic() -> None:
    def now(x: Any) -> list[float]: ...

    now.deterministic = False  # type: ignore[attr-defined]
    assert not CallableFunction(now).deterministic
    assert CallableFunction(str.split).deterministic


def test_adapted_callables_pickle() -> None:
    assert pickle.loads(pickle.dumps(CallableFunction(str.split))) == CallableFunction(str.split)


def test_native_is_an_expression_or_makes_a_column() -> None:
    assert native("upper(word)") == Native("upper(word)")
    assert native("uuid()", deterministic=False).deterministic is False
    for wrong in ("", " ", 7, str):
        with pytest.raises(OperationTypeError, match="native: expected an expression"):
            native(wrong)  # type: ignore[arg-type]


class Repeat(Function):
    """By-field access in, several tuples out."""

    def execute(self, tuple: Any, collector: Any) -> None:
        for number in range(tuple["x"]):
            collector.emit([number])


class Ranges(PlainFunction):
    def expand(self, n: int) -> Iterable[int]:
        return range(n)


@pytest.mark.parametrize("function", [Repeat(), Ranges()])
def test_both_ways_to_write_a_function_give_the_same(function: Function) -> None:
    assert made_by(function, "i", 2) == [(0,), (1,)]


def test_a_plain_function_can_be_used_as_any_other() -> None:
    from trident.operations.emitted import ListCollector

    collector = ListCollector("Ranges()", 1)
    Ranges().execute((2,), collector)  # type: ignore[arg-type]
    assert collector.rows == [(0,), (1,)]


def test_a_collector_checks_what_is_emitted() -> None:
    class Two(Function):
        def execute(self, tuple: Any, collector: Any) -> None:
            collector.emit([1, 2])

    class Bare(Function):
        def execute(self, tuple: Any, collector: Any) -> None:
            collector.emit("x")

    with pytest.raises(EmittedValueError, match=r"Two\(\) emitted 2 values for 1 output fields"):
        made_by(Two(), "a", 0)
    with pytest.raises(EmittedValueError, match=r"Bare\(\) emitted str 'x'"):
        made_by(Bare(), "a", 0)
