"""Checks what operations emit: each tuple has a value for each output field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trident.errors import EmittedValueError, described
from trident.operations.interfaces import QueryFunction, TridentCollector, operation_name

Row = tuple[Any, ...]


class ListCollector(TridentCollector):
    """Keeps what an operation emits, checked, in ``rows``."""

    def __init__(self, operation: str, width: int) -> None:
        self.rows: list[Row] = []
        self._operation = operation
        self._width = width

    def emit(self, values: Sequence[Any]) -> None:
        if type(values) is not tuple or len(values) != self._width:
            values = check_row(self._operation, values, self._width)
        self.rows.append(values)


def check_row(operation: str, values: object, width: int) -> Row:
    """Check that one emitted tuple is a list or tuple of ``width`` values."""
    if not isinstance(values, tuple | list):
        problem = f"emitted {described(values)}, expected a list of {width} values"
        raise EmittedValueError(operation, problem)
    if len(values) != width:
        problem = f"emitted {len(values)} values for {width} output fields: {described(values)}"
        raise EmittedValueError(operation, problem)
    return tuple(values)


def check_values(operation: str, items: list[Any]) -> list[Any]:
    """Check what a plain callable made for one output field: values, where ``(v,)`` is ``v``.

    Only the distinct types are looked at, so that a whole column can be checked at once.

    Examples
    --------
    >>> check_values("f", ["a", ("b",), ["c"]])
    ['a', 'b', ['c']]
    """
    if not any(issubclass(kind, tuple) for kind in set(map(type, items))):
        return items
    return [check_row(operation, i, 1)[0] if isinstance(i, tuple) else i for i in items]


def check_rows(operation: str, items: Iterable[Any], width: int) -> list[Row]:
    """Check what a plain callable made, and return it as rows.

    Examples
    --------
    >>> check_rows("f", ["a", ("b",)], 1), check_rows("f", [("a", 1), ["b", 2]], 2)
    ([('a',), ('b',)], [('a', 1), ('b', 2)])
    """
    if width == 1:
        return [(value,) for value in check_values(operation, list(items))]
    return [check_row(operation, item, width) for item in items]


def check_flat_rows(operation: str, made: object, width: int) -> list[Row]:
    """Check that a `FlatMapFunction` returned lists or tuples of ``width`` values."""
    if not isinstance(made, Iterable):
        problem = f"returned {described(made)}, expected an iterable of tuples"
        raise EmittedValueError(operation, problem)
    return [check_row(operation, values, width) for values in made]


def retrieve(function: QueryFunction[Any, Any], state: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """Call ``batchRetrieve`` for some tuples, and check that it returns one result for each."""
    results = function.batchRetrieve(state, inputs)
    if len(results) != len(inputs):
        raise EmittedValueError(
            operation_name(function),
            f"retrieved {len(results)} results for {len(inputs)} tuples, "
            "where batchRetrieve returns one for each, in order",
        )
    return results
