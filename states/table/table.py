"""The table, through which a map state reads and writes its store; layers over tables."""

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
    """How often a state has called its store since it was made, and with how many keys.

    Parameters
    ----------
    gets, puts : int
        The calls that read, and those that wrote.
    keys_read, keys_written : int
        The keys in these calls.
    """

    gets: int = 0
    puts: int = 0
    keys_read: int = 0
    keys_written: int = 0


class Table(ABC):
    """The entries of one state. One attempt after the other reads and writes them.

    Keys are encoded, and a write has no key twice. The entries of the uppermost table are value
    objects, or columns of them. Below the serializer they are bytes.
    """

    where: str
    """How errors name the store."""
    refuses: bool = False
    """Whether :meth:`write` may refuse single entries, which have to be computed again."""
    removes: bool = False
    """Whether :meth:`remove` works."""
    adds: bool = False
    """Whether :meth:`add` works."""
    sweeps: bool = False
    """Whether :meth:`remove` works at least for expired entries."""
    lists: bool = False
    """Whether :meth:`entries` works."""
    has_pages: bool = False
    """Whether :meth:`pages` works."""

    @abstractmethod
    def begin(self, record: ControlRecord) -> None:
        """Begin the attempt of `record`, to which all following calls belong."""

    @abstractmethod
    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        """Ask for the entries of `keys`, None for absent ones; return a function that waits."""

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        return self.ask(keys)()

    @abstractmethod
    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        """Store `entries`; return the keys that were refused.

        Raises StaleBatchError for an overtaken attempt, and StateUnavailableError if the store has
        lost the begin of this one. So do :meth:`remove` and :meth:`add`.
        """

    def remove(self, keys: Sequence[Any]) -> None:
        """Remove entries for good."""
        raise NotImplementedError

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        """Have the store add `amounts` to the values of `keys`."""
        raise NotImplementedError

    @abstractmethod
    def entries(self) -> Sequence[tuple[Any, Any]]:
        """Return all keys and entries."""

    @abstractmethod
    def pages(self, part: Any = None) -> Iterator[Sequence[tuple[Any, Any]]]:
        """Yield all keys and entries, or those of a part, page by page; a key may come twice."""


class Layer(Table):
    """A table over another one. It passes all calls on; a subclass changes some of them."""

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
        return self._listed(self._below.entries())

    def pages(self, part: Any = None) -> Iterator[Sequence[tuple[Any, Any]]]:
        return map(self._listed, self._below.pages(part))

    def _listed(self, found: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        """Return the keys and entries of this table for listed ones of the table below."""
        return found


class LayeredMap(ABC):
    """A backing map, with a layer through which the states over it read and write their entries.

    It is no map: only a state takes it. The control record and snapshots have no layers.

    Parameters
    ----------
    inner : IBackingMap or LayeredMap
        The map below.
    """

    for_readers = True
    """Whether readers outside the batch use the layer too."""

    def __init__(self, inner: IBackingMap | LayeredMap) -> None:
        self.inner = inner

    @abstractmethod
    def over(self, below: Table) -> Table:
        """Return the layer over `below`."""
