"""A spout over tuples that are known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from trident.errors import described
from trident.operations.emitted import checked_row
from trident.operations.interfaces import TridentCollector
from trident.spouts.interfaces import IBatchSpout, SpoutKind
from trident.tuples.fields import Fields, FieldsLike


class FixedBatchSpout(IBatchSpout):
    """Emits the given tuples in batches of the same size, then nothing.

    Parameters
    ----------
    fields : Fields
        The names of the values.
    maxBatchSize : int
        How many tuples a batch holds; the last one holds what is left.
    *tuples : sequence
        The tuples, each with a value for every field.
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
    exact in another process too, and a restart goes on where the checkpoint is. At the end it has
    no batch, where the original emits empty ones for ever.

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
        *tuples: Sequence[Any],
        cycle: bool = False,
    ) -> None:
        if type(maxBatchSize) is not int or maxBatchSize < 1:
            what = f"FixedBatchSpout: maxBatchSize is 1 or more, found {described(maxBatchSize)}"
            raise ValueError(f'{what}. Write FixedBatchSpout("word", 3, ("the",), ("cow",)).')
        self._fields = Fields.of(fields)
        width = len(self._fields)
        rows = [checked_row("FixedBatchSpout", values, width) for values in tuples]
        self._batches = [
            rows[start : start + maxBatchSize] for start in range(0, len(rows), maxBatchSize)
        ]
        self._cycle = cycle

    def setCycle(self, cycle: bool) -> None:
        """Say whether to begin again at the end; before the run starts."""
        self._cycle = cycle

    def isReady(self, batchId: int) -> bool:
        return batchId <= len(self._batches) or (self._cycle and bool(self._batches))

    def whenReady(self, listener: Callable[[], None]) -> bool:
        return True  # it only ever runs out

    def emitBatch(self, batchId: int, collector: TridentCollector) -> None:
        if self.isReady(batchId):
            for values in self._batches[(batchId - 1) % len(self._batches)]:
                collector.emit(values)

    def getOutputFields(self) -> Fields:
        return self._fields
