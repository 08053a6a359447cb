"""Kernels that aggregate: they take in all tuples of a partition."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, length_hint
from typing import TYPE_CHECKING, Any

from trident.kernels import column_forms
from trident.kernels.calls import stop_iteration_error
from trident.kernels.column_forms import Totals
from trident.kernels.kernel import Kernel, made_tuples
from trident.kernels.keys import group_keys, key_columns, key_fields
from trident.kernels.task import Task
from trident.operations.emitted import Row, check_row
from trident.operations.interfaces import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    TridentCollector,
    operation_name,
)
from trident.tuples.block import Block, block_of
from trident.tuples.fields import Fields

if TYPE_CHECKING:
    from trident.kernels.arrow_forms import GroupTotals

_LENGTH = attrgetter("length")
_MOST_COMBINED = 2**20
"""How many tuples of a partition are combined at once where the groups are combined later."""
_MOST_KEPT = 131_072
"""How many emitted tuples are kept before they are handed on, so that memory stays bounded."""


@dataclass(frozen=True)
class AggregateKernel(Kernel):
    """Aggregates each group, or without a group the whole partition."""

    group: tuple[str, ...]
    inputs: Fields
    outputs: tuple[str, ...]

    def _keys(self, block: Block, task: Task) -> Sequence[Hashable]:
        if not self.group:
            return [()] * block.length
        with task.at(self.step):
            return group_keys(block, self.group)

    def _finish(self, totals: Totals) -> Iterator[Block]:
        if not totals:
            return iter(())
        made = key_columns(self.group, list(totals))
        made[self.outputs[0]] = list(totals.values())
        return iter((Block(made, len(totals)),))


@dataclass(frozen=True)
class CombinerKernel(AggregateKernel):
    """Combines the tuples of each group, or `partial` aggregates. Without a group and tuples it
    makes the `zero`, if that is asked for."""

    operation: CombinerAggregator[Any]
    partial: bool = False
    zero: bool = True

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        totals = column_forms.no_totals(self.operation)
        arrow: GroupTotals | None = None
        for number, block in enumerate(filter(_LENGTH, blocks)):
            if number == 0:
                arrow = self._arrow_totals(block)
            if arrow is None:
                self._take_in(totals, block, task)
            elif not arrow.take_in(block):
                self._continue_in_python(arrow, totals, task)
                self._take_in(totals, block, task)
                arrow = None
        if arrow is not None:
            made = arrow.finish(self.outputs[0])
            if made is not None:
                return iter((made,))
            self._continue_in_python(arrow, totals, task)
        if self.zero and not self.group and not totals:
            with task.at(self.step):
                totals[()] = self.operation.zero()
        return self._finish(totals)

    def _arrow_totals(self, block: Block) -> GroupTotals | None:
        forms = column_forms.arrow_forms(block)
        if forms is None:
            return None
        field = self.inputs.names[0] if self.inputs.names else None
        made: GroupTotals | None
        made = forms.group_totals(self.operation, self.group, field, partial=self.partial)
        return made

    def _continue_in_python(self, arrow: GroupTotals, totals: Totals, task: Task) -> None:
        """Continue in Python with the totals that Arrow's kernels have made."""
        made = arrow.so_far(self.outputs[0])
        for key, value in zip(self._keys(made, task), made.values(self.outputs[0]), strict=True):
            totals[key] = value
        for block in arrow.waiting():
            self._take_in(totals, block, task)

    def _take_in(self, totals: Totals, block: Block, task: Task) -> None:
        keys = self._keys(block, task)
        names = self.inputs.names
        if not self.partial and column_forms.take_in(self.operation, totals, keys, block, names):
            return
        combine = self.operation.combine
        pending = iter(self._given(block))
        with task.at(self.step, names, block, pending):
            values = pending if self.partial else map(self.operation.init, pending)
            remaining = iter(keys)
            # Values come first: where they end too early, no key is taken, and one remains.
            for value, key in zip(values, remaining, strict=False):
                totals[key] = combine(totals[key], value) if key in totals else value
            if length_hint(remaining):
                raise stop_iteration_error()

    def _given(self, block: Block) -> Sequence[Any]:
        if self.partial:
            return block.values(self.inputs.names[0])
        return made_tuples(self.operation, self.inputs, block)


@dataclass(frozen=True)
class PartialKernel(CombinerKernel):
    """Combines some tuples of each group, as many as fit in memory: a group may come again."""

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        pending = iter(filter(_LENGTH, blocks))
        for first in pending:
            yield from super().run(_up_to(_MOST_COMBINED, first, pending), task)


def _up_to(most: int, first: Block, pending: Iterator[Block]) -> Iterator[Block]:
    """A block and the next ones, until they have `most` tuples."""
    yield first
    count = first.length
    while count < most and (block := next(pending, None)) is not None:
        yield block
        count += block.length


@dataclass(frozen=True)
class ReducerKernel(AggregateKernel):
    """Reduces the tuples of each group."""

    operation: ReducerAggregator[Any]

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        init, reduce = self.operation.init, self.operation.reduce
        totals: Totals = {}
        if not self.group:
            with task.at(self.step):
                totals[()] = init()
        for block in blocks:
            keys = self._keys(block, task)
            pending = iter(made_tuples(self.operation, self.inputs, block))
            with task.at(self.step, self.inputs.names, block, pending):
                for key, row in zip(keys, pending, strict=True):
                    totals[key] = reduce(totals[key] if key in totals else init(), row)
        return self._finish(totals)


@dataclass(frozen=True)
class AggregatorKernel(AggregateKernel):
    """Runs an aggregator over each group."""

    operation: Aggregator[Any]

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        aggregator = self.operation
        collector = _GroupCollector(operation_name(aggregator), len(self.outputs))
        names = (*self.group, *self.outputs)
        batch = task.record.token if aggregator.attempts and task.record else task.batch
        values: Totals = {}
        if not self.group:
            with task.at(self.step):
                values[()] = aggregator.init(batch, collector)
        for block in blocks:
            keys = self._keys(block, task)
            pending = iter(made_tuples(aggregator, self.inputs, block))
            with task.at(self.step, self.inputs.names, block, pending):
                for key, row in zip(keys, pending, strict=True):
                    collector.head = key_fields(key)
                    if key not in values:
                        values[key] = aggregator.init(batch, collector)
                    value = aggregator.aggregate(values[key], row, collector)
                    if value is not None:
                        values[key] = value
            yield block_of(names, collector.take())
        for key, value in values.items():
            collector.head = key_fields(key)
            with task.at(self.step):
                aggregator.complete(value, collector)
            if len(collector.rows) >= _MOST_KEPT:
                yield block_of(names, collector.take())
        yield block_of(names, collector.take())


class _GroupCollector(TridentCollector):
    """Collects emitted tuples, each behind the fields of its group."""

    def __init__(self, operation: str, width: int) -> None:
        self.head: Row = ()
        self.rows: list[Row] = []
        self._operation = operation
        self._width = width

    def emit(self, values: Sequence[Any]) -> None:
        self.rows.append(self.head + check_row(self._operation, values, self._width))

    def take(self) -> list[Row]:
        rows, self.rows = self.rows, []
        return rows
