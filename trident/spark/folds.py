"""The steps of a stage that take in a whole partition: aggregates."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trident.fields import Fields
from trident.operations import (
    Aggregator,
    CombinerAggregator,
    ReducerAggregator,
    TridentCollector,
)
from trident.rows import Row, checked_row, operation_name
from trident.spark.block import OUTPUT_ROWS, Block, block_of
from trident.spark.steps import Step, Task, made_tuples
from trident.states.keys import decode_key, encode_key

# Values of these types are equal in Python exactly where their encoded forms are.
_SAFE = frozenset({str, int, type(None)})


@dataclass(frozen=True)
class CombineStep(Step):
    """Combines the rows of each group, or of the whole partition without a group.

    ``partial`` says that the input field holds aggregates already, not tuples to begin with;
    ``zero`` that a partition without rows gives the aggregate of none.
    """

    combiner: CombinerAggregator[Any]
    group: tuple[str, ...]
    inputs: Fields
    output: str
    partial: bool = False
    zero: bool = True

    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        combine = self.combiner.combine
        totals: dict[Hashable, Any] = {}
        with task.prepared(self.place, self.combiner):
            for block in blocks:
                keys = group_keys(block, self.group)
                given = self._given(block)
                pending = iter(given)
                with task.at(self.place, self.inputs.names, given, pending):
                    for key, value in zip(keys, self._values(pending), strict=True):
                        totals[key] = combine(totals[key], value) if key in totals else value
            if self.zero and not self.group and not totals:
                with task.at(self.place):
                    totals[()] = self.combiner.zero()
        yield from _finished(self.group, (self.output,), totals)

    def _given(self, block: Block) -> Sequence[Any]:
        if self.partial:
            return block.values(self.inputs.names[0])
        return made_tuples(self.combiner, self.inputs, block)

    def _values(self, pending: Iterator[Any]) -> Iterator[Any]:
        return pending if self.partial else map(self.combiner.init, pending)


@dataclass(frozen=True)
class ReduceStep(Step):
    """Reduces the rows of each group, or of the whole partition without a group."""

    reducer: ReducerAggregator[Any]
    group: tuple[str, ...]
    inputs: Fields
    output: str

    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        init, reduce = self.reducer.init, self.reducer.reduce
        totals: dict[Hashable, Any] = {}
        with task.prepared(self.place, self.reducer):
            if not self.group:
                with task.at(self.place):
                    totals[()] = init()
            for block in blocks:
                keys = group_keys(block, self.group)
                given = made_tuples(self.reducer, self.inputs, block)
                pending = iter(given)
                with task.at(self.place, self.inputs.names, given, pending):
                    for key, row in zip(keys, pending, strict=True):
                        totals[key] = reduce(totals[key] if key in totals else init(), row)
        yield from _finished(self.group, (self.output,), totals)


@dataclass(frozen=True)
class AggregateStep(Step):
    """Runs an aggregator over each group, or over the whole partition without a group."""

    aggregator: Aggregator[Any]
    group: tuple[str, ...]
    inputs: Fields
    outputs: tuple[str, ...]

    def run(self, blocks: Iterator[Block], task: Task) -> Iterator[Block]:
        aggregator, txid = self.aggregator, task.record.token.txid
        collector = _GroupCollector(operation_name(aggregator), len(self.outputs))
        names = (*self.group, *self.outputs)
        values: dict[Hashable, Any] = {}
        with task.prepared(self.place, aggregator):
            if not self.group:
                with task.at(self.place):
                    values[()] = aggregator.init(txid, collector)
            for block in blocks:
                keys = group_keys(block, self.group)
                given = made_tuples(aggregator, self.inputs, block)
                pending = iter(given)
                with task.at(self.place, self.inputs.names, given, pending):
                    for key, row in zip(keys, pending, strict=True):
                        collector.head = key_fields(self.group, key)
                        if key not in values:
                            values[key] = aggregator.init(txid, collector)
                        value = aggregator.aggregate(values[key], row, collector)
                        if value is not None:
                            values[key] = value
                yield block_of(names, collector.taken())
            for key, value in values.items():
                collector.head = key_fields(self.group, key)
                with task.at(self.place):
                    aggregator.complete(value, collector)
                if len(collector.rows) >= OUTPUT_ROWS:
                    yield block_of(names, collector.taken())
        yield block_of(names, collector.taken())


class _GroupCollector(TridentCollector):
    """Keeps what is emitted behind the fields of the group it is for."""

    def __init__(self, operation: str, width: int) -> None:
        self.head: Row = ()
        self.rows: list[Row] = []
        self._operation = operation
        self._width = width

    def emit(self, values: Sequence[Any]) -> None:
        self.rows.append(self.head + checked_row(self._operation, values, self._width))

    def taken(self) -> list[Row]:
        rows, self.rows = self.rows, []
        return rows


def group_keys(block: Block, group: tuple[str, ...]) -> Sequence[Hashable]:
    """The group of each row: the value of one field, the row of several, or the encoded key.

    Encoding makes ``1``, ``True`` and ``1.0`` three keys; it is left out where the types of a
    row allow, as it costs more than most aggregates.
    """
    if len(group) == 1:
        values = block.values(group[0])
        if set(map(type, values)) <= _SAFE:
            return values
        return [value if type(value) in _SAFE else encode_key((value,)) for value in values]
    keys = list(block.tuples(group))
    if all(set(map(type, block.values(name))) <= _SAFE for name in group):
        return keys
    return [key if set(map(type, key)) <= _SAFE else encode_key(key) for key in keys]


def key_fields(group: tuple[str, ...], key: Hashable) -> Row:
    """The fields of a group, from what `group_keys` calls it."""
    if type(key) is bytes:
        return decode_key(key)
    if type(key) is tuple:
        return key
    return (key,)


def _finished(
    group: tuple[str, ...], outputs: tuple[str, ...], totals: dict[Hashable, Any]
) -> Iterator[Block]:
    keys = list(totals)
    for start in range(0, len(keys), OUTPUT_ROWS):
        part = keys[start : start + OUTPUT_ROWS]
        yield block_of((*group, *outputs), [(*key_fields(group, key), totals[key]) for key in part])
