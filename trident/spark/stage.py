"""A stage of Python: kernels of consecutive steps, which one ``mapInArrow`` runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from trident.kernels.arrow_block import arrow_column, blocks
from trident.kernels.kernel import Kernel
from trident.kernels.on_error import leaves_out
from trident.kernels.task import StepName, Task
from trident.operations.counters import CounterBook
from trident.operations.dead_letters import LETTER
from trident.operations.interfaces import Operation, TridentOperationContext
from trident.spark.counts import AttemptCounts
from trident.spark.error_transfer import stage_errors
from trident.spark.schemas import ROW
from trident.spark.seal import Seal
from trident.states.control import ControlRecord
from trident.tuples.block import Block
from trident.tuples.value_types import misfit

LETTER_COLUMNS = {f"__trident_letter_{name}": str(kind) for name, kind in LETTER.types.items()}
"""The columns of dead letters in the output of a stage, with their types; null in other rows.

On Spark Connect one more row has what was counted, as JSON in the last of them.
"""

OUTPUT_ROWS = 131_072
"""The most rows of a record batch that a stage hands to Spark."""

UNFIT = (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError)
"""What Arrow raises for a value that it can't take for a type."""

_DECLARED = {
    **{"int64": "long", "int32": "int", "int16": "short", "int8": "byte"},
    **{"bool": "boolean", "large_string": "string", "large_binary": "binary"},
}


@dataclass(frozen=True)
class StageContext:
    """The attempt of a batch, or a request's number, as stages know it; pickled to executors."""

    of: ControlRecord | int
    seal: Seal = field(default_factory=Seal)
    counts: AttemptCounts | None = None

    @property
    def record(self) -> ControlRecord | None:
        """What every state of the group has begun; None for a request, which updates none."""
        return None if isinstance(self.of, int) else self.of

    def report_counts(self, task: Task) -> None:
        """Tell the driver what the operations of a task have counted."""
        found = task.counters.take() if task.counters is not None else {}
        if found and self.counts is not None:
            self.counts.add(found)

    def take_counts(self) -> Mapping[str, int]:
        """Return what operations have counted in tasks, on the driver; nothing the next time."""
        return {} if self.counts is None else self.counts.take()

    def counts_in_rows(self, kernels: Iterable[Kernel]) -> bool:
        """Whether tasks put into their output what these kernels have counted, as they have no
        other way to report it."""
        return self.counts is None and self.record is not None and leaves_out(kernels)

    def task(self, partition: int = 0, partitions: int = 1) -> Task:
        """Return the task of one partition; by default the only one, as on the driver."""
        number = self.of if isinstance(self.of, int) else self.of.token.txid
        return Task(number, self.record, partition, partitions, CounterBook(), [])


@dataclass(frozen=True)
class PythonStage:
    """A stage whose rows go to another stage; pickled to executors, called once a task."""

    kernels: tuple[Kernel, ...]
    schema: pa.Schema
    makers: tuple[tuple[str, StepName], ...]
    context: StageContext
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spark = TaskContext.get()
        # Where streams are merged, Spark counts the partitions of each on from those before it.
        index = spark.partitionId() % self.partitions if spark else 0
        task = self.context.task(index, self.partitions)
        with stage_errors(self.context.seal):
            for block in run_kernels(self.kernels, blocks(batches), task):
                yield from record_batches(block, self.schema, dict(self.makers), task)
            letters: list[Sequence[Any]] = [*(task.letters or ())]
            if self.context.counts_in_rows(self.kernels) and task.counters is not None:
                letters.append([*[None] * (len(LETTER) - 1), json.dumps(task.counters.take())])
            if letters:
                yield _letter_rows(letters, self.schema)
            self.context.report_counts(task)


def _letter_rows(letters: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Return dead letters as rows of a stage, whose other columns are null."""
    columns = dict(zip(LETTER_COLUMNS, zip(*letters, strict=True), strict=True))
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(len(letters), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def run_kernels(kernels: Iterable[Kernel], given: Iterator[Block], task: Task) -> Iterator[Block]:
    """Run kernels one after the other over the blocks of a partition."""
    for kernel in kernels:
        given = _run_kernel(kernel, given, task)
    return given


def _run_kernel(kernel: Kernel, given: Iterator[Block], task: Task) -> Iterator[Block]:
    with prepare_operation(kernel.step, kernel.operation, task):
        yield from kernel.run(given, task)


@contextmanager
def prepare_operation(step: StepName, operation: Operation | None, task: Task) -> Iterator[None]:
    """Prepare an operation, and clean it up at the end."""
    if operation is None:
        yield
        return
    with task.at(step):
        counters = task.counters or CounterBook()
        operation.prepare({}, TridentOperationContext(task.partition, task.partitions, counters))
    try:
        yield
    finally:
        with task.at(step):
            operation.cleanup()


def record_batches(
    block: Block, schema: pa.Schema, makers: dict[str, StepName], task: Task
) -> Iterator[pa.RecordBatch]:
    """Yield a block as record batches of bounded size."""
    if not block.length:
        return
    whole = pa.RecordBatch.from_arrays(arrow_arrays(block, schema, makers, task), schema=schema)
    for start in range(0, block.length, OUTPUT_ROWS):
        yield whole.slice(start, OUTPUT_ROWS)


def arrow_arrays(
    block: Block, schema: pa.Schema, makers: dict[str, StepName], task: Task
) -> list[pa.Array]:
    """Return the columns of a block as Arrow; `makers` has the step that has made a field."""
    return [_array(block, field, makers, task) for field in schema]


def _array(block: Block, field: pa.Field, makers: dict[str, StepName], task: Task) -> pa.Array:
    if field.name == ROW or field.name in LETTER_COLUMNS:
        return pa.nulls(block.length, field.type)
    column = block.arrow(field.name)
    if field.name in makers and (column is None or column.type != field.type):
        return _array_of(block.values(field.name), field, makers[field.name], task)
    return arrow_column(block, field.name, field.type)


def _array_of(values: Sequence[Any], field: pa.Field, step: StepName, task: Task) -> pa.Array:
    """A column as Arrow of its declared type; the error of an unfit value names the step."""
    try:
        return pa.array(values, field.type)
    except UNFIT:
        wrong = find_unfit_value(values, field.type)
        kind = _DECLARED.get(str(field.type), str(field.type))
        with task.at(step, [field.name], Block({field.name: [wrong]}, 1), iter(())):
            raise misfit(step.text, field.name, kind, wrong) from None


def find_unfit_value(values: Sequence[Any], kind: pa.DataType) -> Any:
    """Return the first value that Arrow can't take for the type; there has to be one."""
    return next(value for value in values if not _fits(value, kind))


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        pa.array([value], kind)
    except UNFIT:
        return False
    return True
