"""A transactional spout over tuples in memory, as examples and tests have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trident.errors import PlanError
from trident.operations.emitted import check_row
from trident.spouts.collector import SpoutCollector
from trident.spouts.partitioned import (
    IPartitionedTridentSpout,
    ISpoutPartition,
    PartitionCoordinator,
    TransactionalPartitionEmitter,
)
from trident.states.values import Token
from trident.tuples.fields import Fields, FieldsLike


class MemoryTransactionalSpout(IPartitionedTridentSpout):
    """Emits the given tuples of each partition, `takeAmt` of them in each batch, then nothing.

    Parameters
    ----------
    partitions : mapping of int to sequence
        The tuples of each partition, from 0.
    outFields : Fields
        Their fields.
    takeAmt : int
        How many tuples of a partition a batch takes.

    Examples
    --------
    >>> spout = MemoryTransactionalSpout({0: [["cat"], ["dog"]], 1: [["cow"]]}, "word string", 2)
    >>> spout.getOutputFields()
    Fields('word string')
    """

    def __init__(
        self, partitions: Mapping[int, Sequence[Sequence[Any]]], outFields: FieldsLike, takeAmt: int
    ) -> None:
        self._fields = Fields.of(outFields)
        if type(takeAmt) is not int or takeAmt < 1:
            raise PlanError("MemoryTransactionalSpout: takeAmt is 1 or more, found", repr(takeAmt))
        if sorted(partitions) != list(range(len(partitions))):
            what = "MemoryTransactionalSpout: partitions are numbered from 0, found"
            raise PlanError(what, repr(list(partitions)))
        width = len(self._fields)
        self._partitions = [
            [check_row("MemoryTransactionalSpout", row, width) for row in partitions[number]]
            for number in sorted(partitions)
        ]
        self._take = takeAmt

    def getOutputFields(self) -> Fields:
        return self._fields

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> PartitionCoordinator:
        return _Numbers([len(rows) for rows in self._partitions])

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> TransactionalPartitionEmitter:
        return _Emitter(self._partitions, self._take)


@dataclass(frozen=True)
class _Partition:
    number: int

    def getId(self) -> str:
        return str(self.number)


class _Numbers(PartitionCoordinator):
    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = lengths
        self._has_more = True

    def getPartitionsForBatch(self) -> int:
        return len(self._lengths)

    def follow(self, metadata: Mapping[str, Any]) -> None:
        self._has_more = any(
            metadata.get(str(number), {"to": 0})["to"] < length
            for number, length in enumerate(self._lengths)
        )

    def isReady(self, txid: int) -> bool:
        return self._has_more


class _Emitter(TransactionalPartitionEmitter):
    def __init__(self, partitions: Sequence[Sequence[Any]], take: int) -> None:
        self._partitions = partitions
        self._take = take

    def getOrderedPartitions(self, allPartitionInfo: Any) -> Sequence[ISpoutPartition]:
        return [_Partition(number) for number in range(allPartitionInfo)]

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        rows = self._partitions[int(partition.getId())]
        start = lastMetadata["to"] if lastMetadata else 0
        span = {"from": start, "to": min(start + self._take, len(rows))}
        self.emitPartitionBatch(tx, collector, partition, span)
        return span

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, metadata: Any
    ) -> None:
        rows = self._partitions[int(partition.getId())]
        for row in rows[metadata["from"] : metadata["to"]]:
            collector.emit(row)
