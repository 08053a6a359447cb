"""The job of a group or a query as explanations and drawings show it, without a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trident.errors import PlanError
from trident.job.compile import Local, Spark, Target, draft_job
from trident.job.job import Job, Stage, Step
from trident.plan.nodes import Node
from trident.plan.overlap import only_on_spark
from trident.plan.plan import BatchGroup, DRPCQuery, Part

_PARTITIONS = 2
"""Stands for the number of an unknown session; it is never shown."""


@dataclass(frozen=True)
class ShownJob:
    """A job, with the steps of the plan that its stages hold."""

    job: Job
    target: Target
    refused: PlanError | None
    """Why its target can't run it."""
    refused_by_spark: PlanError | None
    """Why Spark can't run large batches, if it would."""
    nodes: Mapping[int, tuple[Node, ...]]
    """The steps of each stage, by its id."""

    def partitions(self, stage: Stage) -> int | None:
        """In how many partitions a stage runs; None if the session decides."""
        if isinstance(self.target, Local) or stage.partitions == 1:
            return stage.partitions
        return stage.hint

    def step(self, node: Node) -> Step | None:
        """The step of the job that does a step of the plan."""
        return next((step for step in self.job.steps if node.id in step.ids), None)


def shown_job(part: Part, *, on_spark: bool) -> ShownJob:
    """The job of a group or a query; for spouts that of large batches on Spark, if they may run
    there."""
    target = _target(part, on_spark)
    shown = _draft(part, target)
    may_run_here = isinstance(part, BatchGroup) and part.clock == "spout"
    if shown.refused is None or isinstance(target, Local) or not may_run_here:
        return shown
    assert isinstance(part, BatchGroup)
    here = _draft(part, Local(), shown.refused)
    return shown if here.refused or only_on_spark(part) else here


def _target(part: Part, on_spark: bool) -> Target:
    if isinstance(part, DRPCQuery):
        of_spark = part.source.engine == "spark"
        return Spark(_PARTITIONS, requests=True) if of_spark else Local()
    here = part.requests is not None or (part.clock == "spout" and not on_spark)
    return Local() if here else Spark(_PARTITIONS)


def _draft(part: Part, target: Target, by_spark: PlanError | None = None) -> ShownJob:
    job, refused = draft_job(part, target)
    of_id = {node.id: node for node in part.nodes}
    held = {stage.id: [of_id[id] for id in stage.ids] for stage in job.stages}
    # Answers are kept behind the last step, by what runs requests.
    held[job.stages[-1].id] += [node for node in part.nodes if node not in part.steps]
    nodes = {id: tuple(steps) for id, steps in held.items()}
    return ShownJob(job, target, refused[0] if refused else None, by_spark, nodes)
