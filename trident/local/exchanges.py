"""How tuples move between the partitions of this process: one class for each exchange of a job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from trident.job.job import (
    Broadcast,
    ByKey,
    Chosen,
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
from trident.kernels.keys import encoded_keys
from trident.kernels.origins import with_origin
from trident.kernels.task import StepName
from trident.local.operation_copies import OperationCopies
from trident.local.program_input import ProgramInput
from trident.operations.origins import MADE
from trident.states.sharding import shards_of
from trident.tuples.block import NOTHING, Block, joined

Partitions = Sequence[Block]
"""The tuples of a stage, a block for each of its partitions."""


class Bring(ABC):
    """Brings the output of stages into the partitions of the next."""

    @abstractmethod
    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        """The tuples of each partition, from those of the stages before."""


class Stay(Bring):
    """Tuples stay in their partition."""

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        return parents[0]


@dataclass(frozen=True)
class Begin(Bring):
    """Tuples are those that were given for a stream, dealt to the partitions in turn."""

    source: Source
    names: tuple[str, ...]
    count: int

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        source, names = self.source, self.names
        block = given.sources.get(source.stream, NOTHING)
        if source.check is not None:
            block = source.check.apply(block, given.task(0, self.count))
        if source.origin is not None:
            block = with_origin(block, names, source.origin)
        block = block.only(names)
        return [block] if self.count == 1 else dealt(block, self.count)


@dataclass(frozen=True)
class ToOne(Bring):
    """All tuples come into one partition."""

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        return gathered(parents[0])


@dataclass(frozen=True)
class ToKey(Bring):
    """Every tuple comes to the partition of its key."""

    name: StepName
    key: tuple[str, ...]
    count: int

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        with given.task(0, len(parents[0])).at(self.name):
            return by_key(parents[0], self.key, self.count)


@dataclass(frozen=True)
class InTurn(Bring):
    """Tuples are dealt to the partitions; where `settled`, not if there are as many already."""

    count: int
    settled: bool

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        if self.settled and len(parents[0]) == self.count:
            return parents[0]
        return dealt(joined(parents[0]), self.count)


@dataclass(frozen=True)
class ToAll(Bring):
    """Each partition has every tuple."""

    count: int

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        return [*gathered(parents[0])] * self.count


@dataclass(frozen=True)
class Behind(Bring):
    """A kernel runs in each partition first; then tuples move.

    `kernels` has that of each partition.
    """

    kernels: Sequence[Kernel]
    move: Bring

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        count = len(self.kernels)
        made = [
            kernel.whole(block, given.task(index, count))
            for index, (kernel, block) in enumerate(zip(self.kernels, parents[0], strict=True))
        ]
        return self.move.bring([made], given)


@dataclass(frozen=True)
class ToChosen(Bring):
    """Every tuple comes to the partition that its field :data:`PARTITION` names."""

    count: int

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        block = joined(parents[0])
        targets = block.values(PARTITION)
        names = [name for name in block.names if name != PARTITION]
        return [block.kept([to == index for to in targets], names) for index in range(self.count)]


@dataclass(frozen=True)
class Together(Bring):
    """The partitions of all inputs; their tuples are dealt anew where these aren't `count`."""

    union: Union
    count: int

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        names = self.union.names
        partitions = []
        for columns, stream in zip(self.union.columns, parents, strict=True):
            renaming = dict(zip(columns, names, strict=True))
            partitions += [with_origin(b, names, MADE).renamed(renaming) for b in stream]
        if len(partitions) == self.count:
            return partitions
        return dealt(joined(partitions), self.count)


@dataclass(frozen=True)
class Matched(Bring):
    """The tuples of several inputs that have equal keys."""

    kernel: JoinKernel
    count: int

    def bring(self, parents: Sequence[Partitions], given: ProgramInput) -> Partitions:
        moved = [
            by_key(parent, key, self.count)
            for parent, key in zip(parents, self.kernel.keys, strict=True)
        ]
        return [
            self.kernel.apply(blocks, given.task(index, self.count))
            for index, blocks in enumerate(zip(*moved, strict=True))
        ]


def bring_into(stage: Stage, inputs: Sequence[int], operations: OperationCopies) -> Bring:
    """What brings tuples into a stage.

    `inputs` are the numbers of partitions of the stages before it.
    """
    count, exchange = stage.partitions or 1, stage.exchange
    match exchange:
        case Source():
            return Begin(exchange, exchange.columns.names, count)
        case Forward():
            return Stay()
        case ByKey(name, key, combine):
            return _behind(combine, inputs, operations, ToKey(name, key, count))
        case Gather(_, combine):
            return _behind(combine, inputs, operations, ToOne())
        case Spread(settled):
            return InTurn(count, settled)
        case Broadcast():
            return ToAll(count)
        case Chosen(kernel):
            return _behind(kernel, inputs, operations, ToChosen(count))
        case Union():
            return Together(exchange, count)
        case Join(kernel):
            return Matched(kernel, count)


def _behind(
    kernel: Kernel | None, inputs: Sequence[int], operations: OperationCopies, move: Bring
) -> Bring:
    return move if kernel is None else Behind(operations.of(kernel, inputs[0]), move)


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
    targets = shards_of(encoded_keys(block, key), count)
    masks = [[target == index for target in targets] for index in range(count)]
    return [block.kept(mask, block.names) for mask in masks]
