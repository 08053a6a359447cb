"""What every map state offers: a map, a single value beside it, and all of it as tuples."""

from __future__ import annotations

from abc import ABCMeta
from typing import Any

from trident.states.map_state import (
    ITupleCollection,
    Key,
    MapState,
    RemovableMapState,
    Snapshottable,
)

GLOBAL_KEY = ("$GLOBAL$",)


class _MapStates(ABCMeta):
    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is SnapshottableMap:
            return _keyed(*arguments, **options)
        return super().__call__(*arguments, **options)


class SnapshottableMap(
    MapState, RemovableMapState, Snapshottable, ITupleCollection, metaclass=_MapStates
):
    """A map state that keeps a single value too, under one key of its own.

    Every map state is one. Called with a map state and a key, it has that state keep its single
    value there, and returns the state.

    Attributes
    ----------
    key : sequence
        Where the single value is kept; no other key may equal it.

    Examples
    --------
    >>> from trident.states import MemoryMap, OpaqueMap
    >>> total = SnapshottableMap(OpaqueMap(MemoryMap("total")), ("total",))
    >>> total.beginCommit(1)
    >>> total.set(42)
    >>> total.commit(1)
    >>> total.get(), total.multiGet([("total",)])
    (42, [42])
    """

    key: Key = GLOBAL_KEY


TupleCollectionMap = SnapshottableMap


def _keyed(inner: SnapshottableMap, key: Key = GLOBAL_KEY) -> SnapshottableMap:
    inner.key = key
    return inner
