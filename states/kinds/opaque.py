"""Opaque values: exact for every source, whatever a replay brings.

An entry holds its value, the committed value before it, and who wrote it. So a later attempt, with
other tuples or none for this key, starts again from what was committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from trident.states.control import ControlRecord
from trident.states.cut import BatchMovedOn, Cut
from trident.states.kinds.kind import Kind
from trident.states.values import StateType, Token

if TYPE_CHECKING:
    from trident.states.serializers import Serializer


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


# Twice as fast as OpaqueValue(...).
_opaque_value = partial(tuple.__new__, OpaqueValue)


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

    def committed(self, cut: Cut) -> bool:
        """Return whether attempt 0 of a batch up to the cut wrote every entry, and counts."""
        return (
            not any(self.attempts)
            and max(self.txids, default=0) <= cut.committed
            and (not cut.retried or cut.retried.keys().isdisjoint(self.txids))
        )


class OpaqueKind(Kind):
    """Every entry keeps its token and the committed value before it.

    Examples
    --------
    >>> stored = [OpaqueValue(8, 0, 5, 4), OpaqueValue(9, 0, 5, 4), OpaqueValue(7, 0, 5, 4), None]
    >>> OPAQUE.read(stored, Cut(8, Token(9, 1), {7: 1}))
    [5, 4, 4, None]
    """

    type = StateType.OPAQUE
    columns = ("txid", "attempt", "curr", "prev")
    tokens = 2

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        if isinstance(entries, OpaqueEntries) and entries.committed(cut):
            return list(entries.currs)
        committed, _, retried = cut
        return [
            None
            if entry is None
            else entry[2]  # of attempt 0 of a committed batch, as nearly every one is
            if not entry[1] and entry[0] <= committed and entry[0] not in retried
            else _resolved(entry, cut)
            for entry in entries
        ]

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> OpaqueEntries:
        txid, attempt = record.token
        count = len(values)
        return OpaqueEntries([txid] * count, [attempt] * count, values, befores)

    def is_dead(self, entry: Any, record: ControlRecord) -> bool:
        return (
            entry is not None
            and entry.curr is None
            and record.is_committed(entry.txid, entry.attempt)
        )

    def parts(self, entries: Sequence[Any]) -> Sequence[Sequence[Any]]:
        if isinstance(entries, OpaqueEntries):
            return entries.txids, entries.attempts, entries.currs, entries.prevs
        return list(zip(*entries, strict=True)) or [()] * 4

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [entry if entry[0] is not None else None for entry in map(_opaque_value, rows)]

    def dumps(self, entries: Sequence[Any], serializer: Serializer) -> list[bytes]:
        txids, attempts, currs, prevs = self.parts(entries)
        return serializer.dumps_opaque(txids, attempts, currs, prevs)

    def loads(self, data: Sequence[bytes | None], serializer: Serializer) -> Sequence[Any]:
        return serializer.loads_opaque(data)


OPAQUE = OpaqueKind()


def _resolved(entry: OpaqueValue, cut: Cut) -> Any:
    """Return the value that an entry had at the cut."""
    txid, attempt, curr, prev = entry
    if txid <= cut.committed:
        return curr if attempt == cut.retried.get(txid, 0) else prev
    if (txid, attempt) <= cut.horizon:
        return prev
    raise BatchMovedOn(Token(txid, attempt))
