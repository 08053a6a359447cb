"""Aggregators that keep whole tuples: the least, the greatest, the first ones in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import nlargest, nsmallest
from typing import Any

from trident.operations.interfaces import Aggregator, TridentCollector
from trident.tuples.fields import Fields

Comparator = Callable[[Any, Any], int]
"""Says which of two comes first: below 0 the first one, above 0 the second, 0 for a tie."""

_SLACK = 1024
"""How many more tuples than `n` are collected before they are sorted again."""


def natural_order(a: Any, b: Any) -> int:
    """The order of `Min` and `Max`: NaN is greater than any number, as in Spark.

    Examples
    --------
    >>> natural_order(1, 2), natural_order("b", "a"), natural_order(float("nan"), 1e300)
    (-1, 1, 1)
    """
    if a != a or b != b:
        return int(a != a) - int(b != b)
    return int(a > b) - int(a < b)


class LeastTuple(Aggregator[Any]):
    """Keeps the tuple that comes first; of a tie, as Trident does, the one that was seen last.

    It compares the values at `position` and skips nulls; with None it compares whole tuples.
    """

    acts_on_nothing = False

    def __init__(self, position: int | None, comparator: Comparator, label: str) -> None:
        self.positional = position is not None
        self.label = label
        self._position = position
        self._comparator = comparator

    def init(self, batchId: object, collector: TridentCollector) -> Any:
        return None

    def aggregate(self, val: Any, tuple: Sequence[Any], collector: TridentCollector) -> Any:
        position = self._position
        if position is None:
            return tuple if val is None or self._replaces(self._comparator(tuple, val)) else val
        if tuple[position] is None:
            return val
        if val is None or self._replaces(self._comparator(tuple[position], val[position])):
            return tuple
        return val

    def complete(self, val: Any, collector: TridentCollector) -> None:
        if val is not None:
            collector.emit(val)

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        return list(inputs.types.values())

    @staticmethod
    def _replaces(order: int) -> bool:
        return order <= 0


class GreatestTuple(LeastTuple):
    """Keeps the tuple that comes last; of a tie, as Trident does, the one that was seen last."""

    @staticmethod
    def _replaces(order: int) -> bool:
        return order >= 0


class FirstTuples(Aggregator[list[Any]]):
    """Keeps the first `n` tuples, in the order in which they come."""

    positional = True
    acts_on_nothing = False

    def __init__(self, n: int) -> None:
        self.n = n
        self.label = f"FirstN({n})"

    def init(self, batchId: object, collector: TridentCollector) -> list[Any]:
        return []

    def aggregate(self, val: list[Any], tuple: Sequence[Any], collector: TridentCollector) -> None:
        if len(val) < self.n:
            val.append(tuple)

    def complete(self, val: list[Any], collector: TridentCollector) -> None:
        for each in val:
            collector.emit(each)

    def infer_types(self, inputs: Fields) -> Sequence[str | None]:
        return list(inputs.types.values())


class FirstSortedTuples(FirstTuples):
    """Keeps the first `n` tuples by one of their values, and emits them in that order.

    Null comes last. Of equal ones the first that was seen comes first.
    """

    def __init__(self, n: int, position: int, reverse: bool, label: str) -> None:
        super().__init__(n)
        self.label = label
        self._position = position
        self._pick = nlargest if reverse else nsmallest
        self._null_rank = 0 if reverse else 1

    def aggregate(self, val: list[Any], tuple: Sequence[Any], collector: TridentCollector) -> None:
        val.append(tuple)
        if len(val) >= 2 * self.n + _SLACK:
            val[:] = self._first(val)

    def complete(self, val: list[Any], collector: TridentCollector) -> None:
        super().complete(self._first(val), collector)

    def _first(self, rows: list[Any]) -> list[Any]:
        made: list[Any] = self._pick(self.n, rows, key=self._rank)
        return made

    def _rank(self, row: Sequence[Any]) -> Any:
        value = row[self._position]
        if value is None:
            return (self._null_rank,)
        not_a_number = value != value  # which is greater than any number
        return (1 - self._null_rank, not_a_number, 0 if not_a_number else value)
