"""Which batches count for somebody who reads a state: a batch that updates it, or a reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trident.states.control import ControlRecord
from trident.states.values import Token

_ANY_ATTEMPT = _ANY_BATCH = 2**63


class Cut(NamedTuple):
    """The moment that is read: after a committed batch.

    Parameters
    ----------
    committed : int
        The batch; everything up to it shows.
    horizon : Token
        The last attempt that may have begun since; what a later one wrote means that the cut is
        too old.
    retried : mapping of int to int
        The committed attempts that were not 0.

    Examples
    --------
    >>> begun = ControlRecord("a1", Token(9, 1), committed=8, retried={7: 1})
    >>> Cut.before(begun)
    Cut(committed=8, horizon=Token(txid=9, attempt=1), retried={7: 1})
    """

    committed: int
    horizon: Token
    retried: Mapping[int, int]

    @staticmethod
    def before(record: ControlRecord) -> Cut:
        """Return what the batch that `record` has begun starts from."""
        return Cut(record.token.txid - 1, record.token, record.retried)

    @staticmethod
    def after(committed: int, under_way: int, retried: Mapping[int, int]) -> Cut:
        """Return what `committed` left, where any attempt up to batch `under_way` may write."""
        return Cut(committed, Token(under_way, _ANY_ATTEMPT), retried)

    def endless(self) -> Cut:
        """Return the same without a horizon: what any later batch wrote is passed over."""
        return self._replace(horizon=Token(_ANY_BATCH, _ANY_ATTEMPT))


class BatchMovedOn(Exception):
    """An entry was written by an attempt beyond the cut; holds the attempt's token."""
