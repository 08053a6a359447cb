"""Calls of plain functions: one for each tuple, with the values of its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat, starmap
from typing import Any

from trident.errors import EmittedValueError, described
from trident.kernels.task import StepName, Task
from trident.operations.callables import (
    CallableConsumer,
    CallableFilter,
    CallableFlatMap,
    CallableFunction,
    CallableMap,
    check_bool,
)
from trident.operations.emitted import check_row, check_rows, check_values
from trident.operations.interfaces import PlainFunction, operation_name
from trident.tuples.block import Block, columns_of

_LISTS = frozenset({list, tuple})
_FOR_ONE_VALUE = " To append one value to each tuple write withColumn(name, function)."
"""What to write in place of ``each``, whose functions return any number of values."""


class CheckedCalls:
    """Calls a function for each tuple of a block; checks the column's types before single
    results."""

    def __init__(self, step: StepName, names: Sequence[str], block: Block, task: Task) -> None:
        self._step = step
        self._names = names
        self._block = block
        self._task = task

    def results(self, function: Callable[..., Any]) -> list[Any]:
        """What the function returns for each tuple."""
        pending, calls = self._begin(function)
        with self._task.at(self._step, self._names, self._block, pending):
            return one_for_each(calls, self._block.length)

    def check_each(self, made: Sequence[Any], check: Callable[[Any], Any]) -> list[Any]:
        """What `check` returns for each result."""
        pending = iter(made)
        with self._task.at(self._step, self._names, self._block, pending):
            return one_for_each(map(check, pending), len(made))

    def consume(self, consumer: CallableConsumer) -> None:
        """Show each tuple to a consumer."""
        self.results(consumer.function)

    def mask(self, filter: CallableFilter) -> list[bool]:
        """Whether a filter keeps each tuple."""
        kept = self.results(filter.function)
        if set(map(type, kept)) <= {bool}:
            return kept
        return self.check_each(kept, lambda one: check_bool(filter.label, one))

    def map_tuples(self, function: CallableMap, outputs: Sequence[str]) -> dict[str, Sequence[Any]]:
        """The new value of each tuple, as columns."""
        name, width = operation_name(function), len(outputs)
        made = self.results(function.function)
        if width == 1 and not _holds_tuples(made):
            return {outputs[0]: made}
        if width == 1:
            return {outputs[0]: self.check_each(made, lambda one: check_values(name, [one])[0])}
        return columns_of(outputs, self.check_each(made, lambda row: check_row(name, row, width)))

    def lists(self, function: PlainFunction | CallableFlatMap) -> list[Sequence[Any]]:
        """The items that a function makes of each tuple."""
        if isinstance(function, CallableFunction | CallableFlatMap):
            name = operation_name(function)
            made = self.results(function.function)
            if set(map(type, made)) <= _LISTS:
                return made
            advice = _FOR_ONE_VALUE if isinstance(function, CallableFunction) else ""
            return self.check_each(made, lambda one: list(_checked_iterable(name, one, advice)))
        made = self.results(function.expand)
        return made if set(map(type, made)) <= _LISTS else self.check_each(made, list)

    def flatten(
        self, name: str, lists: Sequence[Sequence[Any]], outputs: Sequence[str]
    ) -> dict[str, Sequence[Any]]:
        """The items of all tuples, one after the other, as columns; an item is a value or a row."""
        width = len(outputs)
        if width == 1:
            items = list(chain.from_iterable(lists))
            if _holds_tuples(items):
                checked = self.check_each(lists, lambda made: check_values(name, list(made)))
                items = list(chain.from_iterable(checked))
            return {outputs[0]: items}
        rows = self.check_each(lists, lambda made: check_rows(name, made, width))
        return columns_of(outputs, list(chain.from_iterable(rows)))

    def _begin(self, function: Callable[..., Any]) -> tuple[Iterator[Any], Iterator[Any]]:
        """Return an iterator that shows how far the calls have come, and the calls."""
        if not self._names:
            nothing = repeat((), self._block.length)
            return nothing, starmap(function, nothing)
        first, *others = map(self._block.values, self._names)
        pending = iter(first)
        return pending, map(function, pending, *others)


def one_for_each(calls: Iterator[Any], length: int) -> list[Any]:
    """The results of the calls; raises where StopIteration of a function has ended them early."""
    made = list(calls)
    if len(made) != length:
        raise stop_iteration_error()
    return made


def stop_iteration_error() -> RuntimeError:
    """The error for a StopIteration of a function, which `map` would take for its own end."""
    return RuntimeError(
        "it raised StopIteration, as next() does when nothing is left: "
        "give next() a default, or raise another error"
    )


def _holds_tuples(values: Sequence[Any]) -> bool:
    return any(issubclass(kind, tuple) for kind in set(map(type, values)))


def _checked_iterable(operation: str, made: object, advice: str) -> Iterable[Any]:
    """Check that a plain callable returned an iterable; None is an empty one.

    A string or bytes, whose letters are hardly meant, is refused.
    """
    if made is None:
        return ()
    if isinstance(made, Iterable) and not isinstance(made, str | bytes):
        return made
    due = ": return a list of it" if isinstance(made, Iterable) else " of values"
    problem = f"returned {described(made)}, expected an iterable{due}"
    raise EmittedValueError(operation, f"{problem}.{advice}" if advice else problem)
