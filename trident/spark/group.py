"""A batch group as the Spark engine sees it, the same for all batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.job.job import Job, NativeStep
from trident.plan.plan import BatchGroup


@dataclass(frozen=True)
class SparkGroup:
    """A batch group with its jobs.

    Parameters
    ----------
    group : BatchGroup
        The group.
    partitions : int
        How many partitions an exchange makes where nothing else is said.
    large, small : Job
        What is run for a batch, and for one for which one partition will do.
    prefixes : mapping of str to tuple of NativeStep
        What Structured Streaming runs of each stream before the batch.
    """

    group: BatchGroup
    partitions: int
    large: Job
    small: Job
    prefixes: Mapping[str, tuple[NativeStep, ...]]
