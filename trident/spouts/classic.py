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


class TransactionalCoordinator(ABC):
    """Decides what a batch of an :class:`ITransactionalSpout` holds; lives on the driver."""

    @abstractmethod
    def initializeTransaction(self, txid: int, prevMetadata: Any) -> Any:
        """Return what tells the batch; called once a txid, and logged before it is emitted."""

    @abstractmethod
    def isReady(self) -> bool:
        """Return whether a batch may begin now; where no spout ever says no, a run never ends."""

    def close(self) -> None:
        """Release what the coordinator holds."""
        return None


class TransactionalEmitter(ABC):
    """Emits the batches that the coordinator decided; lives on the driver."""

    @abstractmethod
    def emitBatch(self, tx: Token, coordinatorMeta: Any, collector: TridentCollector) -> None:
        """Emit exactly the tuples that `coordinatorMeta` tells; called once an attempt."""

    def cleanupBefore(self, txid: int) -> None:
        """Learn that no batch before `txid` is emitted again."""
        return None

    def close(self) -> None:
        """Release what the emitter holds."""
        return None


class CommitterTransactionalEmitter(TransactionalEmitter):
    """An emitter that has a part in the commit of its batch."""

    @abstractmethod
    def commit(self, tx: Token) -> None:
        """Do what belongs to the commit; see :meth:`CommitterEmitter.commit`."""


class ITransactionalSpout(ITridentDataSource):
    """A spout whose coordinator decides each batch, and whose emitter emits it.

    The attempt is not one of the emitted values.
    """

    kind: ClassVar[SpoutKind] = "transactional"
    Coordinator = TransactionalCoordinator
    Emitter = TransactionalEmitter

    @abstractmethod
    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> TransactionalCoordinator:
        """Return the coordinator for one run; called on the driver."""

    @abstractmethod
    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> TransactionalEmitter:
        """Return the emitter for one run; called on the driver."""


class ICommitterTransactionalSpout(ITransactionalSpout):
    """A transactional spout whose emitter is called in the commit phase, too."""

    Emitter = CommitterTransactionalEmitter

    @abstractmethod
    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> CommitterTransactionalEmitter:
        """Return the emitter for one run; called on the driver."""


class BaseTransactionalSpout(ITransactionalSpout):
    """A transactional spout; it adds nothing to its interface."""


class NumberedCoordinator(ABC):
    """Says how many partitions an :class:`IPartitionedTransactionalSpout` has; on the driver."""

    @abstractmethod
    def numPartitions(self) -> int:
        """Return how many partitions there are; never fewer than before."""

    @abstractmethod
    def isReady(self) -> bool:
        """Return whether a batch may begin now; where no spout ever says no, a run never ends."""

    def close(self) -> None:
        """Release what the coordinator holds."""
        return None


class NumberedEmitter(ABC):
    """Emits partitions by number; as :class:`TransactionalPartitionEmitter` otherwise."""

    @abstractmethod
    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: int, lastPartitionMeta: Any
    ) -> Any:
        """Emit the next tuples of a partition, and return what tells them."""

    @abstractmethod
    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: int, partitionMeta: Any
    ) -> None:
        """Emit exactly the tuples that `partitionMeta` tells."""

    def close(self) -> None:
        """Release what the emitter holds."""
        return None


class IPartitionedTransactionalSpout(ITridentDataSource):
    """A transactional spout over a number of partitions."""

    kind: ClassVar[SpoutKind] = "transactional"
    Coordinator = NumberedCoordinator
    Emitter = NumberedEmitter

    @abstractmethod
    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> NumberedCoordinator:
        """Return the coordinator for one run; called on the driver."""

    @abstractmethod
    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> NumberedEmitter:
        """Return an emitter; called in each process that emits."""


class BasePartitionedTransactionalSpout(IPartitionedTransactionalSpout):
    """A transactional spout over a number of partitions; it adds nothing to its interface."""


class ReadinessCoordinator(ABC):
    """Says when a batch of an :class:`IOpaquePartitionedTransactionalSpout` may begin."""

    @abstractmethod
    def isReady(self) -> bool:
        """Return whether a batch may begin now; where no spout ever says no, a run never ends."""

    def close(self) -> None:
        """Release what the coordinator holds."""
        return None


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
        return None


class IOpaquePartitionedTransactionalSpout(ITridentDataSource):
    """An opaque spout over a number of partitions."""

    kind: ClassVar[SpoutKind] = "opaque"
    strongest: ClassVar[SpoutKind] = "opaque"
    Coordinator = ReadinessCoordinator
    Emitter = OpaqueNumberedEmitter

    @abstractmethod
    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> ReadinessCoordinator:
        """Return the coordinator for one run; called on the driver."""

    @abstractmethod
    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> OpaqueNumberedEmitter:
        """Return an emitter; called on the driver, and in each process that emits."""


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


