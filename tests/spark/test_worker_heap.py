"""What Python workers keep out of their garbage collections."""

from __future__ import annotations

import gc

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from trident import Fields
from trident.kernels.task import StepName
from trident.kernels.tuple_kernels import EachKernel
from trident.operations.callables import CallableFunction
from trident.spark.stage import PythonStage, StageContext
from trident.spark.worker_heap import freeze_imports

STEP = StepName("each(id, frozen, n)", "job.py:7")
N = pa.field("n", pa.int64())


def frozen_objects(id: int) -> list[int]:
    return [gc.get_freeze_count()]


def test_a_worker_does_not_collect_what_it_has_imported(spark: SparkSession) -> None:
    each = EachKernel(STEP, CallableFunction(frozen_objects), Fields("id"), (), ("n",))
    stage = PythonStage((each,), pa.schema([N]), (("n", STEP),), StageContext(1), 1)
    frame = spark.range(1, numPartitions=1)
    [row] = frame.mapInArrow(stage, StructType([StructField("n", LongType())])).collect()
    assert row["n"] > 10_000


def test_the_driver_collects_as_its_program_says() -> None:
    before = gc.get_freeze_count()
    freeze_imports()
    assert gc.get_freeze_count() == before
