"""A partitioned source for tests: each partition is a list of numbers that a test appends to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trident import Fields
from trident.errors import SourceUnavailableError
from trident.states import Token
from trident.storm import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, SpoutCollector


@dataclass
class Shelf:
    """What there is to read: numbers by partition; one that is away can't be read."""

    numbers: dict[str, list[int]]
    away: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    size: int = 2

    def read(self, name: str, start: int, end: int | None = None) -> list[int]:
        if name in self.away:
            raise SourceUnavailableError(f"shelf {name}", "it is away")
        return self.numbers[name][start : start + self.size if end is None else end]


@dataclass(frozen=True)
class Part:
    name: str

    def getId(self) -> str:
        return self.name


class Parts(IPartitionedTridentSpout.Coordinator):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getPartitionsForBatch(self) -> Any:
        return sorted(self.shelf.numbers.keys() - self.shelf.hidden)


class OpaqueNumbers(IOpaquePartitionedTridentSpout.Emitter):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[Part]:
        return [Part(name) for name in allPartitionInfo]

    def refreshPartitions(self, partitionResponsibilities: Any) -> None:
        self.shelf.calls.append(("refresh", *(each.name for each in partitionResponsibilities)))

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> Any:
        start = lastMetadata or 0
        found = self.shelf.read(partition.name, start)
        for number in found:
            collector.emit([partition.name, number])
        return start + len(found)

    def close(self) -> None:
        self.shelf.calls.append(("close",))


class TransactionalNumbers(IPartitionedTridentSpout.Emitter):
    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[Part]:
        return [Part(name) for name in allPartitionInfo]

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> Any:
        start = lastMetadata["end"] if lastMetadata else 0
        end = start + len(self.shelf.read(partition.name, start))
        told = {"start": start, "end": end}
        self.emitPartitionBatch(tx, collector, partition, told)
        return told

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, metadata: Any
    ) -> None:
        found = self.shelf.read(partition.name, metadata["start"], metadata["end"])
        names = [partition.name] * len(found)
        collector.emitColumns({"part": names, "number": found})


class OpaqueShelf(IOpaquePartitionedTridentSpout):
    """Reads a shelf as an opaque stream."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> Parts:
        return Parts(self.shelf)

    def getEmitter(
        self, conf: Mapping[str, Any], context: Any
    ) -> IOpaquePartitionedTridentSpout.Emitter:
        return OpaqueNumbers(self.shelf)

    def getOutputFields(self) -> Fields:
        return Fields(part=str, number=int)


class TransactionalShelf(IPartitionedTridentSpout):
    """Reads a shelf as a transactional stream."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> Parts:
        return Parts(self.shelf)

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> IPartitionedTridentSpout.Emitter:
        return TransactionalNumbers(self.shelf)

    def getOutputFields(self) -> Fields:
        return Fields(part=str, number=int)
