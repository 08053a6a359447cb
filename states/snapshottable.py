"""A map that also holds a single value, and may list what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from trident.states.backing_map import IBackingMap
from trident.states.committed import CommittedReads
from trident.states.errors import StateError
from trident.states.keys import decode_key, encode_key
from trident.states.map_state import (
    ITupleCollection,
    Key,
    MapState,
    RemovableMapState,
    Snapshottable,
)
from trident.states.resolution import Cut
from trident.states.state import Batch
from trident.states.stored_map import StoredMap
from trident.states.updaters import Combiner, ValueUpdater
from trident.states.values import StateType
from trident.states.views import CommittedSnapshottable, CommittedTuples

GLOBAL_KEY = ("$GLOBAL$",)


class SnapshottableMap(CommittedReads, MapState, RemovableMapState, Snapshottable):
    """A map state that keeps a single value too, under one key of its own.

    Parameters
    ----------
    inner : StoredMap
        The map.
    key : sequence
        Where the single value is kept; no other key may equal it.

    Examples
    --------
    >>> from trident.states import MemoryMap, OpaqueMap
    >>> total = SnapshottableMap(OpaqueMap(MemoryMap("total")))
    >>> total.beginCommit(1)
    >>> total.set(42)
    >>> total.commit(1)
    >>> total.get()
    42
    """

    def __init__(self, inner: StoredMap, key: Key = GLOBAL_KEY) -> None:
        self.inner = inner
        self.key = key
        self.control = inner.control
        self.snapshots = inner.snapshots
        self.removes = inner.removes

    @property
    def kind(self) -> StateType:  # type: ignore[override]
        """How values are kept."""
        return self.inner.kind

    @property
    def backing(self) -> IBackingMap:
        """The store."""
        return self.inner.backing

    def check_single(self) -> None:
        """Raise where entries are in the store, and the single value is not among them.

        Asked once, where Storm's state is taken over: it would be counted from nothing.
        """
        found = self.inner.backing.occupant()
        if found is None or self.inner.coded_store.multiGet([encode_key(self.key)])[0] is not None:
            return
        raise StateError(
            f"state {self.control.place}: an aggregate without groups goes on from the entry "
            f"{self.key[0]!r}, which is not there, but {found} is. Give the key that Storm's "
            "globalKey named: snapshot_key="
        )

    def get(self) -> Any:
        [value] = self.inner.multiGet([self.key])
        return value

    def update(self, updater: ValueUpdater) -> Any:
        [value] = self.inner.multiUpdate([self.key], [updater])
        return value

    def set(self, value: Any) -> None:
        self.inner.multiPut([self.key], [value])

    def beginCommit(self, batch: Batch) -> None:
        self.inner.beginCommit(batch)

    def commit(self, batch: Batch) -> None:
        self.inner.commit(batch)

    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        return self.inner.multiGet(keys)

    def multiUpdate(self, keys: Iterable[Key], updaters: Iterable[ValueUpdater]) -> list[Any]:
        return self.inner.multiUpdate(keys, updaters)

    def multiPut(self, keys: Iterable[Key], values: Iterable[Any]) -> None:
        self.inner.multiPut(keys, values)

    def multiRemove(self, keys: Iterable[Key]) -> None:
        self.inner.multiRemove(keys)

    def multiCombine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        return self.inner.multiCombine(keys, partials, combiner)

    def multiFold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        self.inner.multiFold(keys, partials, combiner)

    def committed(self, cut: Cut) -> CommittedSnapshottable:
        """Return a view as of `cut`; :func:`~trident.states.read_committed` makes the cut."""
        return CommittedSnapshottable(self.inner, cut, self.key)

    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which everything that readers read is of one moment."""
        return self.inner.snapshot()

    def close(self) -> None:
        self.inner.close()


class TupleCollectionMap(SnapshottableMap, ITupleCollection):
    """The same over a store that can list its entries."""

    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        for key, value in self.inner.entries():
            if value is not None:
                yield *decode_key(key), value

    def committed(self, cut: Cut) -> CommittedTuples:
        return CommittedTuples(self.inner, cut, self.key)
