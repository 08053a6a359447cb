"""Which of the two values in a stored opaque value counts: for a batch, and for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trident.states.columns import OpaqueEntries
from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError
from trident.states.values import OpaqueValue, Token


class Cut(NamedTuple):
    """The moment that a reader sees: after a committed batch, the same for all its states.

    Parameters
    ----------
    committed : int
        The batch; everything up to it shows.
    horizon : int
        The last batch that may be under way; a later one means that the cut is too old.
    exceptions : mapping of int to int
        The committed attempts that were not 0.
    """

    committed: int
    horizon: int
    exceptions: Mapping[int, int]


class BatchMovedOn(Exception):
    """A reader met a batch beyond its cut: it has to take a new one."""


def in_batch(stored: Iterable[OpaqueValue | None], record: ControlRecord) -> list[Any]:
    """Return the values as they were before the batch that `record` has begun.

    Raises
    ------
    StaleBatchError
        When a value was written by a later attempt than the record's.

    Examples
    --------
    >>> begun = ControlRecord("a1", Token(9, 1), committed=8, exceptions={7: 1})
    >>> in_batch([OpaqueValue(9, 0, 5, 4), OpaqueValue(8, 0, 5, 4), OpaqueValue(7, 0, 5, 4)], begun)
    [4, 5, 4]
    """
    own_txid, own_attempt = record.token
    exceptions = record.exceptions
    if isinstance(stored, OpaqueEntries) and stored.committed(own_txid - 1, exceptions):
        return list(stored.currs)
    values: list[Any] = []
    for entry in stored:
        if entry is None:
            values.append(None)
            continue
        txid, attempt, curr, prev = entry
        if txid < own_txid:
            values.append(curr if attempt == exceptions.get(txid, 0) else prev)
        elif txid == own_txid and attempt <= own_attempt:
            values.append(prev)
        else:
            raise StaleBatchError(record.token, Token(txid, attempt))
    return values


def at_cut(stored: Iterable[OpaqueValue | None], cut: Cut) -> list[Any]:
    """Return the values as they were after the committed batch of `cut`.

    Raises
    ------
    BatchMovedOn
        When a value was written by a batch beyond the cut's horizon.

    Examples
    --------
    >>> at_cut([OpaqueValue(8, 0, 5, 4), OpaqueValue(9, 0, 5, 4), None], Cut(8, 9, {}))
    [5, 4, None]
    """
    committed, horizon, exceptions = cut
    if isinstance(stored, OpaqueEntries) and stored.committed(committed, exceptions):
        return list(stored.currs)
    values: list[Any] = []
    for entry in stored:
        if entry is None:
            values.append(None)
            continue
        txid, attempt, curr, prev = entry
        if txid <= committed:
            values.append(curr if attempt == exceptions.get(txid, 0) else prev)
        elif txid <= horizon:
            values.append(prev)
        else:
            raise BatchMovedOn
    return values
