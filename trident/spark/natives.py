"""Steps that Spark runs itself, without Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trident.errors import EmittedValueError, LongOverflowError, TridentError
from trident.kernels.task import step_name
from trident.operation_error import operation_error
from trident.operations.builtin import Count, Max, Min, Sum
from trident.operations.interfaces import CombinerAggregator, Operation
from trident.plan.nodes import AggregateNode, NativeNode
from trident.spark.error_transfer import marked
from trident.spark.schemas import quoted, selected
from trident.spark.stage import StageContext

_GENERATOR = re.compile(r"Column<'(\w*explode\w*|inline\w*|stack|json_tuple)\(")


def is_native(aggregator: Operation) -> bool:
    """Whether Spark itself has the aggregator; a user's subclass may do something else."""
    return type(aggregator) in (Count, Sum, Min, Max)


def combines_in_python(node: AggregateNode) -> bool:
    """Whether partitions aggregate first, by a combiner of the user's."""
    return isinstance(node.aggregator, CombinerAggregator) and not is_native(node.aggregator)


def makes_rows(node: NativeNode) -> bool:
    """Whether an expression makes several rows of one, as far as its name tells."""
    return bool(_GENERATOR.match(str(_column(node))))


def _column(node: NativeNode) -> Column:
    expression = node.expression.expression
    if isinstance(expression, str):
        return F.expr(expression)
    column: Column = expression()
    return column


def native_step(frame: DataFrame, node: NativeNode, kept: Sequence[str]) -> DataFrame:
    """Add the expression's columns to the `kept` ones, or keep the rows where it is true."""
    column = _column(node)
    if not node.outputs:
        return selected(frame.where(column), kept)
    return frame.select(*map(quoted, kept), column.alias(*node.outputs.names))


def native_aggregate(frame: DataFrame, node: AggregateNode, context: StageContext) -> DataFrame:
    """Aggregate each group, or everything, by Spark's own functions."""
    [output] = node.outputs.names
    value = _aggregate(node, context).alias(output)
    return frame.groupBy(*map(quoted, node.group or ())).agg(value)


def _aggregate(node: AggregateNode, context: StageContext) -> Column:
    if isinstance(node.aggregator, Count):
        return F.count(F.lit(1))
    column = F.col(quoted(node.inputs.names[0]))
    if isinstance(node.aggregator, Sum):
        return _sum(column, node, context)
    # Max is a Min, so it comes first.
    return F.max(column) if isinstance(node.aggregator, Max) else F.min(column)


def _overflow(node: AggregateNode) -> TridentError:
    [name] = node.outputs.names
    kind = node.fields.types[name]
    if kind is None or not kind.startswith("decimal"):
        return LongOverflowError("Sum()", 2**63)
    problem = f"emitted more digits for the field {name!r}, which is declared {kind}"
    return EmittedValueError("Sum()", problem)


def _sum(column: Column, node: AggregateNode, context: StageContext) -> Column:
    """The sum: 0 of no row, an error where it is too large; ``try_sum`` is null in both cases."""
    step = step_name(node)
    error = operation_error(
        _overflow(node),
        step=step.text,
        declared=step.declared,
        token=context.record.token if context.record else None,
    )
    line = F.lit(marked(error, context.seal))
    overflow = F.when(F.count(column) > 0, F.raise_error(line).cast("long"))
    return F.coalesce(F.try_sum(column), overflow, F.lit(0))
