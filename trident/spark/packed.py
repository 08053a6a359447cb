"""Tuples that cross Spark packed: a row for each record batch, which Spark never looks into.

Spark would make rows of them, and columns again, where Python has made them and reads them next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from trident.kernels.arrow_block import blocks
from trident.kernels.kernel import Kernel
from trident.kernels.task import Task
from trident.spark.schemas import create_frame
from trident.spark.stage import PythonStage
from trident.tuples.block import Block

ROWS = "rows"
STRUCT = f"{ROWS} binary"
_SCHEMA = pa.schema({ROWS: pa.binary()})
_BYTES = 2**22
"""About the most bytes of a row: a message of Spark Connect has 128 MB at most."""


@dataclass(frozen=True)
class PackedRowsKernel(Kernel):
    """Reads record batches of a schema that were packed."""

    schema: pa.Schema

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        for block in blocks:
            yield from self._unpacked(block.arrow(ROWS))

    def _unpacked(self, rows: pa.Array) -> Iterator[Block]:
        for one in rows.drop_null():
            yield from blocks([pa.ipc.read_record_batch(one.as_buffer(), self.schema)])


@dataclass(frozen=True)
class PackedStage(PythonStage):
    """A stage whose rows are packed."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in super().__call__(batches):
            for part in _parts(batch, 1):
                yield pa.RecordBatch.from_arrays([pack(part.serialize())], schema=_SCHEMA)


def packed_frame(session: SparkSession, table: pa.Table, partitions: int) -> DataFrame:
    """Return a table of this process as packed rows, the same number in each partition."""
    rows = [
        part.serialize().to_pybytes()
        for batch in table.combine_chunks().to_batches()
        for part in _parts(batch, partitions)
    ]
    return create_frame(session, pa.table([pa.array(rows, pa.binary())], schema=_SCHEMA), STRUCT)


def pack(value: pa.Buffer | None) -> pa.Array:
    """An array of one value, which is not copied."""
    if value is None:
        return pa.nulls(1, pa.binary())
    _, offsets = pa.array([0, value.size], pa.int32()).buffers()
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, offsets, value])


def _parts(batch: pa.RecordBatch, multiple: int) -> Iterator[pa.RecordBatch]:
    """Divide a batch into equal parts of about `_BYTES` at most, a multiple of `multiple`."""
    count = multiple * -(-batch.nbytes // (_BYTES * multiple)) or multiple
    ends = [batch.num_rows * number // count for number in range(count + 1)]
    for start, end in pairwise(ends):
        yield batch.slice(start, end - start)
