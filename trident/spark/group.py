"""A batch group as the Spark engine sees it, the same for all batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.job.job import Job, NativeStep
from trident.plan.plan import BatchGroup


@dataclass(frozen=True)
class SparkGroup:
    """A batch group with its jobs.

    An exchange makes `partitions` where nothing else is said, and Spark itself `tasks`. `few` is
    for a batch of which few aggregates are expected, `small` for one for which one partition will
    do. Structured Streaming runs the `prefixes` of streams before the batch.
    """

    group: BatchGroup
    partitions: int
    tasks: int
    large: Job
    few: Job
    small: Job
    prefixes: Mapping[str, tuple[NativeStep, ...]]
