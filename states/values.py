"""The values that a state stores, the token of the attempt that wrote one, and copies of values."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

IMMUTABLE = frozenset({int, float, str, bool, bytes, type(None), date, datetime, Decimal, UUID})


class Token(NamedTuple):
    """One attempt of one batch; tokens are ordered, the greater one is the later.

    Parameters
    ----------
    txid : int
        The batch, consecutive from 1.
    attempt : int
        How often the processing of that batch had begun before: 0, 1, 2 …

    Examples
    --------
    >>> Token(7, 1) > Token(7, 0) > Token(6, 5)
    True
    """

    txid: int
    attempt: int


def are_longs(values: Sequence[Any]) -> bool:
    """Return whether there are values, and all of them are integers of 64 bits.

    Examples
    --------
    >>> are_longs([1, -1]), are_longs([2**63]), are_longs([True]), are_longs([])
    (True, False, False, False)
    """
    return set(map(type, values)) == {int} and min(values) >= -(2**63) and max(values) < 2**63


class StateType(Enum):
    """How a map keeps its values, and so which sources it is exact with."""

    OPAQUE = "opaque"
    TRANSACTIONAL = "transactional"
    NON_TRANSACTIONAL = "non-transactional"


class TransactionalValue(NamedTuple):
    """A value that survives identical replays.

    Parameters
    ----------
    txid : int
        The batch that wrote it.
    value : object
        The value; None is absent.
    """

    txid: int
    value: Any


class OpaqueValue(NamedTuple):
    """A value that survives replays with other content.

    Parameters
    ----------
    txid, attempt : int
        The token of the attempt that wrote it.
    curr : object
        What that attempt made of the value; None is absent (a tombstone).
    prev : object
        The committed value before that attempt; None is absent.
    """

    txid: int
    attempt: int
    curr: Any
    prev: Any


class Versioned(NamedTuple):
    """A stored value with the version of its form, from 2."""

    version: int
    value: Any


def own_copy(value: Any) -> Any:
    """Return `value`, or a copy if it can be changed in place."""
    kind = type(value)
    if kind in IMMUTABLE:
        return value
    if kind is list and IMMUTABLE.issuperset(map(type, value)):
        return value.copy()
    return copy.deepcopy(value)


def own_copies(values: Sequence[Any]) -> Sequence[Any]:
    """Return `values`, each as :func:`own_copy` does; no changeable object comes twice."""
    return values if IMMUTABLE.issuperset(map(type, values)) else [*map(own_copy, values)]
