"""What a query is given instead of a state: the state as of one committed batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from trident.states.cut import Cut
from trident.states.keys import decode_key, encode_keys
from trident.states.map_state import (
    ITupleCollection,
    Key,
    ReadOnlyMapState,
    ReadOnlySnapshottable,
)
from trident.states.state import ReadOnlyState


class Readable(Protocol):
    """What :class:`CommittedMap` needs of a map state, without its pending updates."""

    def values_at(self, keys: Sequence[bytes], cut: Cut) -> list[Any]:
        """Return the values of encoded keys as of `cut`."""

    def entries_at(self, cut: Cut) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and values as of `cut`."""


class CommittedMap(ReadOnlyState, ReadOnlyMapState):
    """A map state as of one committed batch; good only inside the query it was given to.

    Parameters
    ----------
    source : Readable
        The map state.
    cut : Cut
        The moment.
    """

    def __init__(self, source: Readable, cut: Cut) -> None:
        self._source = source
        self._cut = cut

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        encoded = encode_keys(keys)
        return self._source.values_at(encoded, self._cut) if encoded else []

    def entries(self) -> list[tuple[bytes, Any]]:
        """Return all encoded keys and their values, of a store that can list them."""
        return self._source.entries_at(self._cut)


class CommittedSnapshottable(CommittedMap, ReadOnlySnapshottable):
    """The same for a state that also holds a single value, under `key`."""

    def __init__(self, source: Readable, cut: Cut, key: Key) -> None:
        super().__init__(source, cut)
        self._key = key

    def get(self) -> Any:
        [value] = self.multiGet([self._key])
        return value


class CommittedTuples(CommittedSnapshottable, ITupleCollection):
    """The same for a state that can also list what it holds."""

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        for key, value in self.entries():
            if value is not None:
                yield *decode_key(key), value
