"""What Python workers keep out of their garbage collections."""

from __future__ import annotations

import gc
import os
import sys
from types import ModuleType

import pyarrow as pa
from pyspark.sql import SparkSession

from trident import Fields
from trident.kernels.task import StepName
from trident.kernels.tuple_kernels import EachKernel
from trident.operations.callables import CallableFunction
from trident.spark.stage import PythonStage, StageContext
from trident.spark.worker_heap import freeze_imports

STEP = StepName("each(id, collected, pid, n)", "job.py:7")
SCHEMA = pa.schema([("pid", pa.int64()), ("n", pa.int64())])
LARGE = 100_000


def collected(id: int) -> list[tuple[int, int]]:
    """How many objects a collection walks through, where a large module is imported by then."""
    if "large" not in sys.modules:
        module = ModuleType("large")
        vars(module)["objects"] = [[n] for n in range(LARGE)]
        sys.modules["large"] = module
    return [(os.getpid(), len(gc.get_objects()))]


def test_a_worker_does_not_collect_what_it_has_imported_in_an_earlier_task(
    spark: SparkSession,
) -> None:
    each = EachKernel(STEP, CallableFunction(collected), Fields("id"), (), ("pid", "n"))
    makers = (("pid", STEP), ("n", STEP))
    stage = PythonStage((each,), SCHEMA, makers, StageContext(1), 1)
    frame = spark.range(1, numPartitions=1).mapInArrow(stage, "pid long, n long")
    workers = set[int]()
    while True:
        [row] = frame.collect()
        if row["pid"] in workers:
            break
        workers.add(row["pid"])
    assert row["n"] < LARGE


def test_the_driver_collects_as_its_program_says() -> None:
    before = gc.get_freeze_count()
    freeze_imports()
    assert gc.get_freeze_count() == before
