"""The interfaces of spouts with a source in partitions.

The coordinator lives on the driver and lists the partitions. The emitters run with the batch: in
the driver's process on the local engine, in the tasks of the first stage on Spark. So the spout,
its partitions and what the coordinator says of them must pickle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from trident.spouts.interfaces import ITridentDataSource, Readiness, SpoutKind
from trident.states.values import Token

if TYPE_CHECKING:
    from trident.spouts.collector import SpoutCollector

C = TypeVar("C")
E = TypeVar("E")


class ISpoutPartition(Protocol):
    """A part of a source that is read in order by one task at a time; pickles."""

    def getId(self) -> str:
        """Return the name under which the log keeps its metadata; unique in the stream."""


class PartitionCoordinator(Readiness, ABC):
    """Says when there is a batch, and which partitions the source has.

    Lives on the driver; used by the run's own thread.
    """

    def follow(self, metadata: Mapping[str, Any]) -> None:
        """Learn the metadata of the partitions, by their ids.

        Called before an attempt emits, with the metadata of the last committed batch, and
        afterwards, with that of this attempt. Emitters, which may be in other processes, have no
        other way to inform the coordinator.
        """

    @abstractmethod
    def getPartitionsForBatch(self) -> Any:
        """Return the partitions to read now; called once an attempt.

        Returns
        -------
        object
            Handed to the emitter's ``getOrderedPartitions``. Partitions may come and go from one
            batch to the next.

        Raises
        ------
        SourceUnavailableError
            When the source can't be asked; the batch waits for it.
        """

    def ended(self, metadata: Mapping[str, Any]) -> Collection[str]:
        """Return the ids of the partitions that have come to their end; by default none.

        The watermark of windows by a time of tuples doesn't wait for these. Called after an
        attempt has emitted. The answer must follow from `metadata` alone, so that another attempt
        gives the same.

        Parameters
        ----------
        metadata : mapping of str to object
            The metadata of the partitions after the attempt, by their ids.
        """
        return ()

    def success(self, token: Token) -> None:
        """Learn that `token` is committed; may be called again, also after a restart."""

    def held_back(self) -> int | None:
        """Return how many records can't be read before open transactions have ended.

        They are not part of :meth:`lag`. Called in the same way.
        """
        return None


class PartitionEmitter(ABC):
    """What emitters of partitioned spouts of both kinds share.

    One is made on the driver, which is asked for the order of partitions. On Spark others are made
    in the executors' Python processes, where they live from batch to batch:
    :meth:`refreshPartitions` tells each which partitions the next task reads.
    """

    @abstractmethod
    def getOrderedPartitions(self, allPartitionInfo: Any) -> Sequence[ISpoutPartition]:
        """Return the partitions, each once, in an order that is always the same.

        Called on the driver, once an attempt; opens no connection.

        Parameters
        ----------
        allPartitionInfo : object
            What the coordinator's ``getPartitionsForBatch`` returned.
        """

    def refreshPartitions(self, partitionResponsibilities: Sequence[ISpoutPartition]) -> None:
        """Learn which partitions this emitter emits next; called when these change."""

    def close(self) -> None:
        """Release what the emitter holds; called in the process that uses it.

        An executor's process calls it when another run begins the stream there, or when it has too
        many emitters. It isn't called if the process is killed, or ends by itself.
        """


class TransactionalPartitionEmitter(PartitionEmitter):
    """Emits partitions whose batches can be emitted again exactly as they were."""

    @abstractmethod
    def emitPartitionBatchNew(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        """Emit the next tuples of a partition, and return metadata that describes them.

        Called until the answer is in the log, which is before any state is written. After a crash
        before that it is called again, and may emit others.

        Parameters
        ----------
        tx : Token
            The attempt.
        collector : SpoutCollector
            Takes the tuples.
        partition : ISpoutPartition
            The partition.
        lastMetadata : object or None
            The metadata of the partition's last committed batch; None for its first.

        Returns
        -------
        object
            What :meth:`emitPartitionBatch` needs to emit the same tuples, and the next batch to
            continue after them. JSON values only, not None.

        Raises
        ------
        SourceUnavailableError
            When the partition is away; the batch waits for it.
        FailedException
            Fails this attempt; the batch is retried.
        """

    @abstractmethod
    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, metadata: Any
    ) -> None:
        """Emit exactly the tuples that `metadata` describes; raises as the other method."""


class OpaquePartitionEmitter(PartitionEmitter):
    """Emits partitions whose tuples come again, in whatever batch, until they are committed."""

    @abstractmethod
    def emitPartitionBatch(
        self, tx: Token, collector: SpoutCollector, partition: ISpoutPartition, lastMetadata: Any
    ) -> Any:
        """Emit tuples that follow the last committed batch of a partition.

        Called once an attempt, or more often if Spark runs a task again; the last answer counts.

        Parameters
        ----------
        tx : Token
            The attempt.
        collector : SpoutCollector
            Takes the tuples.
        partition : ISpoutPartition
            The partition.
        lastMetadata : object or None
            What this returned for the last committed batch with the partition; None for its first.

        Returns
        -------
        object
            What the next batch needs to continue after this one. JSON values only, not None.

        Raises
        ------
        SourceUnavailableError
            When the partition is away; the batch goes on without it.
        FailedException
            Fails this attempt; the batch is retried.
        """


class CoordinatedSpout(ITridentDataSource, Generic[C, E]):
    """A spout whose coordinator and emitters are objects of their own."""

    @abstractmethod
    def getCoordinator(self, conf: Mapping[str, Any], context: Any) -> C:
        """Return the coordinator for one run; called on the driver."""

    @abstractmethod
    def getEmitter(self, conf: Mapping[str, Any], context: Any) -> E:
        """Return an emitter; called on the driver, and of partitions in each process that emits."""


class IPartitionedTridentSpout(
    CoordinatedSpout[PartitionCoordinator, TransactionalPartitionEmitter]
):
    """A transactional spout over partitions: a replayed batch holds the same tuples.

    What each partition emits in the first attempt is logged before any state is written. Every
    later attempt of the batch emits the same, and waits for partitions that are away.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from trident import Fields
    >>> @dataclass(frozen=True)
    ... class Decade:
    ...     start: int
    ...     def getId(self):
    ...         return str(self.start)
    >>> class AllDecades(IPartitionedTridentSpout.Coordinator):
    ...     def getPartitionsForBatch(self):
    ...         return [0, 10]
    >>> class Numbers(IPartitionedTridentSpout.Emitter):
    ...     def getOrderedPartitions(self, info):
    ...         return [Decade(start) for start in info]
    ...     def emitPartitionBatchNew(self, tx, collector, partition, last):
    ...         number = partition.start if last is None else last + 1
    ...         if number < partition.start + 10:
    ...             collector.emit([number])
    ...         return number
    ...     def emitPartitionBatch(self, tx, collector, partition, number):
    ...         if number < partition.start + 10:
    ...             collector.emit([number])
    >>> class Decades(IPartitionedTridentSpout):
    ...     def getCoordinator(self, conf, context):
    ...         return AllDecades()
    ...     def getEmitter(self, conf, context):
    ...         return Numbers()
    ...     def getOutputFields(self):
    ...         return Fields(n=int)
    >>> Decades().kind
    'transactional'
    """

    kind: ClassVar[SpoutKind] = "transactional"
    Coordinator = PartitionCoordinator
    Emitter = TransactionalPartitionEmitter


class IOpaquePartitionedTridentSpout(
    CoordinatedSpout[PartitionCoordinator, OpaquePartitionEmitter]
):
    """An opaque spout over partitions: a replayed batch may hold other tuples.

    The commit of the batch stores how far each partition has come. A batch goes on without
    partitions that are away; when they come back they continue from there.
    """

    kind: ClassVar[SpoutKind] = "opaque"
    strongest: ClassVar[SpoutKind] = "opaque"
    Coordinator = PartitionCoordinator
    Emitter = OpaquePartitionEmitter


PartitionedSpout = IPartitionedTridentSpout | IOpaquePartitionedTridentSpout
