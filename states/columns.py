"""Entries as columns: what a batch reads and writes, without an object for each key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, overload

from trident.states.values import OpaqueValue

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

    def committed(self, last: int, exceptions: Any) -> bool:
        """Return whether attempt 0 of a batch up to `last` wrote every entry, and counts."""
        return (
            not any(self.attempts)
            and max(self.txids, default=0) <= last
            and exceptions.keys().isdisjoint(self.txids)
        )


class VersionedEntries(Sequence[tuple[Any, Any]]):
    """Pairs of an entry and its version, kept as two columns.

    Parameters
    ----------
    entries, versions : sequence
        The columns, of one length.

    Examples
    --------
    >>> list(VersionedEntries([b"3", None], [17, 0]))
    [(b'3', 17), (None, 0)]
    """

    __slots__ = ("entries", "versions")

    def __init__(self, entries: Sequence[Any], versions: Sequence[Any]) -> None:
        self.entries = entries
        self.versions = versions

    @staticmethod
    def of(pairs: Sequence[tuple[Any, Any]]) -> VersionedEntries:
        """Return `pairs` as columns."""
        if isinstance(pairs, VersionedEntries):
            return pairs
        return VersionedEntries(*zip(*pairs, strict=True)) if pairs else VersionedEntries((), ())

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return zip(self.entries, self.versions, strict=True)

    @overload
    def __getitem__(self, position: int) -> tuple[Any, Any]: ...
    @overload
    def __getitem__(self, position: slice) -> VersionedEntries: ...
    def __getitem__(self, position: int | slice) -> tuple[Any, Any] | VersionedEntries:
        if isinstance(position, slice):
            return VersionedEntries(self.entries[position], self.versions[position])
        return self.entries[position], self.versions[position]
