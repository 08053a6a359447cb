"""A spout of given tuples, and incidents that a test puts among them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from trident.errors import described
from trident.operations.emitted import Row, check_row
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import IBatchSpout, SpoutKind
from trident.states.errors import FailedException
from trident.tuples.fields import Fields, FieldsLike


class FixedBatchSpout(IBatchSpout):
    """Emits the given tuples in batches of the same size, then nothing.

    Parameters
    ----------
    fields : Fields
        The names of the values.
    maxBatchSize : int
        How many tuples a batch holds; the last one holds the rest.
    *tuples : sequence or Incident
        The tuples, each with a value for every field. In a test also incidents of the batch in
        which they stand: `trident.testing.Fail`, `Crash` and `Replay`.
    cycle : bool
        Whether to begin again at the end; the run then never ends by itself.

    Raises
    ------
    ValueError
        When `maxBatchSize` is no whole number from 1.
    EmittedValueError
        When a tuple is no list or tuple of one value a field.

    Notes
    -----
    Lives on the driver. Which tuples a batch holds follows from its txid alone, so a replay is
    exact in another process too, and a restart goes on behind the checkpoint. At the end it has no
    batch; Storm's emits empty ones for ever.

    Examples
    --------
    >>> spout = FixedBatchSpout("word", 2, ["the"], ["cow"], ["jumped"])
    >>> spout.isReady(2), spout.isReady(3)
    (True, False)
    """

    kind: ClassVar[SpoutKind] = "transactional"

    def __init__(
        self,
        fields: FieldsLike,
        maxBatchSize: int,
        *tuples: Sequence[Any] | Incident,
        cycle: bool = False,
    ) -> None:
        if type(maxBatchSize) is not int or maxBatchSize < 1:
            what = f"FixedBatchSpout: maxBatchSize is 1 or more, found {described(maxBatchSize)}"
            raise ValueError(f'{what}. Write FixedBatchSpout("word", 3, ("the",), ("cow",)).')
        self._fields = Fields.of(fields)
        self._size, self._count = maxBatchSize, 0
        width = len(self._fields)
        self._batches: list[list[Row]] = []
        self._incidents: dict[int, list[Incident]] = {}
        self._others: dict[int, Sequence[Any]] = {}
        for given in tuples:
            if isinstance(given, Incident):
                if isinstance(given, Replay) and given.other is not None:
                    self.kind = "opaque"  # type: ignore[misc]
                self._incidents.setdefault(max(len(self._batches), 1), []).append(given)
                continue
            if not self._batches or len(self._batches[-1]) == maxBatchSize:
                self._batches.append([])
            self._count += 1
            self._batches[-1].append(check_row("FixedBatchSpout", given, width))
        self._cycle = cycle

    def setCycle(self, cycle: bool) -> None:
        """Say whether to begin again at the end; before the run starts."""
        self._cycle = cycle

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches) or (self._cycle and bool(self._batches))

    def whenReady(self, listener: Callable[[], None]) -> bool:
        return True  # it only ever runs out

    def lag(self, txid: int) -> int | None:
        return None if self._cycle else max(0, self._count - (txid - 1) * self._size)

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        if not self.isReady(batchId):
            return
        rows: Sequence[Any] = self._batches[(batchId - 1) % len(self._batches)]
        for values in self._others.get(batchId, rows):
            collector.emit(values)
        if self._incidents.get(batchId):
            incident = self._incidents[batchId].pop(0)
            if isinstance(incident, Replay) and incident.other is not None:
                self._others[batchId] = incident.other
            incident.happen()

    def getOutputFields(self) -> Fields:
        return self._fields


class SimulatedCrash(BaseException):
    """The driver has died, as far as a test is concerned.

    No `Exception`, so only the test's next driver catches it.
    """


class Incident(ABC):
    """Happens once, to the batch of a spout in which it stands."""

    @abstractmethod
    def happen(self) -> None:
        """Raise its error."""


class Fail(Incident):
    """The attempt fails, and the batch is emitted again.

    Examples
    --------
    >>> from trident import FixedBatchSpout
    >>> spout = FixedBatchSpout("word string", 2, ("the",), ("cow",), Fail(), ("jumped",))
    """

    def happen(self) -> None:
        raise FailedException("a Fail() stands in this batch")


class Crash(Incident):
    """The run ends as if it was killed; started again, it emits the batch again."""

    def happen(self) -> None:
        raise SimulatedCrash("a Crash() stands in this batch")


class Replay(Incident):
    """The attempt fails, and the batch is emitted again: with the same tuples, or with others.

    Parameters
    ----------
    other : sequence of sequence, optional
        The tuples of the replay. A spout with such a batch is opaque.
    """

    def __init__(self, other: Sequence[Sequence[Any]] | None = None) -> None:
        self.other = other

    def happen(self) -> None:
        raise FailedException("a Replay() stands in this batch")
