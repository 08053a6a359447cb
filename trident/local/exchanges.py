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
from trident.kernels.origins import with_origin
from trident.local.operation_copies import OperationCopies
from trident.local.program_input import ProgramInput
from trident.operations.dead_letters import LETTER
from trident.operations.origins import MADE
from trident.tuples.block import NOTHING, Block, block_of, joined

Partitions = Sequence[Block]
"""The tuples of a stage, a block for each of its partitions."""


Bring = Callable[[Sequence[Partitions], ProgramInput], Partitions]
"""Brings the output of stages into the partitions of the next, in one run."""


def stay(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
    """Tuples stay in their partition."""
    return parents[0]


def _begin(
    source: Source, count: int, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """Tuples are those that were given for a stream, dealt to the partitions in turn."""
    names = source.columns.names
    block = given.sources.get(source.stream, NOTHING)
    if source.check is not None:
        block = source.check.apply(block, given.task(0, count))
    if source.origin is not None:
        block = with_origin(block, names, source.origin)
    block = block.only(names)
    return [block] if count == 1 else dealt(block, count)


def _letters(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
    return [block_of(LETTER.names, given.letters or ())]


def _to_one(parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
    return gathered(parents[0])


def _to_key(
    by: ByKey, count: int, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    with given.task(0, len(parents[0])).at(by.name):
        return by_key(parents[0], by.key, count)


def _in_turn(
    settled: bool, count: int, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """Tuples are dealt to the partitions; where `settled`, not if there are as many already."""
    if settled and len(parents[0]) == count:
        return parents[0]
    return dealt(joined(parents[0]), count)


def _to_all(count: int, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
    return [*gathered(parents[0])] * count


def _to_chosen(count: int, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
    """Every tuple comes to the partition that its field :data:`PARTITION` names."""
    block = joined(parents[0])
    targets = block.values(PARTITION)
    names = [name for name in block.names if name != PARTITION]
    return [block.kept([to == index for to in targets], names) for index in range(count)]


def _together(
    union: Union, count: int, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """The partitions of all inputs; their tuples are dealt anew where these aren't `count`."""
    names = union.names
    partitions = []
    for columns, stream in zip(union.columns, parents, strict=True):
        renaming = dict(zip(columns, names, strict=True))
        partitions += [with_origin(b, names, MADE).renamed(renaming) for b in stream]
    return partitions if len(partitions) == count else dealt(joined(partitions), count)


def _matched(
    kernel: JoinKernel, count: int, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """The tuples of several inputs that have equal keys."""
    moved = [by_key(each, key, count) for each, key in zip(parents, kernel.keys, strict=True)]
    return [
        kernel.apply(blocks, given.task(index, count))
        for index, blocks in enumerate(zip(*moved, strict=True))
    ]


def _behind(
    kernels: Sequence[Kernel], move: Bring, parents: Sequence[Partitions], given: ProgramInput
) -> Partitions:
    """A kernel, one for each partition, runs first; then tuples move."""
    count = len(kernels)
    made = [
        kernel.whole(block, given.task(index, count))
        for index, (kernel, block) in enumerate(zip(kernels, parents[0], strict=True))
    ]
    return move([made], given)


def bring_into(stage: Stage, inputs: Sequence[int], operations: OperationCopies) -> Bring:
    """What brings tuples into a stage from stages of so many partitions."""
    count, exchange = stage.partitions or 1, stage.exchange

    def behind(kernel: Kernel | None, move: Bring) -> Bring:
        return partial(_behind, operations.of(kernel, inputs[0]), move) if kernel else move

    match exchange:
        case Source():
            return partial(_begin, exchange, count)
        case Forward():
            return stay
        case DeadLetters():
            return _letters
        case ByKey():
            return behind(exchange.combine, partial(_to_key, exchange, count))
        case Gather():
            return behind(exchange.combine, _to_one)
        case Spread(settled):
            return partial(_in_turn, settled, count)
        case Broadcast():
            return partial(_to_all, count)
        case Chosen(kernel):
            return behind(kernel, partial(_to_chosen, count))
        case Union():
            return partial(_together, exchange, count)
        case Join(kernel):
            return partial(_matched, kernel, count)


def gathered(partitions: Partitions) -> Partitions:
    """All tuples in one partition."""
    return partitions if len(partitions) == 1 else [joined(partitions)]


def dealt(block: Block, count: int) -> Partitions:
    """The tuples dealt to the partitions in turn."""
    return [block] if count == 1 else [block.every(count, start) for start in range(count)]


def by_key(partitions: Partitions, key: Sequence[str], count: int) -> Partitions:
    """Every tuple in the partition of its key; all in one where there is one only."""
    if count == 1:
        return gathered(partitions)
    block = joined(partitions)
    targets = shards_of_tuples(block, key, count)
    masks = [[target == index for target in targets] for index in range(count)]
    return [block.kept(mask, block.names) for mask in masks]
