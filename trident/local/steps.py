"""Partition-local steps as closures over the tuples of one partition."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from itertools import repeat
from typing import Any

from trident.errors import EmittedValueError, PlanError
from trident.local.batch import Batch, Rows, blame
from trident.local.selection import picker, tuple_maker
from trident.operations import FlatMapFunction, MapFunction, Operation, PlainFunction
from trident.plan.describe import describe
from trident.plan.nodes import (
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    NameNode,
    NewValuesNode,
    Node,
    PeekNode,
    ProjectNode,
    StateQueryNode,
)
from trident.rows import (
    ListCollector,
    Row,
    checked_row,
    checked_values,
    expander,
    flat_rows,
    operation_name,
    retrieved,
)

Step = Callable[[Rows, int, Batch], Rows]
"""From a partition's tuples, its index and the run to the tuples after the step."""


@singledispatch
def step(node: Node) -> Step | None:
    """The closure for a partition-local node; None where there is nothing to do.

    It is called once a partition and run, also where a partition has no tuples. What a user's
    operation raises it raises as `OperationError`.

    Raises
    ------
    PlanError
        For a native step.
    """
    what = f"{node.origin.call} at {node.origin}: only Spark can run the step"
    advice = "Start the topology with a session, start(spark), or write the step in Python."
    raise PlanError(what, describe(node), (), advice)


@step.register(HintNode | NameNode | NewValuesNode)
def _passes(node: Node) -> None:
    return None


@step.register
def _each(node: EachNode) -> Step:
    if isinstance(node.function, PlainFunction) and len(node.outputs) == 1:
        return _each_value(node, node.function)
    fields = node.parent.fields
    pick = picker(fields, node.inputs)
    expand = expander(node.function, fields.select(node.inputs), node.outputs)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        out: Rows = []
        row: Row = ()
        try:
            for row in rows:
                out += [row + values for values in expand(pick(row))]
        except Exception as error:
            blame(error, node, batch, partition, row)
        return out

    return run


def _each_value(node: EachNode, function: PlainFunction) -> Step:
    """The same for plain values; they are checked by the column, which saves most of the time."""
    name, expand = operation_name(function), function.expand
    pick = picker(node.parent.fields, node.inputs)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        heads: Rows = []
        values: list[Any] = []
        row: Row = ()
        try:
            for row in rows:
                made = list(expand(*pick(row)))
                values += made
                heads += repeat(row, len(made))
            values = checked_values(name, values)
        except Exception as error:
            if isinstance(error, EmittedValueError):
                row = _wrong(heads, values, row)
            blame(error, node, batch, partition, row)
        return [(*head, value) for head, value in zip(heads, values, strict=True)]

    return run


def _wrong(heads: Rows, values: list[Any], last: Row) -> Row:
    """The tuple of the first value that is no value; else the last one at hand."""
    wrong = (
        head
        for head, value in zip(heads, values, strict=True)
        if isinstance(value, tuple) and len(value) != 1
    )
    return next(wrong, last)


@step.register
def _filter(node: FilterNode) -> Step:
    keeps = node.filter.isKeep
    make = tuple_maker(node.filter, node.parent.fields, node.inputs)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        out: Rows = []
        row: Row = ()
        try:
            for row in rows:
                if keeps(make(row)):
                    out.append(row)
        except Exception as error:
            blame(error, node, batch, partition, row)
        return out

    return run


@step.register
def _map(node: MapNode) -> Step:
    function: MapFunction = node.function
    name, width = operation_name(function), len(node.fields)
    make = tuple_maker(function, node.parent.fields, node.parent.fields)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        out: Rows = []
        row: Row = ()
        try:
            for row in rows:
                out.append(checked_row(name, function.execute(make(row)), width))
        except Exception as error:
            blame(error, node, batch, partition, row)
        return out

    return run


@step.register
def _flat_map(node: FlatMapNode) -> Step:
    function: FlatMapFunction = node.function
    name, width = operation_name(function), len(node.fields)
    make = tuple_maker(function, node.parent.fields, node.parent.fields)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        out: Rows = []
        row: Row = ()
        try:
            for row in rows:
                out += flat_rows(name, function.execute(make(row)), width)
        except Exception as error:
            blame(error, node, batch, partition, row)
        return out

    return run


@step.register
def _peek(node: PeekNode) -> Step:
    accept = node.consumer.accept
    make = tuple_maker(node.consumer, node.parent.fields, node.parent.fields)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        row: Row = ()
        try:
            for row in rows:
                accept(make(row))
        except Exception as error:
            blame(error, node, batch, partition, row)
        return rows

    return run


@step.register
def _project(node: ProjectNode) -> Step:
    pick = picker(node.parent.fields, node.keep)
    return lambda rows, partition, batch: list(map(pick, rows))


@step.register
def _state_query(node: StateQueryNode) -> Step:
    function = node.function
    name, width = operation_name(function), len(node.outputs)
    make = tuple_maker(function, node.parent.fields, node.inputs)

    def run(rows: Rows, partition: int, batch: Batch) -> Rows:
        out: Rows = []
        row: Row | None = None
        if not rows:
            return out
        try:
            inputs = [make(row) for row in rows]
            results = retrieved(function, batch.queried(node.state), inputs)
            collector = ListCollector(name, width)
            for row, values, result in zip(rows, inputs, results, strict=True):
                function.execute(values, result, collector)
                if collector.rows:
                    out += [row + emitted for emitted in collector.rows]
                    collector.rows.clear()
        except Exception as error:
            blame(error, node, batch, partition, row)
        return out

    return run


def operation_of(node: Node) -> Operation | None:
    """The user's operation in a node, to prepare and to clean up; None where it has none."""
    for name in ("function", "filter", "consumer", "aggregator", "updater"):
        found = getattr(node, name, None)
        if isinstance(found, Operation):
            return found
    return None
