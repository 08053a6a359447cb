"""Aggregates over the tuples of one partition, and over whole batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from trident.builtin import Count
from trident.fields import Fields
from trident.local.batch import Batch, Partitions, Rows, blame
from trident.local.keys import grouper, partition_by
from trident.local.operations import Operations
from trident.local.selection import tuple_maker
from trident.local.steps import Step, step
from trident.operations import CombinerAggregator, ReducerAggregator
from trident.plan.nodes import AggregateNode, AnyAggregator, PartitionAggregateNode
from trident.rows import ListCollector, Row, operation_name

Fold = Callable[[Iterable[Any], Batch], list[Row]]
"""From tuples, as the aggregator is handed them, to the output values."""

Exchange = Callable[[Partitions, Batch], Partitions]
"""From all partitions of a batch to all partitions after the step."""


@step.register(PartitionAggregateNode)
def aggregate_step(node: AggregateNode | PartitionAggregateNode, aggregator: AnyAggregator) -> Step:
    """Aggregate the tuples of one partition; without a group, also where there are none."""
    if node.group is None:
        return _ungrouped(node, aggregator)
    if isinstance(aggregator, CombinerAggregator):
        return _combined_by_group(node, node.group, aggregator)
    return _folded_by_group(node, node.group, aggregator)


def whole_batch(node: AggregateNode, operations: Operations, before: int, count: int) -> Exchange:
    """Aggregate a batch; combiners first in each partition, then across them.

    Parameters
    ----------
    node : AggregateNode
        The step.
    operations : Operations
        Gives each partition its aggregator.
    before : int
        How many partitions the tuples are in.
    count : int
        Over how many partitions the groups of the result are spread.
    """
    if isinstance(node.aggregator, CombinerAggregator):
        return _two_stages(node, operations, before, count)
    move = _move(node, node.parent.fields, count)
    finals = [aggregate_step(node, aggregator) for aggregator in operations.of(node, count)]
    return lambda partitions, batch: each_partition(finals, move(partitions), batch)


def gathered(partitions: Partitions) -> Partitions:
    """All tuples in one partition."""
    return partitions if len(partitions) == 1 else [[row for rows in partitions for row in rows]]


def _two_stages(node: AggregateNode, operations: Operations, before: int, count: int) -> Exchange:
    firsts = [aggregate_step(node, combiner) for combiner in operations.of(node, before)]
    if before == count == 1:
        return lambda partitions, batch: each_partition(firsts, partitions, batch)
    seconds = [_combine_partials(node, combiner) for combiner in operations.of(node, count)]
    move = _move(node, node.fields, count)

    def run(partitions: Partitions, batch: Batch) -> Partitions:
        # Where there is no tuple there is nothing to combine; zero is for a batch without any.
        found = enumerate(zip(firsts, partitions, strict=True))
        partials = [first(rows, index, batch) for index, (first, rows) in found if rows]
        if not partials:
            partials = [firsts[0]([], 0, batch)]
        if len(partials) == 1 and count == 1:
            return partials
        return each_partition(seconds, move(partials), batch)

    return run


def _combine_partials(node: AggregateNode, combiner: CombinerAggregator[Any]) -> Step:
    keys_of = grouper(node.fields, node.group or Fields())

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        totals: dict[Hashable, Any] = {}
        row: Row | None = None
        try:
            keys, fields_of = keys_of(rows)
            for key, row in zip(keys, rows, strict=True):
                value = row[-1]
                totals[key] = combiner.combine(totals[key], value) if key in totals else value
        except Exception as error:
            blame(error, node, batch, partition, row, node.fields.names)
        return [(*fields_of(key), total) for key, total in totals.items()]

    return run


def _move(node: AggregateNode, fields: Fields, count: int) -> Callable[[Partitions], Partitions]:
    if node.group is None or count == 1:
        return gathered
    return partition_by(fields, node.group, count)


def each_partition(steps: Sequence[Step], partitions: Partitions, batch: Batch) -> Partitions:
    """Run each partition's own step over its tuples."""
    of_each = enumerate(zip(steps, partitions, strict=True))
    return [run(rows, index, batch) for index, (run, rows) in of_each]


