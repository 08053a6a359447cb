"""What a state stores of a key, and the token of the attempt that wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, overload


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


_opaque_value = partial(tuple.__new__, OpaqueValue)  # twice as fast as OpaqueValue(...)


class OpaqueEntries(Sequence[OpaqueValue | None]):
    """Opaque values, or None for each key that is absent, kept as four columns of one length.

    What looks at all of them does so column by column; as a sequence it makes each value when it
    is asked for.

    Parameters
    ----------
    txids, attempts : sequence of int
        Who wrote each entry; txid 0, which no batch has, is an absent key.
    currs, prevs : sequence
        Its two values; None for an absent key.

    Examples
    --------
    >>> found = OpaqueEntries([3, 0], [1, 0], [7, None], [4, None])
    >>> list(found)
    [OpaqueValue(txid=3, attempt=1, curr=7, prev=4), None]
    """

    __slots__ = ("attempts", "currs", "prevs", "txids")

    def __init__(
        self,
        txids: Sequence[int],
        attempts: Sequence[int],
        currs: Sequence[Any],
        prevs: Sequence[Any],
    ) -> None:
        self.txids = txids
        self.attempts = attempts
        self.currs = currs
        self.prevs = prevs

    def __len__(self) -> int:
        return len(self.txids)

    def __iter__(self) -> Iterator[OpaqueValue | None]:
        columns = zip(self.txids, self.attempts, self.currs, self.prevs, strict=True)
        if 0 in self.txids:
            return (_opaque_value(row) if row[0] else None for row in columns)
        return map(_opaque_value, columns)

    @overload
    def __getitem__(self, position: int) -> OpaqueValue | None: ...
    @overload
    def __getitem__(self, position: slice) -> OpaqueEntries: ...
    def __getitem__(self, position: int | slice) -> OpaqueValue | OpaqueEntries | None:
        columns = self.txids, self.attempts, self.currs, self.prevs
        if isinstance(position, slice):
            return OpaqueEntries(*(column[position] for column in columns))
        txid, attempt, curr, prev = (column[position] for column in columns)
        return OpaqueValue(txid, attempt, curr, prev) if txid else None
