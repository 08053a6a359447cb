"""A kernel does the work of a step in one partition: the base classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trident.kernels.task import StepName, Task
from trident.operations.interfaces import Operation
from trident.tuples import tuple_type
from trident.tuples.block import NOTHING, Block, joined
from trident.tuples.fields import Fields


@dataclass(frozen=True)
class Kernel(ABC):
    """Does the work of one step over the blocks of a partition; pickled, its operation prepared."""

    step: StepName
    operation: Any

    @abstractmethod
    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        """Turn the blocks of a partition into others; blocks without tuples have no effect."""

    def whole(self, block: Block, task: Task) -> Block:
        """Turn all tuples of a partition, as one block, into others."""
        return joined(self.run((block,), task))


@dataclass(frozen=True)
class BlockKernel(Kernel):
    """A kernel that works on each block by itself."""

    def run(self, blocks: Iterable[Block], task: Task) -> Iterator[Block]:
        for block in blocks:
            if block.length:
                yield self.apply(block, task)

    def whole(self, block: Block, task: Task) -> Block:
        return self.apply(block, task) if block.length else NOTHING

    @abstractmethod
    def apply(self, block: Block, task: Task) -> Block:
        """Turn one block, of one tuple at least, into another."""


@dataclass(frozen=True)
class TupleKernel(BlockKernel):
    """A kernel that works on each tuple by itself: makes the `outputs`, and hands on the fields
    that are `carried`."""

    inputs: Fields
    carried: tuple[str, ...]
    outputs: tuple[str, ...] = ()


def made_tuples(operation: Operation, inputs: Fields, block: Block) -> Sequence[Any]:
    """The tuples of a block as an operation takes them: plain ones where it reads by position."""
    rows = block.tuples(inputs.names)
    return list(rows if operation.positional else map(tuple_type(inputs), rows))
