"""The configuration of a store, from which a factory opens maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

from trident.states.backing_map import IBackingMap
from trident.states.map_state import GLOBAL_KEY, Key


class Store(ABC):
    """A backend's configuration: where a state is, and how its map is opened.

    Derive a frozen dataclass from it. It must pickle: a state that is hosted by executors is opened
    in each task. `identity`, `named` and `open` have to be written. Each other member has a
    default; an attribute of the class, without an annotation, or a property replaces it.

    Examples
    --------
    >>> from trident.states import MemoryMap
    >>> @dataclass(frozen=True)
    ... class Drawer(Store):
    ...     name: str
    ...     prefix: str | None = None
    ...     hosted = "driver"
    ...     @property
    ...     def identity(self):
    ...         return "drawer", self.name, self.prefix or "state"
    ...     def named(self, prefix):
    ...         return self if self.prefix is not None else Drawer(self.name, prefix)
    ...     def open(self):
    ...         return MemoryMap(self.name, prefix=self.prefix or "state")
    >>> drawer = Drawer("desk").named("words")
    >>> drawer.identity, drawer.hosted, drawer.shards
    (('drawer', 'desk', 'words'), 'driver', None)
    """

    hosted: Literal["driver", "executor"] = "executor"
    """Which process of Spark's updates the state; see `StateFactory.hosted`."""

    map_type: type[IBackingMap] | None = None
    """The class of the map that :meth:`open` returns; None where that is not known before.

    Where it is known, what the map can't do is an error of the call that needs it.
    """

    max_keys: int = 0
    """How many keys the store keeps before it forgets others; 0 for all."""

    shards: int | None = None
    """How many shards the store is divided into; see `StateFactory.shards`."""

    snapshot_key: Key = GLOBAL_KEY
    """Where the single value of an aggregate without groups is kept."""

    @property
    @abstractmethod
    def identity(self) -> tuple[str, str, str]:
        """(store, database, prefix): two states of one identity would overwrite each other."""

    @abstractmethod
    def named(self, prefix: str) -> Self:
        """Return the store with `prefix`, where it was given none; else the store itself."""

    @abstractmethod
    def open(self) -> IBackingMap:
        """Return the map, in the process that calls; it may connect when it is first used."""

    def check_place(self) -> None:  # noqa: B027 - most stores can't tell
        """Raise UsageError where the state can't be had, as far as is known without connecting.

        Called on the driver, once a start, before anything is opened.
        """


def completed(store: Store) -> Store:
    """Return `store`, with the defaults of what it lacks where it doesn't derive from Store.

    Before there was a base class, any object with these members was a store.
    """
    return store if isinstance(store, Store) else _Completed(store)


class _Completed(Store):
    def __init__(self, store: Any) -> None:
        self._store = store
        members = ("hosted", "map_type", "max_keys", "shards", "snapshot_key", "check_place")
        vars(self).update({name: getattr(store, name) for name in members if hasattr(store, name)})

    @property
    def identity(self) -> tuple[str, str, str]:
        found: tuple[str, str, str] = self._store.identity
        return found

    def named(self, prefix: str) -> _Completed:
        return _Completed(self._store.named(prefix))

    def open(self) -> IBackingMap:
        opened: IBackingMap = self._store.open()
        return opened


@dataclass(frozen=True)
class OpenedStore(Store):
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

    @property
    def map_type(self) -> type[IBackingMap] | None:  # type: ignore[override]
        """The class of the map, where `make` is one."""
        kind = self.make
        return kind if isinstance(kind, type) and issubclass(kind, IBackingMap) else None

    def named(self, prefix: str) -> Self:
        """Return the store itself: `make` takes no prefix."""
        return self

    def open(self) -> IBackingMap:
        """Make the map."""
        return self.make()
