"""Tuples that are in the driver's process, as a DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from trident.kernels.task import StepName, Task
from trident.spark.schemas import Schema, create_frame
from trident.spark.stage import arrow_arrays
from trident.tuples.block import Block


def local_frame(
    session: SparkSession, schema: Schema, block: Block, step: StepName, task: Task
) -> DataFrame:
    """The tuples of a block, which `step` has made, as a DataFrame with the columns of `schema`."""
    return create_frame(session, local_table(schema, block, step, task), schema.struct)


def local_table(schema: Schema, block: Block, step: StepName, task: Task) -> pa.Table:
    """The same as a table of Arrow."""
    arrays = arrow_arrays(block, schema.arrow, dict.fromkeys(schema.arrow.names, step), task)
    return pa.Table.from_arrays(arrays, schema=schema.arrow)
