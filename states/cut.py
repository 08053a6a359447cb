"""The cut: which batches count for a reader of a state, be it a later batch or a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from trident.states.control import ControlRecord
from trident.states.expiry import moment_at, now
from trident.states.values import Token

_ANY_ATTEMPT = _ANY_BATCH = 2**63
_COMMITTED = attrgetter("committed")


class Cut(NamedTuple):
    """The state of a map right after a committed batch."""

    committed: int
    """The batch; all batches up to it show."""
    horizon: Token
    """The last attempt that may have begun meanwhile. An entry of a later one says that the cut is
    too old to be read."""
    retried: Mapping[int, int]
    """The committed attempts that were not 0."""
    reached: int | None = None
    """The time that batches had reached, if entries expire by it."""

    @staticmethod
    def before(record: ControlRecord) -> Cut:
        """Return the cut at which the batch that `record` has begun reads."""
        return Cut(record.token.txid - 1, record.token, record.retried, record.reached)

    @staticmethod
    def after(
        committed: int, under_way: int, retried: Mapping[int, int], reached: int | None = None
    ) -> Cut:
        """Return the cut after `committed`, while any attempt up to batch `under_way` may write."""
        return Cut(committed, Token(under_way, _ANY_ATTEMPT), retried, reached)

    @staticmethod
    def common(records: Sequence[ControlRecord]) -> Cut:
        """Return the last cut that states of one group, with these records, can all show."""
        least = min(records, key=_COMMITTED)
        under_way = max(least.committed + 1, min([record.token.txid for record in records]))
        return Cut.after(least.committed, under_way, least.retried, least.reached)

    def check_nothing_removed(self, record: ControlRecord | None) -> None:
        """Raise BatchMovedOn if entries that the cut needs may have been removed.

        A batch removes entries that are absent as of the batch before. A reader as of an earlier
        batch needs the values in them. `record` was read after the entries.
        """
        if record and min(record.committed, record.token.txid - 1) > self.committed:
            raise BatchMovedOn(record.token)

    @property
    def moment(self) -> datetime:
        """The moment that decides what has expired: reached by batches, or the clock's."""
        return now() if self.reached is None else moment_at(self.reached)

    def endless(self) -> Cut:
        """Return the same cut without a horizon: no entry is too new for it."""
        return self._replace(horizon=Token(_ANY_BATCH, _ANY_ATTEMPT))


class BatchMovedOn(Exception):
    """An attempt beyond the cut, whose token this holds, has written an entry."""
