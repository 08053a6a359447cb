"""Spouts of transactional topologies, the interfaces before Trident's, as streams of Trident."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from trident.operations.interfaces import TridentCollector
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import (
    BatchCoordinator,
    CommitterEmitter,
    Emitter,
    ICommitterTridentSpout,
    ITridentDataSource,
    ITridentSpout,
    SpoutKind,
    check_derived,
)
from trident.spouts.partitioned import (
    CoordinatedSpout,
    IOpaquePartitionedTridentSpout,
    IPartitionedTridentSpout,
    ISpoutPartition,
    OpaquePartitionEmitter,
    PartitionCoordinator,
    PartitionedSpout,
    TransactionalPartitionEmitter,
)
from trident.states.values import Token
from trident.tuples.fields import Fields


class ReadinessCoordinator(ABC):
    """Says when a batch may begin; lives on the driver."""

    @abstractmethod
    def isReady(self) -> bool:
        """Return whether a batch may begin now; if no spout ever says no, a run never ends."""

    def close(self) -> None:
        """Release what the coordinator holds."""


class TransactionalCoordinator(ReadinessCoordinator):
    """Decides what a batch of an :class:`ITransactionalSpout` holds; lives on the driver."""

    @abstractmethod
    def initializeTransaction(self, txid: int, prevMetadata: Any) -> Any:
        """Return the batch's metadata; called once a txid, and logged before it is emitted."""


class TransactionalEmitter(ABC):
    """Emits the batches that the coordinator decided; lives on the driver."""

    @abstractmethod
    def emitBatch(self, tx: Token, coordinatorMeta: Any, collector: TridentCollector) -> None:
        """Emit exactly the tuples that `coordinatorMeta` describes; called once an attempt."""

    def cleanupBefore(self, txid: int) -> None:
        """Learn that no batch before `txid` is emitted again."""

    def close(self) -> None:
        """Release what the emitter holds."""


class CommitterTransactionalEmitter(TransactionalEmitter):
    """An emitter that has a part in the commit of its batch."""

    @abstractmethod
    def commit(self, tx: Token) -> None:
        """Do what belongs to the commit; see :meth:`CommitterEmitter.commit`."""


class ITransactionalSpout(CoordinatedSpout[TransactionalCoordinator, TransactionalEmitter]):
    """A spout whose coordinator decides each batch, and whose emitter emits it.

    The attempt is not one of the emitted values.
    """

    kind: ClassVar[SpoutKind] = "transactional"
    Coordinator = TransactionalCoordinator
    Emitter = TransactionalEmitter


class ICommitterTransactionalSpout(ITransactionalSpout):
    """A transactional spout whose emitter is called in the commit phase, too."""

    Emitter = CommitterTransactionalEmitter

    @abstractmethod
    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> CommitterTransactionalEmitter:
        """Return the emitter for one run; called on the driver."""


class BaseTransactionalSpout(ITransactionalSpout):
    """A transactional spout; it adds nothing to its interface."""


class NumberedCoordinator(ReadinessCoordinator):
    """Says how many partitions an :class:`IPartitionedTransactionalSpout` has; on the driver."""

    @abstractmethod
    def numPartitions(self) -> int:
        """Return how many partitions there are; never fewer than before."""


class NumberedEmitter(ABC):
    """Emits partitions by number; as :class:`TransactionalPartitionEmitter` otherwise."""

    @abstractmethod
    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: int, lastPartitionMeta: Any
    ) -> Any:
        """Emit the next tuples of a partition, and return metadata that describes them."""

    @abstractmethod
    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: int, partitionMeta: Any
    ) -> None:
        """Emit exactly the tuples that `partitionMeta` describes."""

    def close(self) -> None:
        """Release what the emitter holds."""


class IPartitionedTransactionalSpout(CoordinatedSpout[NumberedCoordinator, NumberedEmitter]):
    """A transactional spout over a number of partitions."""

    kind: ClassVar[SpoutKind] = "transactional"
    Coordinator = NumberedCoordinator
    Emitter = NumberedEmitter


class BasePartitionedTransactionalSpout(IPartitionedTransactionalSpout):
    """A transactional spout over a number of partitions; it adds nothing to its interface."""


class OpaqueNumberedEmitter(ABC):
    """Emits partitions by number; as :class:`OpaquePartitionEmitter` otherwise."""

    @abstractmethod
    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: int, lastPartitionMeta: Any
    ) -> Any:
        """Emit tuples that follow the last committed batch, and return how far that came."""

    @abstractmethod
    def numPartitions(self) -> int:
        """Return how many partitions there are; called on the driver, once an attempt."""

    def close(self) -> None:
        """Release what the emitter holds."""


