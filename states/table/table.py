"""The one interface between a map state and its store, and what a layer is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trident.states.asking import Wait
from trident.states.backing_map import IBackingMap
from trident.states.control import ControlRecord


@dataclass
class Counts:
    """How often a state has called its store, and with how many keys, since it was made.

    Parameters
    ----------
    gets, puts : int
        Calls that read and that wrote.
    keys_read, keys_written : int
        Keys in them.
    """

    gets: int = 0
    puts: int = 0
    keys_read: int = 0
    keys_written: int = 0


class Table(ABC):
    """The entries of one state, read and written by one attempt of a batch after the other.

    Keys are encoded; a write has no key twice. The entries of the uppermost table are value
    objects, or columns of them; below the serializer they are bytes.
    """

    where: str
    """How errors name the store."""
    refuses: bool = False
    """Whether :meth:`write` may refuse single entries, which are then to be read and computed
    again."""
    removes: bool = False
    adds: bool = False
    """Whether there is :meth:`remove`, and :meth:`add`."""
    sweeps: bool = False
    """Whether there is :meth:`remove` at least for what has expired."""
    lists: bool = False
    has_pages: bool = False
    """Whether there is :meth:`entries`, and :meth:`pages`."""

    @abstractmethod
    def begin(self, record: ControlRecord) -> None:
        """Begin the attempt of `record`, which does everything that follows."""

    @abstractmethod
    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        """Ask for the entries of `keys`, None for each absent one; return what waits for them."""

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self.ask(keys)()

    @abstractmethod
    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        """Store `entries`; return the keys that were refused; raises where overtaken, or lost."""

    def remove(self, keys: Sequence[Any]) -> None:
        """Remove entries for good; raises as :meth:`write` does."""
        raise NotImplementedError

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        """Have the store add `amounts` to the values of `keys`; raises as :meth:`write` does."""
        raise NotImplementedError

    @abstractmethod
    def entries(self) -> Sequence[tuple[Any, Any]]:
        """Return all keys and entries; only for stores that can list them."""

    @abstractmethod
    def pages(self, part: Any = None) -> Iterator[Sequence[tuple[Any, Any]]]:
        """Yield the same some at a time, or what is in a part; a key may come twice."""


class Layer(Table):
    """A table over another one: hands every call on, subclasses change the ones they are for."""

    def __init__(self, below: Table) -> None:
        self._below = below
        self.where = below.where
        self.refuses = below.refuses
        self.removes = below.removes
        self.sweeps = below.sweeps
        self.adds = below.adds
        self.lists = below.lists
        self.has_pages = below.has_pages

    def begin(self, record: ControlRecord) -> None:
        self._below.begin(record)

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        return self._below.ask(keys)

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        return self._below.write(keys, entries)

    def remove(self, keys: Sequence[Any]) -> None:
        self._below.remove(keys)

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._below.add(keys, amounts)

    def entries(self) -> Sequence[tuple[Any, Any]]:
        return self._below.entries()

    def pages(self, part: Any = None) -> Iterator[Sequence[tuple[Any, Any]]]:
        return self._below.pages(part)


class LayeredMap(ABC):
    """A backing map, and a layer through which the states over it read and write their entries.

    It is no map: only a state takes it. Control record and snapshots know of no layers.

    Parameters
    ----------
    inner : IBackingMap or LayeredMap
        The map below.
    """

    for_readers = True
    """Whether readers outside the batch go through it too."""

    def __init__(self, inner: IBackingMap | LayeredMap) -> None:
        self.inner = inner

    @abstractmethod
    def over(self, below: Table) -> Table:
        """Return the layer over `below`."""
