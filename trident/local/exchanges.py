"""How tuples move between the partitions of this process: a function for each exchange of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from trident.job.job import (
    Broadcast,
    ByKey,
    Chosen,
    DeadLetters,
    Forward,
    Gather,
    Join,
    Source,
    Spread,
    Stage,
    Union,
)
from trident.kernels.grouping_kernel import PARTITION
from trident.kernels.join_kernel import JoinKernel
from trident.kernels.kernel import Kernel
from trident.kernels.keys import shards_of_tuples
from trident.local.operation_copies import OperationCopies
from trident.local.program_input import ProgramInput
from trident.operations.dead_letters import LETTER
from trident.operations.origins import MADE, with_origin
from trident.tuples.block import NOTHING, Block, block_of, joined

Partitions = Sequence[Block]
"""The tuples of a stage, a block for each of its partitions."""

Bring = Callable[[Sequence[Partitions], ProgramInput], Partitions]
"""Brings the output of stages into the partitions of the next, in one run."""


def stay(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
    """Leave tuples in their partitions."""
    return parents[0]


def bring_into(stage: Stage, inputs: Sequence[int], operations: OperationCopies) -> Bring:
    """What brings tuples into a stage from stages with these numbers of partitions."""
    count, exchange = stage.partitions or 1, stage.exchange

    def behind(kernel: Kernel | None, move: Bring) -> Bring:
        return partial(_run_first, operations.of(kernel, inputs[0]), move) if kernel else move

    match exchange:
        case Source() as source:
            return lambda parents, given: _begin(source, count, given)
        case Forward():
            return stay
        case DeadLetters():
            return lambda parents, given: [block_of(LETTER.names, given.letters or ())]
        case ByKey(name, key, combine):

            def move_by_key(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
                with given.task(0, len(parents[0])).at(name):
                    return by_key(parents[0], key, count)

            return behind(combine, move_by_key)
        case Gather(_, combine):
            return behind(combine, lambda parents, given: gathered(parents[0]))
        case Spread(settled):
            return lambda parents, given: (
                parents[0]
                if settled and len(parents[0]) == count
                else dealt(joined(parents[0]), count)
            )
        case Broadcast():
            return lambda parents, given: [*gathered(parents[0])] * count
        case Chosen(kernel):
            return behind(kernel, lambda parents, given: _chosen(joined(parents[0]), count))
        case Union() as union:
            return lambda parents, given: _union(union, count, parents)
        case Join(kernel):
            return lambda parents, given: _join(kernel, count, parents, given)


def _begin(source: Source, count: int, given: ProgramInput) -> Partitions:
    """The tuples that were given for a stream, dealt to the partitions in turn."""
    names = source.columns.names
    block = given.sources.get(source.stream, NOTHING)
    if source.check is not None:
        block = source.check.apply(block, given.task(0, count))
    if source.origin is not None:
        block = with_origin(block, names, source.origin)
    return dealt(block.only(names), count)


def _run_first(
    kernels: Sequence[Kernel], move: Bring, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """Run a kernel in each partition; then move the tuples."""
    count = len(kernels)
    made = [
        kernel.whole(block, given.task(index, count))
        for index, (kernel, block) in enumerate(zip(kernels, parents[0], strict=True))
    ]
    return move([made], given)


def _chosen(block: Block, count: int) -> Partitions:
    """Each tuple in the partition that its field :data:`PARTITION` names."""
    targets = block.values(PARTITION)
    names = [name for name in block.names if name != PARTITION]
    return [block.kept([to == index for to in targets], names) for index in range(count)]


def _union(union: Union, count: int, parents: Sequence[Partitions]) -> Partitions:
    """The partitions of all inputs; if these aren't `count`, their tuples are dealt anew."""
    names = union.names
    partitions = []
    for columns, stream in zip(union.columns, parents, strict=True):
        renaming = dict(zip(columns, names, strict=True))
        partitions += [with_origin(b, names, MADE).renamed(renaming) for b in stream]
    return partitions if len(partitions) == count else dealt(joined(partitions), count)


def _join(
    kernel: JoinKernel, count: int, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """The tuples of several inputs that have equal keys."""
    moved = [by_key(each, key, count) for each, key in zip(parents, kernel.keys, strict=True)]
    return [
        kernel.apply(blocks, given.task(index, count))
        for index, blocks in enumerate(zip(*moved, strict=True))
    ]


def gathered(partitions: Partitions) -> Partitions:
    """All tuples in one partition."""
    return partitions if len(partitions) == 1 else [joined(partitions)]


def dealt(block: Block, count: int) -> Partitions:
    """The tuples dealt to the partitions in turn."""
    return [block] if count == 1 else [block.every(count, start) for start in range(count)]


def by_key(partitions: Partitions, key: Sequence[str], count: int) -> Partitions:
    """Every tuple in the partition of its key; a single partition holds all."""
    if count == 1:
        return gathered(partitions)
    block = joined(partitions)
    targets = shards_of_tuples(block, key, count)
    masks = [[target == index for target in targets] for index in range(count)]
    return [block.kept(mask, block.names) for mask in masks]
