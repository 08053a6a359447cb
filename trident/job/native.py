"""What Catalyst runs itself: aggregates, and the steps of a stream before a batch begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import takewhile

from trident.job.job import Job, NativeStep, Source, Stage
from trident.operations.builtin import Count, Max, Min, Sum
from trident.operations.interfaces import Operation

MakesRows = Callable[[NativeStep], bool]
"""Whether an expression makes several rows of one."""


def is_native(aggregator: Operation) -> bool:
    """Whether Catalyst has an aggregator; a user's subclass may do something else."""
    return type(aggregator) in (Count, Sum, Min, Max)


def native_prefixes(job: Job, makes_rows: MakesRows) -> Mapping[str, tuple[NativeStep, ...]]:
    """The first steps of each stream that Structured Streaming runs before ``foreachBatch``.

    In these steps Spark prunes columns and pushes filters down. A step that makes several rows of
    one runs within the batch, as each row that is handed to the batch costs time.
    """
    return {
        stage.exchange.stream: _prefix(stage, makes_rows)
        for stage in job.stages
        if isinstance(stage.exchange, Source)
    }


def without_prefixes(job: Job, makes_rows: MakesRows) -> Job:
    """The job of a batch without the `native_prefixes` of its streams."""
    return replace(job, stages=tuple([_rest(stage, makes_rows) for stage in job.stages]))


def _prefix(stage: Stage, makes_rows: MakesRows) -> tuple[NativeStep, ...]:
    native = takewhile(lambda step: isinstance(step, NativeStep), stage.steps)
    steps = [step for step in native if isinstance(step, NativeStep)]
    return tuple(takewhile(lambda step: not makes_rows(step), steps))


def _rest(stage: Stage, makes_rows: MakesRows) -> Stage:
    if not isinstance(stage.exchange, Source) or not (prefix := _prefix(stage, makes_rows)):
        return stage
    begun = replace(stage.exchange, columns=prefix[-1].columns)
    return replace(stage, exchange=begun, steps=stage.steps[len(prefix) :])
