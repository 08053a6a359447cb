"""State updates: the last stage of a Spark job, or on the driver for states that live there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trident.backends.rows.state import Receipt, RowsState
from trident.batch.outcome import Counters, Outcome
from trident.kernels.arrow_block import block_of_batches, blocks
from trident.kernels.grouping_kernel import PARTITION
from trident.kernels.kernel import Kernel
from trident.kernels.task import Task
from trident.kernels.update_kernel import UpdateKernel
from trident.spark.error_json import error_to_json
from trident.spark.errors import StatusError
from trident.spark.seal import Seal
from trident.spark.stage import StageContext, prepare_operation, record_batches, run_kernels
from trident.spark.statuses import STATUS, open_statuses
from trident.spark.worker_heap import freeze_imports
from trident.states.errors import StateUnavailableError
from trident.states.state import State, StateFactory
from trident.tuples.block import NOTHING, Block, joined

_ADVICE = "Where no task reaches the store, give start(hosted='driver')."


@dataclass(frozen=True)
class UpdateStage:
    """The last stage of a job: reads all input, updates a state, and ends with a status row."""

    kernels: tuple[Kernel, ...]
    update: UpdateKernel
    factory: StateFactory
    schema: pa.Schema
    context: StageContext
    partitions: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        try:
            given = [batch for batch in batches if batch.num_rows]
            routed = bool(given) and PARTITION in given[0].schema.names
            partition = given[0].column(PARTITION)[0].as_py() if routed else 0
            task = self.context.task(partition, self.partitions)
            block = block_of_batches(given)
            if self.kernels:
                block = joined(run_kernels(self.kernels, blocks(given), task))
            with task.at(self.update.step):
                made, outcome, receipt = self._write(block, task)
            counts = [outcome.read, outcome.written, outcome.cache_hits, outcome.late]
            counted = task.counters.take() if task.counters is not None else {}
            done = {
                "counts": counts,
                "reached": outcome.reached,
                "counters": counted,
                "receipt": dict(receipt),
            }
            status: dict[str, Any] = {"done": done}
            # The status column keeps the rows where no field is needed.
            rows = made.added({STATUS: [None] * made.length})
            makers = dict.fromkeys(self.schema.names, self.update.step)
            yield from record_batches(rows, self.schema, makers, task)
        except StateUnavailableError as error:
            advice = f"{error.advice} {_ADVICE}".lstrip()
            status = error_to_json(StateUnavailableError(error.place, error.problem, advice))
        except Exception as error:
            status = error_to_json(error)
        columns = [pa.nulls(1, field.type) for field in self.schema][:-1]
        columns.append(pa.array([self.context.seal.sign(status)], pa.string()))
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _write(self, block: Block, task: Task) -> tuple[Block, Outcome, Receipt]:
        if not self.update.acts_on(block):
            return NOTHING, Outcome(), {}
        state = self.factory.makeState({}, None, task.partition, task.partitions)
        try:
            counters = Counters([state])
            assert task.record is not None
            state.beginCommit(task.record)
            made = update_state(self.update, state, block, task)
            state.commit(task.record)
            receipt = state.stage(task.record) if isinstance(state, RowsState) else {}
            reached = counters.reached(task.record.token)
            return made, Outcome(0, *counters.counts(), reached=reached), receipt
        finally:
            state.close()


def update_state(kernel: UpdateKernel, state: State, block: Block, task: Task) -> Block:
    """Prepare the updater, and update a state that has begun; return the kept new values."""
    if not kernel.acts_on(block):
        return NOTHING
    with prepare_operation(kernel.step, kernel.operation, task):
        return kernel.apply(state, block, task)


def sum_statuses(statuses: Iterable[str], seal: Seal) -> tuple[Outcome, Receipt]:
    """What the tasks of an update did together; raises as `open_statuses` does."""
    outcome = Outcome()
    receipts: dict[str, int] = {}
    for document in open_statuses(statuses, seal):
        match document:
            case {
                "counts": [int(read), int(written), int(hits), int(late)],
                "reached": int() | None as reached,
                "counters": dict(counters),
                "receipt": dict(receipt),
            }:
                receipts |= receipt
                counts = Outcome(0, read, written, hits, late, counters=counters, reached=reached)
                outcome += counts
            case _:
                raise StatusError(f"{document}")
    return outcome, receipts
