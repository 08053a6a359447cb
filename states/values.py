"""The values a state stores, and the token every one of them carries."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, NamedTuple


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
