"""Updaters: the changes of one stored value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Protocol
from uuid import UUID

from trident.states.errors import CorruptStateError
from trident.states.keys import decode_key

_NO_NUMBERS = frozenset({str, bytes, list, tuple, dict, date, datetime, UUID})


class Combiner(Protocol):
    """The part of a combiner aggregator that a map uses; see ``trident.CombinerAggregator``."""

    adds: bool
    """Whether :meth:`combine` adds numbers, so that a store may do it instead."""

    def combine(self, left: Any, right: Any) -> Any:
        """Return two partial results combined."""


def check_addable(keys: Sequence[bytes], stored: Sequence[Any]) -> None:
    """Raise CorruptStateError if a stored value is no number: nothing can be added to it."""
    if _NO_NUMBERS.isdisjoint(map(type, stored)):
        return
    for key, value in zip(keys, stored, strict=True):
        if type(value) in _NO_NUMBERS:
            raise CorruptStateError(
                f"the value of key {decode_key(key)!r}",
                f"{value!r:.80} is a {type(value).__name__}, and numbers are added to it",
                "Put back the number that it was, remove the key, or begin anew in a state of "
                "another name.",
            )


class Reducer(Protocol):
    """The part of a reducer aggregator that a map uses; see ``trident.ReducerAggregator``."""

    def init(self) -> Any:
        """Return the value to begin with."""

    def reduce(self, curr: Any, tuple: Any) -> Any:
        """Return `curr` with one more tuple in it."""


class ValueUpdater(ABC):
    """A change of one stored value.

    Runs in the task that owns the key, once for each attempt, and again if the entry has changed in
    the store meanwhile; it must be deterministic.

    Examples
    --------
    >>> class Doubled(ValueUpdater):
    ...     def update(self, stored):
    ...         return 1 if stored is None else 2 * stored
    >>> Doubled().update(None), Doubled().update(4)
    (1, 8)
    """

    @abstractmethod
    def update(self, stored: Any) -> Any:
        """Return the new value; `stored` is None if there is none.

        None removes the key. A :class:`~trident.states.expiry.KeepUntil` is a value that expires.
        """


class CombinerValueUpdater(ValueUpdater):
    """Combines the stored value with a partial result; without a stored value, gives that result.

    Parameters
    ----------
    combiner : Combiner
        Has ``combine(left, right)``.
    arg : object
        The partial result.
    """

    def __init__(self, combiner: Combiner, arg: Any) -> None:
        self.combiner = combiner
        self.arg = arg

    def update(self, stored: Any) -> Any:
        return self.arg if stored is None else self.combiner.combine(stored, self.arg)


class ReducerValueUpdater(ValueUpdater):
    """Reduces tuples into the stored value, or without one into the reducer's ``init()``.

    Parameters
    ----------
    reducer : Reducer
        Has ``init()`` and ``reduce(curr, tuple)``.
    tuples : iterable
        The tuples, kept as a list.
    """

    def __init__(self, reducer: Reducer, tuples: Iterable[Any]) -> None:
        self.reducer = reducer
        self.tuples = list(tuples)

    def update(self, stored: Any) -> Any:
        value = self.reducer.init() if stored is None else stored
        for item in self.tuples:
            value = self.reducer.reduce(value, item)
        return value


class PutUpdater(ValueUpdater):
    """Replaces any stored value.

    Examples
    --------
    >>> PutUpdater(5).update(3)
    5
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def update(self, stored: Any) -> Any:
        return self.value
