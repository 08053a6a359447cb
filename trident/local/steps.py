"""Partition-local steps as closures over the tuples of one partition."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from itertools import repeat
from typing import Any, NoReturn

from trident.errors import EmittedValueError, PlanError
from trident.local.batch import Batch, Rows, blame
from trident.local.selection import picker, tuple_maker
from trident.operations import (
    Consumer,
    Filter,
    FlatMapFunction,
    Function,
    MapFunction,
    PlainFunction,
    QueryFunction,
)
from trident.plan.describe import describe
from trident.plan.nodes import (
    EachNode,
    FilterNode,
    FlatMapNode,
    HintNode,
    MapNode,
    NameNode,
    NativeNode,
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
def step(node: Node, operation: Any) -> Step | None:
    """The closure for one partition of a partition-local node; None where there is nothing to do.

    It is called once a run, also where the partition has no tuples. What a user's operation raises
    it raises as `OperationError`.

    Parameters
    ----------
    node : Node
        The step.
    operation : Operation or None
        The partition's own operation, where the step has any.

    Raises
    ------
    PlanError
        For a native step, and for a kind of step that this engine doesn't know.
    """
    what = f"{node.origin.call} at {node.origin}: the local engine can't run a"
    raise PlanError(what, type(node).__name__, (), "Tell it how, in trident/local/steps.py.")


@step.register
def _native(node: NativeNode, operation: None) -> NoReturn:
    what = f"{node.origin.call} at {node.origin}: only Spark can run the step"
    advice = "Start the topology with a session, start(spark), or write the step in Python."
    raise PlanError(what, describe(node), (), advice)


@step.register(HintNode | NameNode | NewValuesNode)
def _passes(node: Node, operation: None) -> None:
    return None


@step.register
def _each(node: EachNode, function: Function) -> Step:
    if isinstance(function, PlainFunction) and len(node.outputs) == 1:
        return _each_value(node, function)
    fields = node.parent.fields
    pick = picker(fields, node.inputs)
    expand = expander(function, fields.select(node.inputs), node.outputs)

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
def _filter(node: FilterNode, operation: Filter) -> Step:
    keeps = operation.isKeep
    make = tuple_maker(operation, node.parent.fields, node.inputs)

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
def _map(node: MapNode, function: MapFunction) -> Step:
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
def _flat_map(node: FlatMapNode, function: FlatMapFunction) -> Step:
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
def _peek(node: PeekNode, consumer: Consumer) -> Step:
    accept = consumer.accept
    make = tuple_maker(consumer, node.parent.fields, node.parent.fields)

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
def _project(node: ProjectNode, operation: None) -> Step:
    pick = picker(node.parent.fields, node.keep)
    return lambda rows, partition, batch: list(map(pick, rows))


@step.register
def _state_query(node: StateQueryNode, function: QueryFunction[Any, Any]) -> Step:
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
