"""What runs inside ``mapInArrow``: the fused steps of one stage over one partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from trident.kernels.block import Block
from trident.kernels.step import Step
from trident.kernels.task import Place, Task
from trident.operations.interfaces import Operation, TridentOperationContext
from trident.spark.attempt import Attempt
from trident.spark.block import arrow_column, blocks
from trident.spark.failures import raised_in_stage
from trident.spark.schemas import ROW
from trident.tuples.value_types import misfit

OUTPUT_ROWS = 131_072
"""The most rows in a record batch that a stage hands back: one that explodes stays bounded."""

_UNFIT = (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError)
_DECLARED = {
    **{"int64": "long", "int32": "int", "int16": "short", "int8": "byte"},
    **{"bool": "boolean", "large_string": "string", "large_binary": "binary"},
}


@dataclass(frozen=True)
class Kernel:
    """A fused stage that feeds others; pickled to the executors, called once a task.

    What it raises ends in a line that the driver restores the error from.

    Parameters
    ----------
    steps : tuple of Step
        In order.
    schema : pyarrow.Schema
        The columns that leave the stage; the others are dropped.
    makers : mapping of str to Place
        Which step made a column, for values of a wrong type.
    attempt : Attempt
        What the stage runs for.
    partitions : int
        How many partitions the stage has.
    """

    steps: tuple[Step, ...]
    schema: pa.Schema
    makers: tuple[tuple[str, Place], ...]
    attempt: Attempt
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        # Where streams are merged, Spark counts the partitions of each on from those before it.
        index = context.partitionId() % self.partitions if context else 0
        task = self.attempt.task(index, self.partitions)
        try:
            for block in chained(self.steps, blocks(batches), task):
                yield from record_batches(block, self.schema, dict(self.makers), task)
        except Exception as error:
            raise raised_in_stage(error, self.attempt.seal) from None


def chained(steps: Iterable[Step], given: Iterator[Block], task: Task) -> Iterator[Block]:
    """The blocks of a partition after all steps, each with its operation prepared."""
    for step in steps:
        given = _run(step, given, task)
    return given


def _run(step: Step, given: Iterator[Block], task: Task) -> Iterator[Block]:
    with prepared(step.place, step.operation, task):
        yield from step.run(given, task)


@contextmanager
def prepared(place: Place, operation: Operation | None, task: Task) -> Iterator[None]:
    """Prepare an operation, and clean it up after the context."""
    if operation is None:
        yield
        return
    with task.at(place):
        operation.prepare({}, TridentOperationContext(task.partition, task.partitions))
    try:
        yield
    finally:
        with task.at(place):
            operation.cleanup()


def record_batches(
    block: Block, schema: pa.Schema, makers: dict[str, Place], task: Task
) -> Iterator[pa.RecordBatch]:
    """A block as record batches of bounded size."""
    if not block.length:
        return
    arrays = [_array(block, field, makers, task) for field in schema]
    whole = pa.RecordBatch.from_arrays(arrays, schema=schema)
    for start in range(0, block.length, OUTPUT_ROWS):
        yield whole.slice(start, OUTPUT_ROWS)


def _array(block: Block, field: pa.Field, makers: dict[str, Place], task: Task) -> pa.Array:
    if field.name == ROW:
        return pa.nulls(block.length, field.type)
    if field.name in makers:
        return array_of(block.values(field.name), field, makers[field.name], task)
    return arrow_column(block, field.name, field.type)


def array_of(values: Sequence[Any], field: pa.Field, place: Place, task: Task) -> pa.Array:
    """A column that a step made, as Arrow of its declared type.

    Raises
    ------
    OperationError
        For a value that Arrow can't take for the type, with the step that made it.
    """
    try:
        return pa.array(values, field.type)
    except _UNFIT:
        wrong = next(value for value in values if not _fits(value, field.type))
        kind = _DECLARED.get(str(field.type), str(field.type))
        with task.at(place, [field.name], Block({field.name: [wrong]}, 1), iter(())):
            raise misfit(place.step, field.name, kind, wrong) from None


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except _UNFIT:
        return False
    return True
