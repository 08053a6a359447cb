"""Kernels that work on each tuple by itself: functions, filters, maps and consumers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from trident.kernels import column_forms
from trident.kernels.calls import CheckedCalls, one_for_each
from trident.kernels.kernel import TupleKernel, made_tuples
from trident.kernels.task import Task
from trident.operations.callables import (
    CallableConsumer,
    CallableFilter,
    CallableFlatMap,
    CallableMap,
)
from trident.operations.emitted import ListCollector, check_flat_rows, check_row
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


@dataclass(frozen=True)
class EachKernel(TupleKernel):
    """Appends what a function makes of the inputs."""

    operation: Function

    def apply(self, block: Block, task: Task) -> Block:
        names = self.inputs.names
        expanded = column_forms.expanded(self.operation, block, names, self.carried, self.outputs)
        if expanded is not None:
            return expanded
        if isinstance(self.operation, PlainFunction):
            calls = CheckedCalls(self.step, names, block, task)
            name = operation_name(self.operation)
            lists = calls.lists(self.operation)
            flat = calls.flatten(name, lists, self.outputs)
            return block.repeated(list(map(len, lists)), self.carried).added(flat)
        return self._execute(block, task)

    def _execute(self, block: Block, task: Task) -> Block:
        collector = ListCollector(operation_name(self.operation), len(self.outputs))
        counts, done = [], 0
        given = made_tuples(self.operation, self.inputs, block)
        pending = iter(given)
        with task.at(self.step, self.inputs.names, block, pending):
            for row in pending:
                self.operation.execute(row, collector)
                counts.append(len(collector.rows) - done)
                done += counts[-1]
        made = columns_of(self.outputs, collector.rows)
        return block.repeated(counts, self.carried).added(made)


@dataclass(frozen=True)
class FilterKernel(TupleKernel):
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
            return CheckedCalls(self.step, names, block, task).mask(self.operation)
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            return one_for_each(map(bool, map(self.operation.isKeep, pending)), block.length)


@dataclass(frozen=True)
class MapKernel(TupleKernel):
    """Replaces each tuple by one other."""

    operation: MapFunction

    def apply(self, block: Block, task: Task) -> Block:
        names = self.inputs.names
        if type(self.operation) is CallableMap:
            calls = CheckedCalls(self.step, names, block, task)
            columns = calls.map_tuples(self.operation, self.outputs)
            return block.only(self.carried).added(columns)
        name, width = operation_name(self.operation), len(self.outputs)
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            made = [check_row(name, self.operation.execute(row), width) for row in pending]
        return block.only(self.carried).added(columns_of(self.outputs, made))


@dataclass(frozen=True)
class FlatMapKernel(TupleKernel):
    """Replaces each tuple by any number of others."""

    operation: FlatMapFunction

    def apply(self, block: Block, task: Task) -> Block:
        names, name = self.inputs.names, operation_name(self.operation)
        if type(self.operation) is CallableFlatMap:
            calls = CheckedCalls(self.step, names, block, task)
            lists = calls.lists(self.operation)
            counts = list(map(len, lists))
            columns = calls.flatten(name, lists, self.outputs)
            return block.repeated(counts, self.carried).added(columns)
        width, execute = len(self.outputs), self.operation.execute
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            of_each = [list(check_flat_rows(name, execute(row), width)) for row in pending]
        columns = columns_of(self.outputs, list(chain.from_iterable(of_each)))
        return block.repeated(list(map(len, of_each)), self.carried).added(columns)


@dataclass(frozen=True)
class PeekKernel(TupleKernel):
    """Shows each tuple to a consumer."""

    operation: Consumer

    def apply(self, block: Block, task: Task) -> Block:
        names = self.inputs.names
        if type(self.operation) is CallableConsumer:
            CheckedCalls(self.step, names, block, task).consume(self.operation)
            return block
        pending = iter(made_tuples(self.operation, self.inputs, block))
        with task.at(self.step, names, block, pending):
            for row in pending:
                self.operation.accept(row)
        return block
