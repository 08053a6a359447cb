"""What a user writes of a transactional topology: bolts, and what they are given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from trident.errors import PlanError
from trident.spouts.rich import OutputFieldsDeclarer
from trident.states.values import Token
from trident.tuples import TridentTuple


class TransactionAttempt(Token):
    """A try of a batch: its `txid`, and the number of the attempt.

    Examples
    --------
    >>> TransactionAttempt(7, 1).getTransactionId(), TransactionAttempt(7, 1).getAttemptId()
    (7, 1)
    """

    __slots__ = ()

    def getTransactionId(self) -> int:
        """The batch; the same for every attempt."""
        return self.txid

    def getAttemptId(self) -> int:
        """The attempt, from 0."""
        return self.attempt


class BoltTuple(TridentTuple):
    """A tuple as a bolt is given it; the first value is the attempt, or the id of the request."""

    __slots__ = ()
    source: ClassVar[tuple[str, str]]

    def getSourceComponent(self) -> str:
        """The id of the spout or bolt that emitted it."""
        return self.source[0]

    def getSourceStreamId(self) -> str:
        """The stream on which it was emitted."""
        return self.source[1]


@dataclass(frozen=True)
class TopologyContext:
    """Where a bolt runs.

    Parameters
    ----------
    component : str
        The bolt's id.
    task : int
        Its task, from 0.
    tasks : mapping of str to int
        How many tasks each component has that takes this one's tuples, and it itself.
    """

    component: str
    task: int
    tasks: Mapping[str, int]

    def getThisComponentId(self) -> str:
        """The bolt's id."""
        return self.component

    def getThisTaskIndex(self) -> int:
        """Which of the bolt's tasks this is, from 0."""
        return self.task

    def getThisTaskId(self) -> int:
        """The same: tasks are numbered for each component."""
        return self.task

    def getComponentTasks(self, componentId: str) -> list[int]:
        """The tasks of a component, as `emitDirect` takes them.

        Raises
        ------
        PlanError
            For a component that takes none of this one's tuples.
        """
        if componentId not in self.tasks:
            what = f"getComponentTasks: no tuples go from {self.component} to"
            raise PlanError(what, componentId, tuple(self.tasks))
        return list(range(self.tasks[componentId]))


class BatchOutputCollector(ABC):
    """Takes what a batch bolt emits; the first value of each tuple is the id of the batch."""

    def emit(self, *streamId_and_values: Any) -> None:
        """Emit a tuple: ``emit(values)``, or ``emit(streamId, values)``.

        Raises
        ------
        PlanError
            For a stream that was not declared, or other values than it has fields.
        """
        self._emit(None, streamId_and_values)

    def emitDirect(self, taskId: int, *streamId_and_values: Any) -> None:
        """Emit a tuple to one task of the bolts that take it by ``directGrouping``."""
        self._emit(taskId, streamId_and_values)

    @abstractmethod
    def _emit(self, task: int | None, arguments: Sequence[Any]) -> None: ...


class BasicOutputCollector:
    """Takes what a basic bolt emits, without the id, which is put before it.

    Parameters
    ----------
    collector : BatchOutputCollector
        Takes it with the id.
    id : object
        The id of the batch, or of the request.
    """

    def __init__(self, collector: BatchOutputCollector, id: object) -> None:
        self._collector = collector
        self._id = id

    def emit(self, *streamId_and_values: Any) -> None:
        """Emit a tuple: ``emit(values)``, or ``emit(streamId, values)``."""
        *stream, values = streamId_and_values
        self._collector.emit(*stream, [self._id, *values])

    def emitDirect(self, taskId: int, *streamId_and_values: Any) -> None:
        """Emit a tuple to one task of the bolts that take it by ``directGrouping``."""
        *stream, values = streamId_and_values
        self._collector.emitDirect(taskId, *stream, [self._id, *values])


class _Bolt(ABC):
    @abstractmethod
    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        """Name the fields of what it emits; called while the topology is built."""

    def getComponentConfiguration(self) -> Mapping[str, Any] | None:
        """Published; not asked for."""
        return None


class IBatchBolt(_Bolt):
    """A bolt that sees a batch from its begin to its end; a new copy for each attempt.

    It is copied, and pickled to where it runs, so what it holds must allow that.
    """

    @abstractmethod
    def prepare(
        self,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: BatchOutputCollector,
        id: Any,
    ) -> None:
        """Begin a batch: `id` is its `TransactionAttempt`, or the id of a request."""

    @abstractmethod
    def execute(self, tuple: BoltTuple) -> None:
        """Take in one tuple of the batch."""

    @abstractmethod
    def finishBatch(self) -> None:
        """End the batch: every tuple of it has been taken in. Called of a batch without any too.

        Raises
        ------
        FailedException
            Fails the attempt.
        """


class BaseBatchBolt(IBatchBolt):
    """A batch bolt that emits nothing unless it says so."""

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        return None


class BaseTransactionalBolt(BaseBatchBolt):
    """A batch bolt whose id is a `TransactionAttempt`."""


class ICommitter:
    """Marks a batch bolt whose batches end one after the other, in order of their txid.

    It is called in the part of a batch in which states are updated: after every step that leads to
    it, and never for two batches at a time, whatever `max_pending` says.
    """


class IBasicBolt(_Bolt):
    """A bolt that sees one tuple at a time."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin a batch."""

    @abstractmethod
    def execute(self, tuple: BoltTuple, collector: BasicOutputCollector) -> None:
        """Take in one tuple; what it emits goes with the tuple's id before it."""

    def cleanup(self) -> None:
        """End a batch."""


class BaseBasicBolt(IBasicBolt):
    """A basic bolt that emits nothing unless it says so."""

    def declareOutputFields(self, declarer: OutputFieldsDeclarer) -> None:
        return None
