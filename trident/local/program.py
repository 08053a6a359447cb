"""A job in this process: its stages run one after the other, over blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trident.batch.computed import DeferredUpdate
from trident.job.job import Job
from trident.local.operation_copies import OperationCopies
from trident.local.program_input import ProgramInput, Rows
from trident.local.side_by_side import Part, SideBySide
from trident.local.stage_run import LookUps, StageRun, UpdateRun, stage_run
from trident.states.state import State
from trident.tuples.block import joined


class Program:
    """Runs a job for batches or requests, partition after partition, in whichever thread calls."""

    def __init__(self, job: Job, conf: Mapping[str, Any] | None = None) -> None:
        self.job = job
        self._operations = OperationCopies()
        self._conf = conf or {}
        runs = [
            stage_run(
                stage,
                [job.stages[each].partitions or 1 for each in stage.inputs],
                self._operations,
            )
            for stage in job.stages
        ]
        self._stages = tuple(_scheduled(job, runs))
        self._parts = tuple([part for each in self._stages for part in _divided(each)])
        self._updates = {
            (update.update.state.name, partition): update
            for run in runs
            for partition, own in enumerate(run.steps)
            for update in own
            if isinstance(update, UpdateRun)
        }
        self._names = job.stages[job.result].columns.names if job.result is not None else ()

    def run(self, given: ProgramInput) -> Rows:
        """Run one batch or request through all stages; errors of operations name the tuple."""
        given = given._replace(letters=[])
        made: list[Any] = [None] * len(self._stages)
        for slot, parents, stage, releases in self._stages:
            made[slot] = stage.run([made[parent] for parent in parents], given)
            for index in releases:
                made[index] = None
        if self.job.result is None:
            return []
        return list(joined(made[self.job.result]).tuples(self._names))

    def side_by_side(self, given: Sequence[ProgramInput]) -> SideBySide:
        """Begin to run several requests, which ask each state together; see `SideBySide`."""
        return SideBySide(self._parts, len(self._stages), given)

    def rows(self, requests: SideBySide) -> list[Rows | Exception]:
        """End what :meth:`side_by_side` began: the answer to each request, or what failed it."""
        assert self.job.result is not None  # a query has a result
        return requests.rows(self.job.result, self._names)

    def update(self, deferred: DeferredUpdate, state: State, task: Any) -> None:
        """Make an update that :meth:`run` has deferred; in any thread."""
        run = self._updates[deferred.update.state.name, deferred.partition]
        run.kernel.apply(state, deferred.block, task)

    def counted(self) -> dict[str, int]:
        """What operations have counted since this was asked last."""
        return self._operations.counters.take()

    def prepare(self) -> None:
        """Prepare all operations, once; before the first run."""
        self._operations.prepare(self._conf)

    def close(self) -> None:
        """Clean all operations up, once; after the last run."""
        self._operations.cleanup()


def _scheduled(job: Job, runs: Sequence[StageRun]) -> Iterator[Part[StageRun]]:
    """The stages, each with the outputs that no later one reads: their tuples are let go."""
    last = {each: stage.id for stage in job.stages for each in stage.inputs}
    for stage, run in zip(job.stages, runs, strict=True):
        done = {each for each in stage.inputs if last[each] == stage.id and each != job.result}
        if stage.id not in last and stage.id != job.result:
            done.add(stage.id)
        yield Part(stage.id, stage.inputs, run, tuple(done))


def _divided(stage: Part[StageRun]) -> Iterator[Part[StageRun | LookUps]]:
    """The parts of a stage: its look-ups, and the steps between them."""
    slot, parents, run, releases = stage
    parts = run.divided()
    for index, part in enumerate(parts):
        takes = parents if index == 0 else (slot,)
        yield Part(slot, takes, part, releases if index == len(parts) - 1 else ())
