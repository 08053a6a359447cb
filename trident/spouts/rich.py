"""Spouts that emit one record at a time: Storm's own, whose messages are acked or failed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from trident.errors import PlanError
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import ITridentDataSource, SpoutKind
from trident.tuples.block import Block
from trident.tuples.fields import Fields, FieldsLike

DEFAULT_STREAM = "default"


class OutputFieldsDeclarer:
    """Takes the fields of the streams that a spout or a bolt makes.

    Attributes
    ----------
    streams : dict of str to Fields
        The fields of each stream that was declared.
    """

    def __init__(self) -> None:
        self.streams: dict[str, Fields] = {}

    def declare(self, fields: FieldsLike) -> None:
        """Name the fields of the default stream; the first of a bolt's is the attempt."""
        self.declareStream(DEFAULT_STREAM, fields)

    def declareStream(self, streamId: str, fields: FieldsLike) -> None:
        """Name the fields of a stream of a bolt; the first is the attempt."""
        self.streams[streamId] = Fields.of(fields)


class SpoutOutputCollector(SpoutCollector):
    """Takes records, and the ids under which they are acked."""

    def __init__(self, spout: str, fields: Fields) -> None:
        super().__init__(spout, fields)
        self.emitted = 0
        """How many records were emitted since :meth:`take`."""
        self._ids: list[Any] = []

    def emit(self, values: Sequence[Any], messageId: Any = None) -> None:
        """Emit one record.

        Parameters
        ----------
        values : sequence
            A value for each output field.
        messageId : object, optional
            What ``ack`` or ``fail`` is called with; without it neither is.
        """
        super().emit(values)
        self.emitted += 1
        if messageId is not None:
            self._ids.append(messageId)

    def emitColumns(self, columns: Any) -> None:
        """Emit many records without ids; see :meth:`SpoutCollector.emitColumns`."""
        block = self._block(columns)
        self._add(block)
        self.emitted += block.length

    def take(self) -> tuple[Block, list[Any]]:
        """Return the records emitted since the last call, and their ids."""
        taken = self.block(), self._ids
        self._blocks, self._ids, self.emitted = [], [], 0
        return taken


class IRichSpout(ITridentDataSource):
    """A spout that emits one record at a time, and hears whether each was committed.

    Records are collected into batches: ``nextTuple`` is called until it emits nothing, or the
    batch is full. A message is acked once its batch is committed. It is failed if an attempt fails,
    or takes longer than messages live, so that the spout may emit it again. After a crash most
    sources emit messages again that were committed but not acked; they are counted twice. So the
    stream is non-transactional.

    Lives on the driver. All methods are called by the run's own thread.

    Examples
    --------
    >>> class Queue(IRichSpout):
    ...     def open(self, conf, context, collector):
    ...         self.collector, self.waiting = collector, {1: "the", 2: "cow"}
    ...     def nextTuple(self):
    ...         if self.waiting:
    ...             number, word = self.waiting.popitem()
    ...             self.collector.emit([word], number)
    ...     def declareOutputFields(self, declarer):
    ...         declarer.declare("word string")
    >>> Queue().getOutputFields().names
    ('word',)
    """

    kind: ClassVar[SpoutKind] = "non-transactional"
    strongest: ClassVar[SpoutKind] = "non-transactional"
    maxBatchSize: int = 1000
    """How many records a batch holds at most, apart from what one call of ``nextTuple`` emits."""
    messageTimeout: float = 30.0
    """Seconds from a batch's emission within which it has to be committed; later it is failed."""

    @abstractmethod
    def open(self, conf: Mapping[str, Any], context: Any, collector: SpoutOutputCollector) -> None:
        """Prepare for a run, and keep the collector; called once, before anything else."""

    @abstractmethod
    def nextTuple(self) -> None:
        """Emit the next record, or nothing if there is none now; doesn't wait."""

    def ack(self, msgId: Any) -> None:
        """Learn that the batch with this message is committed."""

    def fail(self, msgId: Any) -> None:
        """Learn that this message was not committed: emit it again, if it is to be counted."""

    def close(self) -> None:
        """Release what the spout holds; called once, after pending messages were failed."""

    @abstractmethod
    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the output fields, by ``declarer.declare(fields)``."""

    def getOutputFields(self) -> Fields:
        declarer = OutputFieldsDeclarer()
        self.declareOutputFields(declarer)
        if DEFAULT_STREAM not in declarer.streams:
            raise PlanError(
                f"{type(self).__name__}.declareOutputFields declared no fields",
                "",
                (),
                'Call declarer.declare("word string").',
            )
        return declarer.streams[DEFAULT_STREAM]
