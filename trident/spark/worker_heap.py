"""Keeps what a worker has imported out of its garbage collections."""

from __future__ import annotations

import gc
from functools import cache

from pyspark import TaskContext


@cache
def freeze_imports() -> None:
    """Exempt what this Python worker holds now from garbage collection; once a process.

    PySpark collects garbage after each task, and walks through pyarrow, numpy and pandas each
    time: 25 ms of CPU and more, about what a small task takes itself. Does nothing on the
    driver, whose heap is the user's.
    """
    if TaskContext.get() is not None:
        gc.freeze()
