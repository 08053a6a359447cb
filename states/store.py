"""What a factory needs of a store: how it is configured, and how its map is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from trident.states.backing_map import IBackingMap


class Store(Protocol):
    """A backend's configuration: frozen, picklable, and able to open its map.

    Attributes
    ----------
    hosted : str
        Where updates run: ``"executor"`` in tasks, ``"driver"`` all in the driver's process.
    identity : tuple of str
        (store, database, prefix); two states of one identity would overwrite each other.
    map_type : type, optional
        The class of the map that it opens: what the map can't do is then an error where it is
        asked for, not when it is first opened.
    max_keys : int, optional
        How many keys it keeps before it forgets others; 0, or left out, for all.
    shards : int or None, optional
        How many shards it is divided into, see `StateFactory.shards`; None for none.
    snapshot_key : sequence, optional
        Where the single value of an ungrouped aggregate is kept, if not where Storm keeps it by
        default.
    check_place : callable, optional
        Raises UsageError where the state can't be had, as far as is known without connecting.
        Called on the driver, once a start, before anything is opened.
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

    @property
    def map_type(self) -> type[IBackingMap] | None:
        """The class of the map, where `make` is one."""
        kind = self.make
        return kind if isinstance(kind, type) and issubclass(kind, IBackingMap) else None

    def named(self, prefix: str) -> OpenedStore:
        """Return the store itself: `make` takes no prefix."""
        return self

    def open(self) -> IBackingMap:
        """Make the map."""
        return self.make()
