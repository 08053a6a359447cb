"""The shard of each key of a state, and the control record of all shards: the *least* copy.

A shard can fail over, restart or lose its data by itself, and a write is compared with the record
of its own shard. A new state's record is written to shard 0 last, so this shard tells whether the
state exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from trident.states.control import ControlRecord
from trident.states.errors import CorruptStateError
from trident.states.values import Token

_RESTORE = (
    "Restore the store from a backup that is whole, or begin anew with an empty store and a new "
    "checkpoint."
)


def shard_of(key: bytes, count: int) -> int:
    """Return the shard, or partition, of an encoded key, out of `count` ones.

    Examples
    --------
    >>> shard_of(b"dog", 2), shard_of(b"cat", 2)
    (1, 0)
    """
    return crc32(key) % count


def shards_of(keys: Iterable[bytes], count: int) -> list[int]:
    """Return the shard of each key, as :func:`shard_of` does."""
    return [crc32(key) % count for key in keys]


@dataclass(frozen=True)
class Sharding:
    """The keys of one call, by their shards.

    A key never leaves the shard that :func:`shard_of` returns. While a server is away its keys are
    away too: another server, which might have old values, is never asked for them.

    `positions` has, for each shard, the positions of its keys in the call, in ascending order.

    Examples
    --------
    >>> sharding = Sharding.of([b"dog", b"cat", b"hen"], 2)
    >>> sharding.positions
    [[1], [0, 2]]
    >>> sharding.split(["a", "b", "c"])
    [['b'], ['a', 'c']]
    >>> sharding.join([[1], [0, 2]])
    [0, 1, 2]
    """

    positions: Sequence[Sequence[int]]

    @staticmethod
    def of(keys: Sequence[bytes], shards: int) -> Sharding:
        """Return the keys by their shards; they are given in the form that `shard_of` takes."""
        if shards == 1:
            return Sharding([range(len(keys))])
        positions: list[list[int]] = [[] for _ in range(shards)]
        for position, shard in enumerate(shards_of(keys, shards)):
            positions[shard].append(position)
        return Sharding(positions)

    def split(self, column: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the items for each shard of `column`, which has an item for each key."""
        if len(self.positions) == 1:
            return [column]
        return [[column[position] for position in own] for own in self.positions]

    def join(self, by_shard: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the items of all shards in the order of the keys."""
        if len(self.positions) == 1:
            return list(by_shard[0])
        column: list[Any] = [None] * sum(map(len, self.positions))
        for positions, items in zip(self.positions, by_shard, strict=True):
            for position, item in zip(positions, items, strict=True):
                column[position] = item
        return column


def least_control(found: Sequence[bytes | None], state: str) -> bytes | None:
    """Return the record that all shards have reached; None for a state that has not begun.

    Raises CorruptStateError if a shard has lost its record.
    """
    if found[0] is None:
        return None
    present = [record for record in found if record is not None]
    if len(present) < len(found):
        lost = [str(shard) for shard, record in enumerate(found) if record is None]
        raise CorruptStateError(
            f"the control record of {state}",
            f"of its {len(found)} shards these have none: {', '.join(lost)}; they lost what they "
            "held",
            _RESTORE,
        )
    return present[0] if len(set(present)) == 1 else min(present, key=_progress)


def may_spread(
    found: Sequence[bytes | None], new: bytes, expected: bytes | None, state: str
) -> bool:
    """Return whether `new` may replace the records of all shards, the least being `expected`.

    A shard that is ahead of `new` has begun a later attempt, which must not be undone. The caller
    writes shard 0 last, so that a partly begun state counts as not begun.

    Raises CorruptStateError if a former state has left records of another log, if a shard lost its
    record, or if a shard that is ahead has begun the same batch by another plan than `expected`.
    """
    if least_control(found, state) != expected:
        return False
    present = {record for record in found if record is not None}
    if not present <= {new, expected}:
        own = ControlRecord.decode(new)
        others = [ControlRecord.decode(record) for record in present]
        strangers = [other for other in others if other.log_id != own.log_id]
        before = None if expected is None else ControlRecord.decode(expected).plan
        for other in others:
            if other.token.txid == own.token.txid and other.plan not in (None, own.plan, before):
                raise CorruptStateError(
                    f"the control record of {state}",
                    f"some of its shards have begun batch {own.token.txid} with tuples that this "
                    "checkpoint does not know, and others have lost their begin",
                    _RESTORE,
                )
        if expected is None and not all(other.is_unused for other in strangers):
            raise CorruptStateError(
                f"the control record of {state}",
                "its first shard has none, and others belong to another checkpoint; the store was "
                "emptied only partly",
                "Empty it as a whole, give this state another prefix, or restore the store.",
            )
        return not any(_progress(record) > _progress(new) for record in present - {new})
    return True


def spread(
    found: Sequence[bytes | None],
    new: bytes,
    expected: bytes | None,
    state: str,
    put: Callable[[Sequence[int]], bool],
) -> bool:
    """Put `new` on all shards, which hold `found`, if :func:`may_spread` allows it.

    `put` replaces the records of some shards, and returns whether all of them were replaced.
    """
    if not may_spread(found, new, expected, state):
        return False
    others = [shard for shard, record in enumerate(found) if shard and record != new]
    # Shard 0 says that the state exists, so it comes last.
    first = [] if found[0] == new else [0]
    return all(put(shards) for shards in (others, first) if shards)


def _progress(record: bytes) -> tuple[Token, int, bool]:
    read = ControlRecord.decode(record)
    return read.token, read.committed, read.ready
