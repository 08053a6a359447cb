"""The aggregate of a window that slides over panes: three calls of the combiner for each pane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trident.states.own_values import own


class SlidingAggregate:
    """Combines panes that follow each other, of which the first ones go and others come.

    The panes are in two stacks. Of the older ones the aggregate of each with all behind it is kept,
    so that one may go at no cost; of the newer ones the aggregate of all. Once no older one is
    left, the newer ones become the older. `combine` is associative, and may change its first
    argument in place.

    Examples
    --------
    >>> words = SlidingAggregate(lambda a, b: a + b, "abcdef".__getitem__)
    >>> words.over(range(0, 3)), words.over(range(2, 4)), words.over(range(2, 6))
    ('abc', 'cd', 'cdef')
    """

    def __init__(self, combine: Callable[[Any, Any], Any], value: Callable[[int], Any]) -> None:
        self._combine = combine
        self._value = value
        self._older: list[Any] = []  # with all behind it; the first pane's is the last
        self._newer: list[Any] = []
        self._total: Any = None  # of the newer ones
        self._panes = range(0)

    def over(self, panes: range) -> Any:
        """The aggregate of some panes; neither end is before the one of the last call."""
        if panes.start >= self._panes.stop:
            self._older, self._newer = [], []
            self._panes = range(panes.start, panes.start)
        for _ in range(self._panes.start, panes.start):
            self._drop()
        for number in range(self._panes.stop, panes.stop):
            value = self._value(number)
            self._total = self._combine(self._total, value) if self._newer else own(value)
            self._newer.append(value)
        self._panes = panes
        if not self._older:
            return own(self._total)
        oldest = self._older[-1]
        return self._combine(own(oldest), self._total) if self._newer else own(oldest)

    def _drop(self) -> None:
        if not self._older:
            while self._newer:
                value = own(self._newer.pop())
                behind = self._older[-1] if self._older else None
                self._older.append(self._combine(value, behind) if self._older else value)
        self._older.pop()
