"""A batch group as the Spark engine sees it, the same for all batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.job.job import Job, NativeStep
from trident.plan.plan import BatchGroup


@dataclass(frozen=True)
class SparkGroup:
    """A batch group with its jobs: for `large` batches, `few` aggregates, or a `small` batch."""

    group: BatchGroup
    partitions: int
    tasks: int
    large: Job
    few: Job
    small: Job
    prefixes: Mapping[str, tuple[NativeStep, ...]]