class _Transactional(ITridentSpout):
    kind: ClassVar[SpoutKind] = "transactional"

    def __init__(self, spout: ITransactionalSpout) -> None:
        self._spout = spout

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _TransactionalCoordinator(self._spout.getCoordinator(conf, context))

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return _TransactionalEmitter(self._spout.getEmitter(conf, context))

    def getOutputFields(self) -> Fields:
        return self._spout.getOutputFields()


class _CommitterTransactional(_Transactional, ICommitterTridentSpout):
    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> CommitterEmitter:
        made: Any = self._spout.getEmitter(conf, context)
        name = "ICommitterTransactionalSpout.Emitter"
        check_derived(made, CommitterTransactionalEmitter, name, txStateId)
        return _CommitterTransactionalEmitter(made)


class _TransactionalCoordinator(BatchCoordinator):
    def __init__(self, own: TransactionalCoordinator) -> None:
        self._own = own

    def isReady(self, txid: int) -> bool:
        return self._own.isReady()

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        return self._own.initializeTransaction(txid, prevMetadata)

    def close(self) -> None:
        self._own.close()


class _TransactionalEmitter(Emitter):
    def __init__(self, own: TransactionalEmitter) -> None:
        self._own = own

    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        self._own.emitBatch(token, metadata, collector)

    def success(self, token: Token) -> None:
        self._own.cleanupBefore(token.txid + 1)

    def close(self) -> None:
        self._own.close()


class _CommitterTransactionalEmitter(_TransactionalEmitter, CommitterEmitter):
    def __init__(self, own: CommitterTransactionalEmitter) -> None:
        super().__init__(own)
        self._commit = own.commit

    def commit(self, token: Token) -> None:
        self._commit(token)


@dataclass(frozen=True)
class _Number:
    number: int

    def getId(self) -> str:
        return str(self.number)


def _numbered(count: Any) -> list[_Number]:
    return [_Number(number) for number in range(count)]


class _Partitioned(IPartitionedTridentSpout):
    def __init__(self, spout: IPartitionedTransactionalSpout) -> None:
        self._spout = spout

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> PartitionCoordinator:
        return _NumberedCoordinator(self._spout.getCoordinator(conf, context))

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> TransactionalPartitionEmitter:
        return _NumberedEmitter(self._spout.getEmitter(conf, context))

    def getOutputFields(self) -> Fields:
        return self._spout.getOutputFields()


class _NumberedCoordinator(PartitionCoordinator):
    def __init__(self, own: NumberedCoordinator) -> None:
        self._own = own

    def isReady(self, txid: int) -> bool:
        return self._own.isReady()

    def getPartitionsForBatch(self) -> int:
        return self._own.numPartitions()

    def close(self) -> None:
        self._own.close()


class _NumberedEmitter(TransactionalPartitionEmitter):
    def __init__(self, own: NumberedEmitter) -> None:
        self._own = own

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[_Number]:
        return _numbered(allPartitionInfo)

    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        number = int(partition.getId())
        return self._own.emitPartitionBatchNew(tx, collector, number, lastMetadata)

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, metadata: Any
    ) -> None:
        self._own.emitPartitionBatch(tx, collector, int(partition.getId()), metadata)

    def close(self) -> None:
        self._own.close()


class _OpaquePartitioned(IOpaquePartitionedTridentSpout):
    def __init__(self, spout: IOpaquePartitionedTransactionalSpout) -> None:
        self._spout = spout

    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> PartitionCoordinator:
        return _ReadinessCoordinator(self._spout.getCoordinator(conf, context))

    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> OpaquePartitionEmitter:
        return _OpaqueNumberedEmitter(self._spout.getEmitter(conf, context))

    def getOutputFields(self) -> Fields:
        return self._spout.getOutputFields()


class _ReadinessCoordinator(PartitionCoordinator):
    def __init__(self, own: ReadinessCoordinator) -> None:
        self._own = own

    def isReady(self, txid: int) -> bool:
        return self._own.isReady()

    def getPartitionsForBatch(self) -> None:
        return None  # the emitter counts them

    def close(self) -> None:
        self._own.close()


class _OpaqueNumberedEmitter(OpaquePartitionEmitter):
    def __init__(self, own: OpaqueNumberedEmitter) -> None:
        self._own = own

    def getOrderedPartitions(self, allPartitionInfo: Any) -> list[_Number]:
        return _numbered(self._own.numPartitions())

    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        number = int(partition.getId())
        return self._own.emitPartitionBatch(tx, collector, number, lastMetadata)

    def close(self) -> None:
        self._own.close()
