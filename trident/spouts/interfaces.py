"""The interfaces of spouts whose batches are made on the driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from trident.errors import OperationTypeError, UsageError
from trident.states.values import Token

if TYPE_CHECKING:
    from trident.operations.interfaces import TridentCollector
    from trident.tuples.fields import Fields

SpoutKind = Literal["opaque", "transactional", "non-transactional"]


class ITridentDataSource(ABC):
    """A spout of any interface: what ``newStream`` takes beside a streaming DataFrame."""

    kind: ClassVar[SpoutKind]
    """How a batch is replayed: ``"transactional"`` if a txid always gives the same tuples, in
    another process too; ``"opaque"`` if a tuple that isn't committed comes again, in any batch;
    ``"non-transactional"`` if neither holds."""
    strongest: ClassVar[SpoutKind] = "transactional"
    """The strongest kind that a spout of the interface can be of."""

    @abstractmethod
    def getOutputFields(self) -> Fields:
        """Return the names of the emitted values, and the known types."""

    def from_history(self, since: str | None) -> ITridentDataSource:
        """Return the spout as ``python -m trident rebuild`` runs it: `since` is its ``--from``, and
        a batch may be as large as memory allows.

        By default it is the spout itself, which begins at its beginning, and any `since` is an
        error.
        """
        if since is not None:
            advice = "Leave --from out: it is read from its beginning."
            raise UsageError(f"{type(self).__name__} doesn't begin at", since, (), advice)
        return self

    def __repr__(self) -> str:
        try:
            fields = repr(self.getOutputFields()).removeprefix("Fields(").removesuffix(")")
        except Exception:  # the spout may not know its fields yet
            fields = ""
        return f"{type(self).__name__}({fields})"


class Readiness:
    """Says when there is a batch, and how many tuples wait: a spout itself, or its coordinator."""

    def isReady(self, txid: int) -> bool:
        """Return whether there is a batch `txid` to emit now; by default always.

        ``trigger="available"`` and ``processAllAvailable()`` end when every spout of the group
        says no. A spout that keeps the default can't say so: a batch without tuples says it
        instead. Define this method if such a batch may come before a full one, or if a batch
        without tuples is run (see ``explain()``) and there are long times without any.

        With partitions a batch without tuples is committed only if it has other metadata;
        otherwise the same txid is emitted again later.
        """
        return True

    def whenReady(self, listener: Callable[[], None]) -> bool:
        """Promise to call `listener` whenever ``isReady`` may have become true.

        Returns
        -------
        bool
            True for such a promise; False, the default, to be polled. `listener` is cheap and may
            be called from any thread.
        """
        return False

    def lag(self, txid: int) -> int | None:
        """Return how many tuples wait, including those of the batch `txid`, which is due.

        ``run.figures()`` shows it; None, the default, if it isn't known. Called by any thread at
        any time, so it must not wait or ask another process.
        """
        return None

    def close(self) -> None:
        """Release what the object holds; called once, after the last batch."""


class IBatchSpout(Readiness, ITridentDataSource):
    """A spout without metadata: each batch is emitted from its txid alone.

    Lives on the driver. All methods are called by the run's own thread; a spout belongs to one
    run at a time.

    Examples
    --------
    >>> from trident import Fields
    >>> class Squares(IBatchSpout):
    ...     kind = "transactional"
    ...     def emitBatch(self, batchId, collector):
    ...         collector.emit([batchId, batchId**2])
    ...     def getOutputFields(self):
    ...         return Fields(n=int, square=int)
    >>> Squares().isReady(1)
    True
    """

    kind: ClassVar[SpoutKind] = "non-transactional"

    def open(self, conf: Mapping[str, Any], context: Any) -> None:
        """Prepare for a run; called once before its first batch."""

    @abstractmethod
    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        """Emit the tuples of `batchId`; called once an attempt.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        """

    def ack(self, batchId: int) -> None:
        """Learn that `batchId` is committed; may be called again, also after a restart."""


class BatchCoordinator(Readiness, ABC):
    """Decides when there is a batch and, for a transactional spout, what it holds."""

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Any:
        """Return what a replay of `txid` needs to emit exactly the same tuples.

        Called once a txid, before its first attempt, and only for transactional spouts. The
        answer is logged before any state is written, and given to every attempt. If the process
        dies between this call and that entry, its successor calls again: a coordinator that also
        stores its decision elsewhere has to allow for that.

        Parameters
        ----------
        txid : int
            The batch.
        prevMetadata : object or None
            The metadata of the batch before; None for the first.
        currMetadata : object or None
            Always None: metadata that exists is used, not made again.

        Returns
        -------
        object
            JSON values only.
        """
        return None

    def success(self, txid: int) -> None:
        """Learn that `txid` is committed; may be called again, also after a restart."""

    @abstractmethod
    def isReady(self, txid: int) -> bool:
        """Return whether there is a batch `txid` to emit now.

        ``trigger="available"`` and ``processAllAvailable()`` end when every spout of the group
        says no; a batch without tuples ends neither.
        """


class Emitter(ABC):
    """Emits the tuples of one batch."""

    @abstractmethod
    def emitBatch(self, token: Token, metadata: Any, collector: TridentCollector) -> Any:
        """Emit the tuples of one attempt.

        Parameters
        ----------
        token : Token
            The attempt. One that fails before any state has begun it keeps its number, so the same
            token may come again, and stand for other tuples: don't remember tuples by it.
        metadata : object or None
            For a transactional spout what its coordinator decided for this txid; for an opaque
            one what this method returned for the last committed batch, None for the first.
        collector : TridentCollector
            Takes the tuples: one by one, or by the column with ``emitColumns``.

        Returns
        -------
        object
            For an opaque spout what the next batch needs to go on from here, stored by this
            batch's commit; JSON values only. Ignored for the other kinds.
        """

    def success(self, token: Token) -> None:
        """Learn that `token` is committed; may be called again, also after a restart."""

    def close(self) -> None:
        """Release what the emitter holds."""


class ITridentSpout(ITridentDataSource):
    """A spout whose batches are described by metadata that is kept in the log.

    Its coordinator and its emitter live on the driver and are used by the run's own thread.
    """

    kind: ClassVar[SpoutKind] = "opaque"
    """``"transactional"`` if the metadata, made by the coordinator before a batch's first attempt,
    says exactly what the batch holds; ``"opaque"`` if each attempt emits what follows the last
    committed batch, and returns how far it came."""

    @abstractmethod
    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        """Return the coordinator for one run of the stream `txStateId`; called on the driver."""

    @abstractmethod
    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        """Return the emitter for one run of the stream `txStateId`; called on the driver."""


class CommitterEmitter(Emitter):
    """An emitter that has a part in the commit of its batch."""

    @abstractmethod
    def commit(self, token: Token) -> None:
        """Do the spout's part of the commit of an attempt; called in the order of txids.

        Called once an attempt, when every state has confirmed its writes, directly before the batch
        is committed. If this attempt is lost, a later one of the same batch follows: the method has
        to allow for that.

        Raises
        ------
        FailedException
            Fails this attempt; the batch is retried.
        """


class ICommitterTridentSpout(ITridentSpout):
    """A spout whose emitter is called in the commit phase of its batches, too."""

    @abstractmethod
    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> CommitterEmitter:
        """Return the emitter for one run of the stream `txStateId`; called on the driver."""


def check_derived(made: object, interface: type[Any], name: str, stream: str) -> None:
    """Check that a spout's coordinator or emitter is derived from its interface."""
    if not isinstance(made, interface):
        article = "an" if name[0] in "EI" else "a"
        what = f'the spout of the stream "{stream}": expected {article} {name}, found'
        raise OperationTypeError(what, type(made).__name__, (), f"Derive its class from {name}.")
