"""How tuples move between the partitions of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trident.kernels.grouping_kernel import PARTITION
from trident.kernels.keys import encoded_keys
from trident.plan.nodes import PartitionNode
from trident.states.sharding import shards_of
from trident.tuples.block import Block, joined
from trident.tuples.fields import Fields

Partitions = Sequence[Block]
"""The tuples of a step, a block for each of its partitions."""

Move = Callable[[Partitions], Partitions]


def gathered(partitions: Partitions) -> Partitions:
    """Brings all tuples into one partition."""
    return partitions if len(partitions) == 1 else [joined(partitions)]


def dealt(block: Block, count: int) -> Partitions:
    """Deals the tuples to the partitions in turn."""
    return [block] if count == 1 else [block.every(count, start) for start in range(count)]


def merged(streams: Sequence[Partitions], count: int) -> Partitions:
    """The partitions of all streams; deals the tuples anew where these aren't `count`."""
    partitions = [block for stream in streams for block in stream]
    return partitions if len(partitions) == count else dealt(joined(partitions), count)


def as_chosen(partitions: Partitions, count: int) -> Partitions:
    """Brings every tuple to the partition that its field :data:`PARTITION` names."""
    block = joined(partitions)
    targets = block.values(PARTITION)
    names = [name for name in block.names if name != PARTITION]
    return [block.kept([target == index for target in targets], names) for index in range(count)]


def move_of(node: PartitionNode, count: int) -> Move:
    """What moves tuples to the `count` partitions of a step."""
    if count == 1:
        return gathered
    if node.how == "broadcast":
        return lambda partitions: [*gathered(partitions)] * count
    if node.how == "localOrShuffle":
        return lambda parts: parts if len(parts) == count else dealt(joined(parts), count)
    if node.how == "shuffle" or node.by is None:
        return lambda partitions: dealt(joined(partitions), count)
    return by_key(node.by, count)


def by_key(by: Fields | None, count: int) -> Move:
    """Moves every tuple to the partition of its key; without a key, all to one."""
    if by is None or count == 1:
        return gathered
    names = by.names

    def move(partitions: Partitions) -> Partitions:
        block = joined(partitions)
        targets = shards_of(encoded_keys(block, names), count)
        masks = [[target == index for target in targets] for index in range(count)]
        return [block.kept(mask, block.names) for mask in masks]

    return move
