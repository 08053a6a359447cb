"""The configuration of a store, from which a factory opens maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

from trident.states.backing_map import IBackingMap
from trident.states.errors import UsageError
from trident.states.finding import Finding
from trident.states.map_state import GLOBAL_KEY, Key


@dataclass(frozen=True)
class RoundTrips:
    """The calls of a store in a batch without trouble; one to several nodes at once counts once.

    Each pair is the least and the most: for each task that updates the state with a thousand keys,
    and for the control record, on the driver.

    Examples
    --------
    >>> str(RoundTrips((3, 4), (14, 14))), str(RoundTrips((0, 0), (0, 0)))
    ('3 or 4 for each task and 14 for the batch', 'none')
    """

    a_task: tuple[int, int]
    a_batch: tuple[int, int]

    @property
    def asks(self) -> bool:
        """Whether there are any."""
        return any((*self.a_task, *self.a_batch))

    def __str__(self) -> str:
        if not self.asks:
            return "none"
        return f"{_range(*self.a_task)} for each task and {_range(*self.a_batch)} for the batch"


def _range(least: int, most: int) -> str:
    if least == most:
        return str(least)
    return f"{least} {'or' if most == least + 1 else 'to'} {most}"


class Store(ABC):
    """A backend's configuration: the place of a state, and how its map is opened.

    Derive a frozen dataclass from it, with a field `prefix` if several states may share a place.
    It must pickle: a state that is hosted by executors is opened in each task. `identity` and
    `open` have to be written. Each other member has a default; an attribute of the class, without
    an annotation, or a property replaces it.

    Examples
    --------
    >>> from trident.backends.memory import MemoryMap
    >>> @dataclass(frozen=True)
    ... class Drawer(Store):
    ...     name: str
    ...     prefix: str | None = None
    ...     hosted = "driver"
    ...     @property
    ...     def identity(self):
    ...         return "drawer", self.name, self.own_name
    ...     def open(self):
    ...         return MemoryMap(self.name, prefix=self.own_name)
    >>> drawer = Drawer("desk").named("words")
    >>> drawer.identity, drawer.hosted, drawer.shards
    (('drawer', 'desk', 'words'), 'driver', None)
    """

    hosted: Literal["driver", "executor"] = "executor"
    """Which process of Spark's updates the state; see `StateFactory.hosted`."""

    map_type: type[IBackingMap] | None = None
    """The class of the map that :meth:`open` returns; None if it is unknown before.

    If it is known, a call that needs an ability which the map lacks is an error at once.
    """

    max_keys: int = 0
    """How many keys the store keeps before it drops others; 0 for all."""

    shards: int | None = None
    """How many shards the store is divided into; see `StateFactory.shards`."""

    snapshot_key: Key = GLOBAL_KEY
    """The key of the single value of an aggregate without groups."""

    calls: RoundTrips | None = None
    """How often a batch calls the store, which ``explain()`` shows; None if unknown."""

    prefix: str | None = None
    """The name that tells the state from others in its place, if one was given."""

    @property
    @abstractmethod
    def identity(self) -> tuple[str, str, str]:
        """(store, database, prefix): two states of one identity would overwrite each other."""

    @property
    def own_name(self) -> str:
        """The state's name in its place: the prefix, or ``"state"`` without one."""
        return "state" if self.prefix is None else self.prefix

    def named(self, prefix: str) -> Self:
        """Return the store with `prefix` if it has none; else the store itself."""
        return self if self.prefix is not None else self.at(prefix)

    def at(self, prefix: str) -> Self:
        """Return the store with another prefix."""
        return cast(Self, replace(cast(Any, self), prefix=prefix))

    def keyed(self, types: Sequence[str | None]) -> Self:
        """Return the store for keys with fields of these types, in Spark's words; None for an
        unknown type. By default the types don't matter."""
        return self

    @abstractmethod
    def open(self) -> IBackingMap:
        """Return the map, in the process that calls; it may connect when it is first used."""

    def check_place(self) -> None:
        """Raise UsageError if it is known without connecting that the store can't have the state.

        Called on the driver, once at each start, before anything is opened.
        """

    def examine(self) -> Iterator[Finding]:
        """Yield whether the store answers, and which of its settings matter to a state.

        For ``python -m trident doctor``; writes nothing. By default only whether the store answers.

        Raises
        ------
        TridentError
            When the store doesn't answer.
        """
        opened = self.open()
        opened.getControl()
        yield Finding("ok", f"{opened.where or type(self).__name__} answers")
        opened.close()


@dataclass(frozen=True)
class OpenedStore(Store):
    """The store of a user's own backing map, which each process makes; `name` tells it from
    others."""

    make: Callable[[], IBackingMap]
    hosted: Literal["driver", "executor"] = "executor"
    name: str | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """The callable, with the name or else its address: equal for one state only."""
        kind = self.make if hasattr(self.make, "__qualname__") else type(self.make)
        return f"{kind.__module__}.{kind.__qualname__}", self.name or f"{id(self.make):x}", ""

    @property
    def map_type(self) -> type[IBackingMap] | None:  # type: ignore[override]
        """The class of the map if `make` is a class."""
        kind = self.make
        return kind if isinstance(kind, type) and issubclass(kind, IBackingMap) else None

    def named(self, prefix: str) -> Self:
        """Return the store itself: `make` takes no prefix."""
        return self

    def at(self, prefix: str) -> Self:
        """Raise UsageError: `make` takes no prefix."""
        advice = "Keep the state in a store whose states have prefixes."
        raise UsageError("the map that your own function makes has no prefix", "", (), advice)

    def open(self) -> IBackingMap:
        """Make the map."""
        return self.make()