class _Tuples:
    """Tuples as an operation is handed them; ``row`` is the one it was handed last."""

    def __init__(self, rows: Rows, make: Callable[[Row], Any]) -> None:
        self.row: Row | None = None
        self._rows = rows
        self._make = make

    def __iter__(self) -> Iterator[Any]:
        make = self._make
        for row in self._rows:
            self.row = row
            yield make(row)


def _ungrouped(node: AggregateNode | PartitionAggregateNode, aggregator: AnyAggregator) -> Step:
    make = tuple_maker(aggregator, node.parent.fields, node.inputs)
    fold = _fold(aggregator, node.outputs)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        tuples = _Tuples(rows, make)
        try:
            return fold(tuples, batch)
        except Exception as error:
            blame(error, node, batch, partition, tuples.row)

    return run


def _folded_by_group(
    node: AggregateNode | PartitionAggregateNode, group: Fields, aggregator: AnyAggregator
) -> Step:
    make = tuple_maker(aggregator, node.parent.fields, node.inputs)
    fold = _fold(aggregator, node.outputs)
    keys_of = grouper(node.parent.fields, group)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        out: Rows = []
        tuples = _Tuples([], make)
        try:
            keys, fields_of = keys_of(rows)
            groups: dict[Hashable, Rows] = {}
            for key, row in zip(keys, rows, strict=True):
                groups.setdefault(key, []).append(row)
            for key, members in groups.items():
                tuples = _Tuples(members, make)
                head = fields_of(key)
                out += [head + values for values in fold(tuples, batch)]
        except Exception as error:
            blame(error, node, batch, partition, tuples.row)
        return out

    return run


def _combined_by_group(
    node: AggregateNode | PartitionAggregateNode, group: Fields, combiner: CombinerAggregator[Any]
) -> Step:
    make = tuple_maker(combiner, node.parent.fields, node.inputs)
    keys_of = grouper(node.parent.fields, group)
    init, combine = combiner.init, combiner.combine
    counts = type(combiner) is Count

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        totals: dict[Hashable, Any] = {}
        row: Row | None = None
        try:
            keys, fields_of = keys_of(rows)
            if counts:
                totals = Counter(keys)
            else:
                for key, row in zip(keys, rows, strict=True):
                    value = init(make(row))
                    totals[key] = combine(totals[key], value) if key in totals else value
        except Exception as error:
            blame(error, node, batch, partition, row)
        return [(*fields_of(key), total) for key, total in totals.items()]

    return run


def _fold(aggregator: AnyAggregator, outputs: Fields) -> Fold:
    if isinstance(aggregator, CombinerAggregator):
        return _fold_combiner(aggregator)
    if isinstance(aggregator, ReducerAggregator):
        reducer = aggregator

        def reduced(tuples: Iterable[Any], batch: Batch) -> list[Row]:
            current = reducer.init()
            for values in tuples:
                current = reducer.reduce(current, values)
            return [(current,)]

        return reduced

    name, width = operation_name(aggregator), len(outputs)

    def aggregated(tuples: Iterable[Any], batch: Batch) -> list[Row]:
        collector = ListCollector(name, width)
        value = aggregator.init(batch.id, collector)
        for values in tuples:
            changed = aggregator.aggregate(value, values, collector)
            if changed is not None:
                value = changed
        aggregator.complete(value, collector)
        return collector.rows

    return aggregated


def _fold_combiner(combiner: CombinerAggregator[Any]) -> Fold:
    nothing = object()

    def combined(tuples: Iterable[Any], batch: Batch) -> list[Row]:
        values = map(combiner.init, tuples)
        total: Any = next(values, nothing)
        if total is nothing:
            return [(combiner.zero(),)]
        for value in values:
            total = combiner.combine(total, value)
        return [(total,)]

    return combined
