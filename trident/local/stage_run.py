"""A stage in this process: brings tuples in, and takes them through its steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trident.batch.computed import DeferredUpdate
from trident.job.job import Kernels, LookUp, Stage, Step, Update
from trident.kernels.kernel import Kernel
from trident.kernels.query_row import QueryRow
from trident.kernels.task import Task
from trident.kernels.update_kernel import UpdateKernel
from trident.local.exchanges import Bring, Partitions, bring_into, stay
from trident.local.operation_copies import OperationCopies
from trident.local.program_input import ProgramInput
from trident.tuples.block import NOTHING, Block


class StepRun(ABC):
    """A step in one partition."""

    @abstractmethod
    def run(self, block: Block, task: Task, given: ProgramInput) -> Block:
        """Run the step on the tuples of the partition; return its output."""


@dataclass(frozen=True)
class KernelsRun(StepRun):
    """Kernels, one after the other."""

    kernels: tuple[Kernel, ...]

    def run(self, block: Block, task: Task, given: ProgramInput) -> Block:
        for kernel in self.kernels:
            block = kernel.whole(block, task)
        return block


@dataclass(frozen=True)
class LookUpRun(StepRun):
    """A look-up in one state, or in several at once."""

    look_up: LookUp
    row: QueryRow

    def run(self, block: Block, task: Task, given: ProgramInput) -> Block:
        states, row = self.look_up.states, self.row
        if row.checks == (None,):  # most rows
            return row.queries[0].apply(given.queried(states[0].name), block, task)
        return row.apply([given.queried(state.name) for state in states], block, task)


@dataclass(frozen=True)
class UpdateRun(StepRun):
    """An update of a state, which is only noted if the run defers updates."""

    update: Update
    kernel: UpdateKernel

    def run(self, block: Block, task: Task, given: ProgramInput) -> Block:
        if not self.kernel.acts_on(block):
            return NOTHING
        if given.deferred is not None:
            deferred = DeferredUpdate(self.update, block, task.partition, task.partitions)
            given.deferred.append(deferred)
            return NOTHING
        with task.at(self.kernel.step):
            state = given.updated(self.update.state.name)
        return self.kernel.apply(state, block, task)


@dataclass(frozen=True)
class StageRun:
    """Runs a stage, or a part of one, by the steps of each partition."""

    bring: Bring
    steps: tuple[tuple[StepRun, ...], ...]

    def run(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        """Run all partitions, one after the other."""
        partitions = self.bring(parents, given)
        count = len(self.steps)
        out = []
        for index, steps in enumerate(self.steps):
            block, task = partitions[index], given.task(index, count)
            for step in steps:
                block = step.run(block, task, given)
            out.append(block)
        return out

    def divided(self) -> list[StageRun | LookUps]:
        """The stage as parts: each look-up, and the steps between them. A look-up then asks for
        several requests together."""
        found: list[StageRun | LookUps] = []
        bring, begin, end = self.bring, 0, len(self.steps[0])
        for position, step in enumerate(self.steps[0]):
            if isinstance(step, LookUpRun):
                if begin < position or bring is not stay:
                    found.append(self._part(bring, begin, position))
                found.append(LookUps([own[position] for own in self.steps]))
                bring, begin = stay, position + 1
        if begin < end or not found:
            found.append(self._part(bring, begin, end))
        return found

    def _part(self, bring: Bring, begin: int, end: int) -> StageRun:
        return StageRun(bring, tuple([own[begin:end] for own in self.steps]))


class LookUps:
    """A look-up in each partition of a stage."""

    def __init__(self, runs: Sequence[StepRun]) -> None:
        self._runs = [run for run in runs if isinstance(run, LookUpRun)]

    def __len__(self) -> int:
        return len(self._runs)

    def run(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        """Ask for one request."""
        count = len(self._runs)
        return [
            run.run(block, given.task(index, count), given)
            for index, (run, block) in enumerate(zip(self._runs, parents[0], strict=True))
        ]

    def together(
        self, given: ProgramInput, partition: int, blocks: Sequence[Block]
    ) -> list[Block | Exception]:
        """Ask for several requests; return the output of each in a partition, or its error."""
        run, task = self._runs[partition], given.task(partition, len(self._runs))
        views = [given.queried(state.name) for state in run.look_up.states]
        return run.row.apply_to_all(views, blocks, task)


def stage_run(stage: Stage, inputs: Sequence[int], operations: OperationCopies) -> StageRun:
    """What runs a stage; `inputs` are the numbers of partitions of the stages before it."""
    count = stage.partitions or 1
    bring = bring_into(stage, inputs, operations)
    columns = [_in_each(step, count, operations) for step in stage.steps]
    rows = list(zip(*columns, strict=True)) if columns else [()] * count
    return StageRun(bring, tuple([tuple(_fused(row)) for row in rows]))


def _in_each(step: Step, count: int, operations: OperationCopies) -> Sequence[StepRun]:
    """The runs of a step, one for each partition."""
    match step:
        case Kernels():
            own = [operations.of(kernel, count) for kernel in step.kernels]
            return [KernelsRun(kernels) for kernels in zip(*own, strict=True)]
        case LookUp():
            copies = [operations.of(query, count) for query in step.row.queries]
            rows = [replace(step.row, queries=queries) for queries in zip(*copies, strict=True)]
            return [LookUpRun(step, row) for row in rows]
        case Update():
            return [UpdateRun(step, kernel) for kernel in operations.of(step.kernel, count)]
    raise NotImplementedError(step)  # jobs of this process hold no others


def _fused(steps: Sequence[StepRun]) -> Iterator[StepRun]:
    """Successive steps of kernels as one."""
    kernels: tuple[Kernel, ...] = ()
    for step in steps:
        if isinstance(step, KernelsRun):
            kernels += step.kernels
            continue
        if kernels:
            yield KernelsRun(kernels)
        kernels = ()
        yield step
    if kernels:
        yield KernelsRun(kernels)
