"""What runs inside ``mapInArrow``: the fused steps of one stage over one partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from trident.spark.attempt import Attempt
from trident.spark.block import OUTPUT_ROWS, Block, blocks
from trident.spark.failures import raised_in_stage
from trident.spark.schemas import ROW
from trident.spark.steps import Place, Step, Task
from trident.value_types import misfit

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
        task = Task(self.attempt.record, index, self.partitions)
        try:
            for block in chained(self.steps, blocks(batches), task):
                yield from record_batches(block, self.schema, dict(self.makers), task)
        except Exception as error:
            raise raised_in_stage(error, self.attempt.seal) from None


def chained(steps: Iterable[Step], given: Iterator[Block], task: Task) -> Iterator[Block]:
    """The blocks of a partition after all steps."""
    for step in steps:
        given = step.run(given, task)
    return given


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
    return block.array(field.name, field.type)


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
        with task.at(place, [field.name], [wrong], iter(())):
            raise misfit(place.step, field.name, kind, wrong) from None


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except _UNFIT:
        return False
    return True
