"""Batches that are there before a run: of one spout, or dealt to the partitions of another."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st

from trident import Fields, IBatchSpout, TridentCollector
from trident.spouts.interfaces import SpoutKind
from trident.states import Token
from trident.storm import IOpaquePartitionedTridentSpout, IPartitionedTridentSpout, SpoutCollector


@dataclass(frozen=True)
class Deal:
    """How batches are dealt.

    Parameters
    ----------
    partitions : int
        To how many partitions.
    how : str
        Whether emitters give ``"rows"``, ``"columns"`` or ``"arrow"``.
    opaque : bool
        Of which kind the spout is.
    """

    partitions: int
    how: str
    opaque: bool


DEALS = st.builds(
    Deal, st.integers(1, 3), st.sampled_from(["rows", "columns", "arrow"]), st.booleans()
)


def dealt(deal: Deal, folder: Path, fields: Fields, batches: Sequence[Any]) -> Any:
    """A spout that emits each batch in the transaction of its number, from 1."""
    path = folder / "batches.pickle"
    path.write_bytes(pickle.dumps(batches))
    table = Table(str(path), deal, fields)
    return OpaqueDealt(table) if deal.opaque else TransactionalDealt(table)


class Prepared(IBatchSpout):
    """Emits each batch in the transaction of its number, from 1, as soon as it may."""

    kind: ClassVar[SpoutKind] = "transactional"

    def __init__(self, fields: Fields, batches: Sequence[Any]) -> None:
        self.fields = fields
        self.batches = batches

    def open(self, conf: Mapping[str, Any], context: Any) -> None:
        return None

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self.batches)

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        for row in self.batches[batchId - 1]:
            collector.emit(row)

    def ack(self, batchId: int) -> None:
        return None

    def close(self) -> None:
        return None

    def getOutputFields(self) -> Fields:
        return self.fields


@dataclass(frozen=True)
class Table:
    """Where the batches are; pickles."""

    path: str
    deal: Deal
    fields: Fields

    @property
    def batches(self) -> list[Any]:
        found: list[Any] = pickle.loads(Path(self.path).read_bytes())
        return found

    def emit(self, txid: int, collector: SpoutCollector, partition: Any) -> int:
        """Emit a partition's share of a batch."""
        rows = self.batches[txid - 1][partition.number :: self.deal.partitions]
        if self.deal.how == "rows":
            for row in rows:
                collector.emit(row)
            return txid
        names = self.fields.names
        columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        if self.deal.how == "columns":
            collector.emitColumns(columns)
        else:
            import pyarrow as pa

            schema = pa.schema({"s": pa.large_string(), "n": pa.int64(), "x": pa.float64()})
            collector.emitColumns(pa.RecordBatch.from_pydict(columns, schema))
        return txid


@dataclass(frozen=True)
class Share:
    number: int

    def getId(self) -> str:
        return str(self.number)


class Shares(IPartitionedTridentSpout.Coordinator):
    def __init__(self, table: Table) -> None:
        self.table = table
        self.last = len(table.batches)

    def isReady(self, txid: int) -> bool:
        return txid <= self.last

    def getPartitionsForBatch(self) -> int:
        return self.table.deal.partitions


class OpaqueShares(IOpaquePartitionedTridentSpout.Emitter):
    def __init__(self, table: Table) -> None:
        self.table = table

    def getOrderedPartitions(self, allPartitionInfo: int) -> list[Share]:
        return list(map(Share, range(allPartitionInfo)))

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> int:
        return self.table.emit(tx.txid, collector, partition)


class TransactionalShares(IPartitionedTridentSpout.Emitter):
    def __init__(self, table: Table) -> None:
        self.table = table

    def getOrderedPartitions(self, allPartitionInfo: int) -> list[Share]:
        return list(map(Share, range(allPartitionInfo)))

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: Any, lastMetadata: Any
    ) -> int:
        return self.table.emit(tx.txid, collector, partition)

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: Any, metadata: Any
    ) -> None:
        self.table.emit(metadata, collector, partition)


class OpaqueDealt(IOpaquePartitionedTridentSpout):
    def __init__(self, table: Table) -> None:
        self.table = table

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> Shares:
        return Shares(self.table)

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> OpaqueShares:
        return OpaqueShares(self.table)

    def getOutputFields(self) -> Fields:
        return self.table.fields


class TransactionalDealt(IPartitionedTridentSpout):
    def __init__(self, table: Table) -> None:
        self.table = table

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> Shares:
        return Shares(self.table)

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> TransactionalShares:
        return TransactionalShares(self.table)

    def getOutputFields(self) -> Fields:
        return self.table.fields