class IOpaquePartitionedTransactionalSpout(
    CoordinatedSpout[ReadinessCoordinator, OpaqueNumberedEmitter]
):
    """An opaque spout over a number of partitions."""

    kind: ClassVar[SpoutKind] = "opaque"
    strongest: ClassVar[SpoutKind] = "opaque"
    Coordinator = ReadinessCoordinator
    Emitter = OpaqueNumberedEmitter


class BaseOpaquePartitionedTransactionalSpout(IOpaquePartitionedTransactionalSpout):
    """An opaque spout over a number of partitions; it adds nothing to its interface."""


ClassicSpout = (
    ITransactionalSpout | IPartitionedTransactionalSpout | IOpaquePartitionedTransactionalSpout
)


def has_partitions(spout: object) -> bool:
    """Return whether partitions of a spout, of an interface old or new, are emitted one by one."""
    classic = IPartitionedTransactionalSpout | IOpaquePartitionedTransactionalSpout
    return isinstance(spout, PartitionedSpout | classic)


def as_trident(spout: ClassicSpout) -> ITridentDataSource:
    """Return the same spout behind an interface of Trident's."""
    if isinstance(spout, ICommitterTransactionalSpout):
        return _CommitterTransactional(spout)
    if isinstance(spout, ITransactionalSpout):
        return _Transactional(spout)
    if isinstance(spout, IPartitionedTransactionalSpout):
        return _Partitioned(spout)
    return _OpaquePartitioned(spout)


class _Adapter:
    """Stands for a coordinator or an emitter of an older interface."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def close(self) -> None:
        self._own.close()


class _TransactionalCoordinator(_Adapter, BatchCoordinator):
    def isReady(self, txid: int) -> bool:
        ready: bool = self._own.isReady()
        return ready

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return self._own.initializeTransaction(txid, prevMetadata)


class _TransactionalEmitter(_Adapter, Emitter):
    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        self._own.emitBatch(token, metadata, collector)

    def success(self, token: Token) -> None:
        self._own.cleanupBefore(token.txid + 1)


class _CommitterTransactionalEmitter(_TransactionalEmitter, CommitterEmitter):
    def commit(self, token: Token) -> None:
        self._own.commit(token)


@dataclass(frozen=True)
class _Number:
    number: int

    def getId(self) -> str:
        return str(self.number)


class _ReadinessCoordinator(_Adapter, PartitionCoordinator):
    def isReady(self, txid: int) -> bool:
        ready: bool = self._own.isReady()
        return ready

    def getPartitionsForBatch(self) -> Any:
        return None  # the emitter counts them


class _NumberedCoordinator(_ReadinessCoordinator):
    def getPartitionsForBatch(self) -> Any:
        return self._own.numPartitions()


class _NumberedEmitter(_Adapter, TransactionalPartitionEmitter):
    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[_Number]:
        return list(map(_Number, range(allPartitionInfo)))

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        number = int(partition.getId())
        return self._own.emitPartitionBatchNew(tx, collector, number, lastMetadata)

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, metadata: Any
    ) -> None:
        self._own.emitPartitionBatch(tx, collector, int(partition.getId()), metadata)


class _OpaqueNumberedEmitter(_Adapter, OpaquePartitionEmitter):
    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[_Number]:
        return list(map(_Number, range(self._own.numPartitions())))

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        number = int(partition.getId())
        return self._own.emitPartitionBatch(tx, collector, number, lastMetadata)


class _SpoutAdapter(ITridentDataSource):
    """Stands for a spout of an older interface."""

    coordinator: ClassVar[type[_Adapter]]
    emitter: ClassVar[type[_Adapter]]

    def __init__(self, spout: Any) -> None:
        self._spout = spout

    def getOutputFields(self) -> Fields:
        fields: Fields = self._spout.getOutputFields()
        return fields

    def getCoordinator(self, *given: Any, **named: Any) -> Any:
        return self.coordinator(self._spout.getCoordinator(*given[-2:]))

    def getEmitter(self, *given: Any, **named: Any) -> Any:
        return self.emitter(self._spout.getEmitter(*given[-2:]))


class _Transactional(_SpoutAdapter, ITridentSpout):
    kind: ClassVar[SpoutKind] = "transactional"
    coordinator = _TransactionalCoordinator
    emitter = _TransactionalEmitter


class _CommitterTransactional(_Transactional, ICommitterTridentSpout):
    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> CommitterEmitter:
        made = self._spout.getEmitter(conf, context)
        name = "ICommitterTransactionalSpout.Emitter"
        check_derived(made, CommitterTransactionalEmitter, name, txStateId)
        return _CommitterTransactionalEmitter(made)


class _Partitioned(_SpoutAdapter, IPartitionedTridentSpout):
    coordinator = _NumberedCoordinator
    emitter = _NumberedEmitter


class _OpaquePartitioned(_SpoutAdapter, IOpaquePartitionedTridentSpout):
    coordinator = _ReadinessCoordinator
    emitter = _OpaqueNumberedEmitter
