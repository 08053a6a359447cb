"""Steps that Spark runs itself, without Python."""

from __future__ import annotations

import re
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trident.errors import EmittedValueError, LongOverflowError, TridentError
from trident.job.job import NativeAggregate, NativeStep
from trident.kernels.aggregate_kernels import PartialKernel
from trident.operation_error import operation_error
from trident.operations.builtin import Count, Max, Sum
from trident.spark.error_transfer import seal_error
from trident.spark.flow import Flow
from trident.spark.schemas import quote, select_columns
from trident.spark.stage import StageContext
from trident.tuples.fields import Fields

_VALUES = frozenset({"string", "binary", "long", "int", "short", "byte"})
_KEYS = _VALUES | {"boolean", "date"}
"""The types of values and of keys that Arrow aggregates as Python does."""
_GENERATOR = re.compile(r"Column<'(\w*explode\w*|inline\w*|stack|json_tuple)\(")


def makes_rows(step: NativeStep) -> bool:
    """Whether an expression makes several rows of one, judging by its name."""
    return bool(_GENERATOR.match(str(_column(step))))


def _column(step: NativeStep) -> Column:
    expression = step.expression.expression
    if isinstance(expression, str):
        return F.expr(expression)
    column: Column = expression()
    return column


def native_step(frame: DataFrame, step: NativeStep) -> DataFrame:
    """Add the expression's columns to those that are kept, or keep the rows where it is true."""
    column, made = _column(step), step.makes.names
    kept = [name for name in step.columns if name not in made]
    if not made:
        return select_columns(frame.where(column), kept)
    return frame.select(*map(quote, kept), column.alias(*made))


def native_aggregate(frame: DataFrame, step: NativeAggregate, context: StageContext) -> DataFrame:
    """Aggregate each group, or everything, by Spark's own functions."""
    [output] = step.makes.names
    value = _aggregate(step, context).alias(output)
    return frame.groupBy(*map(quote, step.group)).agg(value)


def combine_first(step: NativeAggregate, flow: Flow) -> tuple[NativeAggregate, Flow]:
    """The groups of tuples that Python has made, combined there first, and what Spark then does.

    Arrow does that; so a task hands groups to Spark, and no tuples. Where Arrow can't, Spark is
    handed the tuples.
    """
    counts = type(step.aggregator) is Count
    values = {} if counts else flow.types_of(step.inputs)
    keys = flow.types_of(step.group) if flow.kernels else {}
    if not keys or not _KEYS.issuperset(keys.values()) or not _VALUES.issuperset(values.values()):
        return step, flow
    reads = Fields.typed(values.items())
    kernel = PartialKernel(step.name, step.aggregator, step.group, reads, step.makes.names)
    combined = replace(
        step, inputs=step.makes.names, aggregator=Sum() if counts else step.aggregator
    )
    return combined, flow.then([kernel], step.name, step.makes, deterministic=True)


def _aggregate(step: NativeAggregate, context: StageContext) -> Column:
    if isinstance(step.aggregator, Count):
        return F.count(F.lit(1))
    column = F.col(quote(step.inputs[0]))
    if isinstance(step.aggregator, Sum):
        return _sum(column, step, context)
    # Max is a Min, so it comes first.
    return F.max(column) if isinstance(step.aggregator, Max) else F.min(column)


def _overflow(step: NativeAggregate) -> TridentError:
    [(name, kind)] = step.makes.types.items()
    if kind is None or not kind.startswith("decimal"):
        return LongOverflowError("Sum()", 2**63)
    problem = f"emitted more digits for the field {name!r}, which is declared {kind}"
    return EmittedValueError("Sum()", problem)


def _sum(column: Column, step: NativeAggregate, context: StageContext) -> Column:
    """The sum: 0 of no row, an error where it is too large; ``try_sum`` is null in both cases."""
    error = operation_error(
        _overflow(step),
        step=step.name.text,
        declared=step.name.declared,
        token=context.record.token if context.record else None,
    )
    line = F.lit(seal_error(error, context.seal))
    overflow = F.when(F.count(column) > 0, F.raise_error(line).cast("long"))
    return F.coalesce(F.try_sum(column), overflow, F.lit(0))
