"""Keeps what a worker has imported out of its garbage collections."""

from __future__ import annotations

import gc
import sys
from functools import cache

from pyspark import TaskContext


def freeze_imports() -> None:
    """Exempt what this Python worker holds now from garbage collection, when it imported more.

    PySpark collects garbage after each task, and walks through pyarrow, numpy and pandas each
    time: 25 ms of CPU and more, about what a small task takes itself. The first task imports much
    of it while it runs, which the second finds. Does nothing on the driver, whose heap is the
    user's.
    """
    if TaskContext.get() is not None:
        _freeze_once(len(sys.modules))


@cache
def _freeze_once(modules: int) -> None:
    gc.freeze()
