"""The stage in which partitions of a spout are emitted, by tasks of the executors.

What they emit stays there, as rows of Arrow data that Spark never looks into, and which the kernels
of the next stage read.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from trident.kernels.task import StepName, Task
from trident.operations.origins import origin_of, with_origin
from trident.sources.emission import Emission, Emitted, Emitting
from trident.spark.arrow_collector import ArrowCollector
from trident.spark.error_json import error_to_json
from trident.spark.live_emitters import live_emitter
from trident.spark.packed import ROWS, PackedRowsKernel, pack
from trident.spark.seal import Seal
from trident.spark.stage import record_batches
from trident.spark.statuses import STATUS
from trident.spark.worker_heap import freeze_imports
from trident.states.errors import FailedException
from trident.tuples.block import Block

RUN = "run"
SCHEMA = pa.schema({RUN: pa.string(), STATUS: pa.string(), ROWS: pa.binary()})
"""One row for each record batch, and one with the status at the end; both with the id of the run of
the task, as Spark may run a task twice, and then keeps what either run has emitted."""


@dataclass(frozen=True)
class EmissionStage:
    """Emits every `tasks`-th partition, from the one with a task's number; called once a task."""

    emission: Emission
    step: StepName
    types: Mapping[str, tuple[str, pa.DataType]]
    schema: pa.Schema
    tasks: int
    seal: Seal

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        [number] = [number for batch in batches for number in batch.column(0).to_pylist()]
        run, reports = secrets.token_hex(8), []
        task = Task(self.emission.token.txid, None, number, self.tasks)
        try:
            for made, emitted in self._emitted(number):
                origin = origin_of(self.emission.stream, emitted.id)
                for block in made:
                    block = with_origin(block, self.schema.names, origin)
                    for batch in record_batches(block, self.schema, {}, task):
                        yield _row(run, None, batch.serialize())
                reports.append(list(emitted))
            status: dict[str, Any] = {"done": {"run": run, "emitted": reports}}
        except Exception as error:
            status = error_to_json(error)
        yield _row(run, self.seal.sign(status), None)

    def _emitted(self, number: int) -> Iterable[tuple[Sequence[Block], Emitted]]:
        mine = self.emission.assignments[number :: self.tasks]
        if not mine:
            return ()
        collector = partial(ArrowCollector, types=self.types)
        make = partial(Emitting, self.emission, self.step, collector)
        return live_emitter(self.emission, make).emit(self.emission, mine)


def _row(run: str, status: str | None, rows: pa.Buffer | None) -> pa.RecordBatch:
    columns = [pa.array([run]), pa.array([status], pa.string()), pack(rows)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@dataclass(frozen=True)
class KeptRowsKernel(PackedRowsKernel):
    """Reads what an `EmissionStage` emitted, of tasks that the driver has heard of."""

    runs: frozenset[str]

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        return super().run(map(self._checked, blocks), task)

    def _checked(self, block: Block) -> Block:
        if not self.runs.issuperset(block.values(RUN)):
            raise FailedException(
                "Spark has run a task that emits partitions again, and kept what it emitted "
                "then in place of what the batch began with"
            )
        return block
