"""The factory of map states, and the only place that stacks their layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, Self

from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.cached import CachedMap
from trident.states.compared_cache import ConditionalCachedMap
from trident.states.counted import CountedMap
from trident.states.map_state import Key
from trident.states.microbatch import MicroBatchMap
from trident.states.nontransactional import NonTransactionalMap
from trident.states.opaque import OpaqueMap
from trident.states.serializers import JSONSerializer, Serializer
from trident.states.snapshottable import GLOBAL_KEY, SnapshottableMap, TupleCollectionMap
from trident.states.state import StateFactory
from trident.states.stored_map import StoredMap
from trident.states.transactional import TransactionalMap
from trident.states.values import StateType

_MAPS: Mapping[StateType, type[StoredMap]] = {
    kind.rules.kind: kind for kind in (OpaqueMap, TransactionalMap, NonTransactionalMap)
}


class Store(Protocol):
    """A backend's configuration: frozen, picklable, and able to open its map.

    Attributes
    ----------
    hosted : str
        Where updates run: ``"executor"`` in tasks, ``"driver"`` all in the driver's process.
    identity : tuple of str
        (store, database, prefix); two states of one identity would overwrite each other.
    """

    @property
    def hosted(self) -> Literal["driver", "executor"]: ...

    @property
    def identity(self) -> tuple[str, str, str]: ...

    def named(self, prefix: str) -> Self:
        """Return the store with `prefix` filled in, where it was left open."""

    def open(self) -> IBackingMap:
        """Connect, in the process that calls."""


@dataclass(frozen=True)
class OpenedStore:
    """The store of somebody's own backing map.

    Parameters
    ----------
    make : callable
        Makes the map, in the process that uses it.
    hosted : str
        Where updates run.
    name : str or None
        Which of several stores that `make` could make this is.
    """

    make: Callable[[], IBackingMap]
    hosted: Literal["driver", "executor"] = "executor"
    name: str | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells two states apart: the name, else the callable itself."""
        kind = self.make if hasattr(self.make, "__qualname__") else type(self.make)
        return f"{kind.__module__}.{kind.__qualname__}", self.name or f"{id(self.make):x}", ""

    def named(self, prefix: str) -> OpenedStore:
        """Return the store itself: `make` takes no prefix."""
        return self

    def open(self) -> IBackingMap:
        """Make the map."""
        return self.make()


@dataclass(frozen=True)
class MapStateFactory(StateFactory):
    """Makes map states over a store: of one kind, with a serializer, limits and a cache.

    Pickles; tasks, the driver and readers make their own states from it.

    Parameters
    ----------
    store : Store
        Where entries are kept.
    kind : StateType
        How they are kept.
    serializer : Serializer
        Makes bytes of values, for stores that exchange bytes.
    cache_size : int
        How many entries to keep in memory, in each process that updates the state. Used where
        that is one process (``store.hosted == "driver"``), and where the store can make a write
        conditional on the very entry (Redis): elsewhere a partition may move to another process
        and back, and its entries here would be old. There it feeds combiners whose new values
        nobody takes, and no other updates.
    max_get, max_put : int
        How many keys to read and write at once; 0 leaves it to the store.
    snapshot_key : sequence
        Where the single value of an ungrouped aggregate is kept.

    Examples
    --------
    >>> from trident.states.memory import MemoryStore
    >>> factory = MapStateFactory(MemoryStore("words"), StateType.TRANSACTIONAL)
    >>> factory.makeState().kind
    <StateType.TRANSACTIONAL: 'transactional'>
    """

    store: Store
    kind: StateType = StateType.OPAQUE
    serializer: Serializer = field(default_factory=JSONSerializer)
    cache_size: int = 0
    max_get: int = 0
    max_put: int = 0
    snapshot_key: Key = GLOBAL_KEY

    @classmethod
    def over(cls, store: Any, kind: StateType, options: Mapping[str, Any]) -> MapStateFactory:
        """Return the factory of `kind` over a store, both made of one set of `options`.

        Parameters
        ----------
        store : dataclass
            The store's class: it takes the options that its fields are called, the factory takes
            the others.
        kind : StateType
            How entries are kept.
        options : mapping
            The parameters of both.
        """
        names = {each.name for each in fields(store)}
        own = {name: value for name, value in options.items() if name in names}
        others = {name: value for name, value in options.items() if name not in names}
        return cls(store(**own), kind, **others)

    @property
    def hosted(self) -> Literal["driver", "executor"]:
        """Where updates run."""
        return self.store.hosted

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells two states apart: (store, database, prefix)."""
        return self.store.identity

    @property
    def buckets(self) -> int | None:
        """Of how many parts the store is made, ``crc32(encoded key)`` modulo which tells a key's.

        None where that is of no concern; the shuffle before an update keeps each part in one task.
        """
        return getattr(self.store, "buckets", None)

    def named(self, name: str) -> Self:
        """Return the factory of the state called `name`: its default prefix is filled in."""
        store = self.store.named(name)
        return self if store is self.store else replace(self, store=store)

    def makeState(
        self,
        conf: Mapping[str, Any] | None = None,
        metrics: Any = None,
        partitionIndex: int = 0,
        numPartitions: int = 1,
    ) -> SnapshottableMap:
        """Open the store and return the state, for the calling process."""
        inner = self.makeMap()
        lists = Ability.LIST in abilities(inner.backing)
        return (TupleCollectionMap if lists else SnapshottableMap)(inner, self.snapshot_key)

    def makeMap(self) -> StoredMap:
        """Open the store and return the bare map state over its layers."""
        backing = self.store.open()
        if self.max_get or self.max_put:
            backing = MicroBatchMap(backing, self.max_get, self.max_put)
        return _MAPS[self.kind](CountedMap(self._cached(backing)), self.serializer)

    def _cached(self, backing: IBackingMap) -> IBackingMap:
        if self.cache_size and self.hosted == "driver":
            return CachedMap(backing, self.cache_size)
        if self.cache_size and backing.versions_are_values:
            place = (self.identity, self.cache_size)
            return ConditionalCachedMap(backing, self.cache_size, place)
        return backing
