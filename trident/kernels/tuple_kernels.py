"""Kernels that work on each tuple by itself: functions, filters, maps and consumers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from trident.errors import EmittedValueError, described
from trident.kernels import column_forms
from trident.kernels.calls import CallingKernel, one_for_each
from trident.kernels.kernel import made_tuples
from trident.kernels.task import Task
from trident.operations.callables import (
    CallableConsumer,
    CallableFilter,
    CallableFlatMap,
    CallableFunction,
    CallableMap,
    check_bool,
)
from trident.operations.emitted import (
    ListCollector,
    check_flat_rows,
    check_row,
    check_rows,
    check_values,
)
from trident.operations.interfaces import (
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    PlainFunction,
    operation_name,
)
from trident.tuples.block import Block, columns_of

_LISTS = frozenset({list, tuple})
_FOR_ONE_VALUE = " To append one value to each tuple write withColumn(name, function)."
"""What to write in place of ``each``, whose functions return any number of values."""


@dataclass(frozen=True)
class ExpandingKernel(CallingKernel):
    """A kernel whose function makes any number of tuples of one."""

    def _call_plain(self, block: Block, task: Task) -> Block:
        """Make tuples by a plain function, which returns values or rows."""
        name, width = operation_name(self.operation), len(self.outputs)
        lists = self._lists(name, block, task)
        if width != 1:
            rows = self.check_each(lists, lambda made: check_rows(name, made, width), block, task)
            columns = columns_of(self.outputs, list(chain.from_iterable(rows)))
        else:
            items = list(chain.from_iterable(lists))
            if _has_tuples(items):
                values = self.check_each(
                    lists, lambda made: check_values(name, list(made)), block, task
                )
                items = list(chain.from_iterable(values))
            columns = {self.outputs[0]: items}
        return block.repeated(list(map(len, lists)), self.carried).added(columns)

    def _lists(self, name: str, block: Block, task: Task) -> list[Sequence[Any]]:
        """The items that the function makes of each tuple."""
        function: Any = self.operation
        if not isinstance(function, CallableFunction | CallableFlatMap):
            made = self.call(function.expand, block, task)
            return made if _are_lists(made) else self.check_each(made, list, block, task)
        made = self.call(function.function, block, task)
        if _are_lists(made):
            return made
        advice = _FOR_ONE_VALUE if isinstance(function, CallableFunction) else ""
        return self.check_each(made, lambda one: _check_items(name, one, advice), block, task)


@dataclass(frozen=True)
class EachKernel(ExpandingKernel):
    """Appends what a function makes of the inputs."""

    operation: Function

    def apply(self, block: Block, task: Task) -> Block:
        names = self.inputs.names
        expanded = column_forms.expanded(self.operation, block, names, self.carried, self.outputs)
        if expanded is not None:
            return expanded
        if isinstance(self.operation, PlainFunction):
            return self._call_plain(block, task)
        collector = ListCollector(operation_name(self.operation), len(self.outputs))
        counts, done = [], 0
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            for row in pending:
                self.operation.execute(row, collector)
                counts.append(len(collector.rows) - done)
                done += counts[-1]
        made = columns_of(self.outputs, collector.rows)
        return block.repeated(counts, self.carried).added(made)


@dataclass(frozen=True)
class FilterKernel(CallingKernel):
    """Keeps some tuples."""

    operation: Filter

    def apply(self, block: Block, task: Task) -> Block:
        forms = column_forms.arrow_forms(block)
        if forms is not None:
            rows = forms.kept_rows(self.operation, block, self.inputs.names)
            if rows is not None and len(rows) == block.length:
                return block.only(self.carried)
            if rows is not None:
                return block.taken(rows, self.carried)
        return block.kept(self._mask(block, task), self.carried)

    def _mask(self, block: Block, task: Task) -> list[bool]:
        names = self.inputs.names
        mask = column_forms.mask(self.operation, block, names)
        if mask is not None:
            return mask
        if type(self.operation) is CallableFilter:
            name, kept = self.operation.label, self.call(self.operation.function, block, task)
            if set(map(type, kept)) <= {bool}:
                return kept
            return self.check_each(kept, lambda one: check_bool(name, one), block, task)
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            return one_for_each(map(bool, map(self.operation.isKeep, pending)), block.length)


@dataclass(frozen=True)
class MapKernel(CallingKernel):
    """Replaces each tuple by one other."""

    operation: MapFunction

    def apply(self, block: Block, task: Task) -> Block:
        name, names, width = operation_name(self.operation), self.inputs.names, len(self.outputs)
        if type(self.operation) is CallableMap:
            made = self.call(self.operation.function, block, task)
            if width != 1:
                made = self.check_each(made, lambda row: check_row(name, row, width), block, task)
            elif _has_tuples(made):
                made = self.check_each(made, lambda one: check_values(name, [one])[0], block, task)
            columns = columns_of(self.outputs, made) if width != 1 else {self.outputs[0]: made}
            return block.only(self.carried).added(columns)
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            rows = [check_row(name, self.operation.execute(row), width) for row in pending]
        return block.only(self.carried).added(columns_of(self.outputs, rows))


@dataclass(frozen=True)
class FlatMapKernel(ExpandingKernel):
    """Replaces each tuple by any number of others."""

    operation: FlatMapFunction

    def apply(self, block: Block, task: Task) -> Block:
        names, name = self.inputs.names, operation_name(self.operation)
        if type(self.operation) is CallableFlatMap:
            return self._call_plain(block, task)
        width, execute = len(self.outputs), self.operation.execute
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            of_each = [check_flat_rows(name, execute(row), width) for row in pending]
        columns = columns_of(self.outputs, list(chain.from_iterable(of_each)))
        return block.repeated(list(map(len, of_each)), self.carried).added(columns)


@dataclass(frozen=True)
class PeekKernel(CallingKernel):
    """Shows each tuple to a consumer."""

    operation: Consumer

    def apply(self, block: Block, task: Task) -> Block:
        names = self.inputs.names
        if type(self.operation) is CallableConsumer:
            self.call(self.operation.function, block, task)
            return block
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            for row in pending:
                self.operation.accept(row)
        return block


def _are_lists(made: Sequence[Any]) -> bool:
    return set(map(type, made)) <= _LISTS


def _has_tuples(values: Sequence[Any]) -> bool:
    return any(issubclass(kind, tuple) for kind in set(map(type, values)))


def _check_items(operation: str, made: object, advice: str) -> list[Any]:
    """Check that a plain callable returned an iterable, and return its items; None has none.

    A string or bytes, whose letters are hardly meant, is refused.
    """
    if made is None:
        return []
    if isinstance(made, Iterable) and not isinstance(made, str | bytes):
        return list(made)
    due = ": return a list of it" if isinstance(made, Iterable) else " of values"
    problem = f"returned {described(made)}, expected an iterable{due}"
    raise EmittedValueError(operation, f"{problem}.{advice}" if advice else problem)
