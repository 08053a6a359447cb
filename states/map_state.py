"""The interfaces of states for updaters and queries: maps, single values, collections of tuples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from trident.states.asking import Askable, Wait
from trident.states.keys import decode_key
from trident.states.state import State
from trident.states.updaters import Combiner, CombinerValueUpdater, ValueUpdater

Key = Sequence[Any]
"""A key as users write it: the sequence of its fields."""

GLOBAL_KEY: Key = ("$GLOBAL$",)
"""The key of a map state's single value, unless the store or the user gives another one."""


class ReadOnlyMapState(Askable, State):
    """A map that can be queried."""

    @abstractmethod
    def multiGet(self, keys: Iterable[Key]) -> list[Any]:
        """Return the values of `keys`, in their order; None for absent ones."""

    def ask(self, keys: Iterable[Key]) -> Wait[list[Any]]:
        """Ask for what :meth:`multiGet` returns, and return a function that waits for it.

        By default the state is asked when that function is called.
        """
        return partial(self.multiGet, keys)


class MapState(ReadOnlyMapState):
    """A map that batches update. A value of None is absent; storing it removes the key."""

    @abstractmethod
    def multiUpdate(self, keys: Iterable[Key], updaters: Iterable[ValueUpdater]) -> list[Any]:
        """Update each key by its updater and return the new values.

        A key that occurs several times is updated several times, in order.
        """

    @abstractmethod
    def multiPut(self, keys: Iterable[Key], values: Iterable[Any]) -> None:
        """Store `values` under `keys`; of several values for one key, the last."""

    def multiCombine(
        self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner
    ) -> list[Any]:
        """Combine a partial result into each key, given *encoded*; return the new values.

        The bulk form of :meth:`multiUpdate` with a
        :class:`~trident.states.updaters.CombinerValueUpdater`.
        """
        return self.multiUpdate(
            map(decode_key, keys), [CombinerValueUpdater(combiner, partial) for partial in partials]
        )

    def multiFold(self, keys: Sequence[bytes], partials: Sequence[Any], combiner: Combiner) -> None:
        """Do as :meth:`multiCombine` for a caller that doesn't need the new values."""
        self.multiCombine(keys, partials, combiner)


class RemovableMapState(State):
    """A map whose keys can be removed."""

    @abstractmethod
    def multiRemove(self, keys: Iterable[Key]) -> None:
        """Remove `keys`; those that are absent stay so."""


class ReadOnlySnapshottable(State):
    """A single value that can be queried."""

    @abstractmethod
    def get(self) -> Any:
        """Return the value; None if there is none."""


class Snapshottable(ReadOnlySnapshottable):
    """A single value that batches update."""

    @abstractmethod
    def update(self, updater: ValueUpdater) -> Any:
        """Update the value and return the new one."""

    @abstractmethod
    def set(self, value: Any) -> None:
        """Replace the value; None removes it."""


class ITupleCollection(State):
    """A state that can list its tuples."""

    lists: bool = True
    """Whether it really can: a map state can't if its store can't list its entries."""

    @abstractmethod
    def getTuples(self) -> Iterator[tuple[Any, ...]]:
        """Return an iterator over ``(*key fields, value)`` of every key that has a value."""


class SnapshottableMap(MapState, RemovableMapState, Snapshottable, ITupleCollection):
    """A map state with a single value too, under a key of its own; every map state is one.

    Attributes
    ----------
    key : sequence
        The key of the single value; no other key may equal it.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> from trident.states import OpaqueMap
    >>> total = OpaqueMap(MemoryMap("total"), key=("total",))
    >>> total.beginCommit(1)
    >>> total.set(42)
    >>> total.commit(1)
    >>> total.get(), total.multiGet([("total",)])
    (42, [42])
    """

    key: Key

    def get(self) -> Any:
        """Return the single value; None if there is none."""
        [value] = self.multiGet([self.key])
        return value

    def update(self, updater: ValueUpdater) -> Any:
        """Update the single value and return the new one."""
        [value] = self.multiUpdate([self.key], [updater])
        return value

    def set(self, value: Any) -> None:
        """Replace the single value; None removes it."""
        self.multiPut([self.key], [value])


TupleCollectionMap = SnapshottableMap
