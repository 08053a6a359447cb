"""A spout that makes its tuples, at a given rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, ClassVar, TypedDict

from trident.errors import described
from trident.operations.interfaces import TridentCollector
from trident.spouts.collector import SpoutCollector
from trident.spouts.interfaces import BatchCoordinator, Emitter, ITridentSpout, SpoutKind
from trident.states.values import Token
from trident.tuples.fields import Fields, FieldsLike

Numbers = TypedDict("Numbers", {"from": int, "to": int})
"""The numbers of a batch: from the first one up to, and without, the last."""


class GeneratorSpout(ITridentSpout):
    """Makes a tuple of each number: 0, 1, 2 …

    Parameters
    ----------
    fields : Fields
        The names of the values.
    make : callable
        Makes the tuple of a number: ``make(7)`` gives a value for each field.
    rate : float, optional
        How many tuples a second; as fast as batches are done by default.
    batch : int
        How many tuples a batch holds at most.
    total : int, optional
        How many there are; without end by default.

    Raises
    ------
    ValueError
        When a number is not above 0, or `batch` or `total` is not whole.
    TypeError
        When `make` can't be called.

    Notes
    -----
    Lives on the driver. The numbers of a batch are in the log before it is computed, so the stream
    is transactional if `make` gives the same for the same number.

    Examples
    --------
    >>> spout = GeneratorSpout("n long, square long", lambda n: (n, n * n), total=3)
    >>> spout.kind
    'transactional'
    """

    kind: ClassVar[SpoutKind] = "transactional"

    def __init__(
        self,
        fields: FieldsLike,
        make: Callable[[Any], Any],
        *,
        rate: float | None = None,
        batch: int = 10_000,
        total: int | None = None,
    ) -> None:
        if rate is not None and not (isinstance(rate, int | float) and 0 < rate < math.inf):
            raise ValueError(f"GeneratorSpout: rate is above 0, found {described(rate)}")
        for name, given in (("batch", batch), ("total", 1 if total is None else total)):
            if type(given) is not int or given < 1:
                what = f"{name} is a whole number above 0"
                raise ValueError(f"GeneratorSpout: {what}, found {described(given)}")
        if not callable(make):
            raise TypeError(f"GeneratorSpout: make is a function, found {described(make)}")
        self._fields = Fields.of(fields)
        self._emitter: Emitter = _OfRows(make)
        self._rate = rate
        self._batch = batch
        self._total = total

    @classmethod
    def of_columns(
        cls, fields: FieldsLike, make: Callable[[range], Any], **options: Any
    ) -> GeneratorSpout:
        """Make whole columns at once, which is many times as fast.

        Parameters
        ----------
        fields : Fields
            The names of the values.
        make : callable
            Makes the tuples of some numbers: ``make(range(0, 1000))`` gives the values of each
            field by name, or a ``pyarrow.RecordBatch``.
        **options
            As for a spout of tuples.

        Examples
        --------
        >>> spout = GeneratorSpout.of_columns("n long", lambda some: {"n": list(some)}, rate=5000)
        """
        spout = cls(fields, make, **options)
        spout._emitter = _OfColumns(make)
        return spout

    def getCoordinator(
        self, txStateId: str, conf: Mapping[str, Any], context: Any
    ) -> BatchCoordinator:
        return _Pace(self._rate, self._batch, self._total)

    def getEmitter(self, txStateId: str, conf: Mapping[str, Any], context: Any) -> Emitter:
        return self._emitter

    def getOutputFields(self) -> Fields:
        return self._fields


class _Pace(BatchCoordinator):
    """Chooses the numbers of each batch: those of the time since the run began, or all."""

    def __init__(self, rate: float | None, batch: int, total: int | None) -> None:
        self._rate = rate
        self._batch = batch
        self._total = total
        self._began = monotonic()
        self._first: int | None = None
        self._next = 0

    def isReady(self, txid: int) -> bool:
        if self._first is None:
            return True  # where the last run ended is not known yet
        return self._end() > self._next

    def lag(self, txid: int) -> int | None:
        first, end = self._first, self._total
        if first is not None and self._rate is not None:
            due = first + int((monotonic() - self._began) * self._rate)
            end = due if end is None else min(due, end)
        return None if first is None or end is None else max(0, end - self._next)

    def initializeTransaction(self, txid: int, prevMetadata: Any, currMetadata: Any) -> Numbers:
        start = prevMetadata["to"] if prevMetadata else 0
        if self._first is None:
            self._first, self._next = start, start
        self._next = start
        end = max(start, self._end())
        self._next = end
        return {"from": start, "to": end}

    def _end(self) -> int:
        assert self._first is not None
        end = self._next + self._batch
        if self._rate is not None:
            end = min(end, self._first + int((monotonic() - self._began) * self._rate))
        return end if self._total is None else min(end, self._total)


class _OfRows(Emitter):
    def __init__(self, make: Callable[[int], Sequence[Any]]) -> None:
        self._make = make

    def emitBatch(self, token: Token, metadata: Numbers, collector: TridentCollector) -> None:
        for number in range(metadata["from"], metadata["to"]):
            collector.emit(self._make(number))


class _OfColumns(Emitter):
    def __init__(self, make: Callable[[range], Any]) -> None:
        self._make = make

    def emitBatch(self, token: Token, metadata: Numbers, collector: TridentCollector) -> None:
        assert isinstance(collector, SpoutCollector)
        if metadata["to"] > metadata["from"]:
            collector.emitColumns(self._make(range(metadata["from"], metadata["to"])))
