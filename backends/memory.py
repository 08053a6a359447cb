"""States in this process's memory: for tests, for trying things out, and for caches."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter
from threading import Lock
from typing import Any
from uuid import uuid4

from cachetools import LRUCache

from trident.backends.state_url import StateURL
from trident.backends.store_checks import check_store
from trident.states.backing_map import Codec, IBackingMap
from trident.states.kinds.opaque import OpaqueEntries
from trident.states.maps.factory import MapStateFactory, OpaqueMap
from trident.states.store import RoundTrips, Store
from trident.states.values import OpaqueValue

__all__ = ["LRUMemoryMapState", "MemoryMap"]

_Row = tuple[int, int, Any, Any]
_ABSENT: _Row = (0, 0, None, None)
_COLUMNS = tuple(map(itemgetter, range(4)))
_FEW = 100
_PAGE = 1000


@dataclass(eq=False)
class _Database:
    """The entries of a state: opaque ones as plain tuples in `rows`, others in `entries`.

    One of the two is always empty. Python's garbage collector does not track plain tuples of
    numbers and strings, but looks at named ones again and again.
    """

    entries: MutableMapping[bytes, Any]
    rows: dict[bytes, _Row] = field(default_factory=dict)
    control: bytes | None = None
    lock: Lock = field(default_factory=Lock)

    def get(self, keys: Sequence[bytes]) -> Sequence[Any]:
        if not self.rows:
            return list(map(self.entries.get, keys))
        rows = list(map(self.rows.get, keys, repeat(_ABSENT)))
        if 0 < len(rows) <= _FEW:
            return OpaqueEntries(*zip(*rows, strict=True))
        # For many rows, zip would make an iterator for each, which starts the garbage collector.
        return OpaqueEntries(*[list(map(column, rows)) for column in _COLUMNS])

    def put(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        if isinstance(values, OpaqueEntries) and not self.entries and type(self.entries) is dict:
            columns = values.txids, values.attempts, values.currs, values.prevs
            self.rows.update(zip(keys, zip(*columns, strict=True), strict=True))
            return
        if self.rows:
            self.entries.update(self.items())
            self.rows.clear()
        self.entries.update(zip(keys, values, strict=True))

    def items(self) -> list[tuple[bytes, Any]]:
        if not self.rows:
            return list(self.entries.items())
        return [(key, OpaqueValue(*row)) for key, row in self.rows.items()]


_DATABASES: dict[tuple[str, int, str], _Database] = {}
_DATABASES_LOCK = Lock()


class MemoryMap(IBackingMap):
    """Entries in a dict that all maps of one id in this process share.

    Any number of threads may use it. Values are shared, not copied: don't change what you read.
    Pickles as its id, so another process has entries of its own, none at first.

    Parameters
    ----------
    id : str
        Which entries.
    size : int
        How many keys to keep, those that were used last; 0 keeps all.
    prefix : str
        Tells several states of one id apart.
    """

    codec = Codec.VALUES
    lasts = False

    def __init__(self, id: str, size: int = 0, prefix: str = "") -> None:
        self.prefix = prefix
        self._place = id, size, prefix
        with _DATABASES_LOCK:
            self._database = _DATABASES.setdefault(
                self._place, _Database(LRUCache(size) if size else {})
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return MemoryMap, self._place

    def multiGet(self, keys: Sequence[bytes]) -> Sequence[Any]:
        with self._database.lock:
            return self._database.get(keys)

    def multiPut(self, keys: Sequence[bytes], values: Sequence[Any]) -> None:
        with self._database.lock:
            self._database.put(keys, values)

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[Any], fence: bytes) -> bool:
        with self._database.lock:
            if passed := self._database.control == fence:
                self._database.put(keys, values)
            return passed

    def multiRemoveFenced(self, keys: Sequence[bytes], fence: bytes) -> bool:
        with self._database.lock:
            if passed := self._database.control == fence:
                for key in keys:
                    self._database.entries.pop(key, None)
                    self._database.rows.pop(key, None)
            return passed

    def getControl(self) -> bytes | None:
        return self._database.control

    def putControl(self, new: bytes, expected: bytes | None) -> bool:
        with self._database.lock:
            if passed := self._database.control == expected:
                self._database.control = new
            return passed

    def entries(self) -> list[tuple[bytes, Any]]:
        with self._database.lock:
            return self._database.items()

    def pages(self) -> Iterator[list[tuple[bytes, Any]]]:
        with self._database.lock:
            keys = [*self._database.entries, *self._database.rows]
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            entries = zip(page, self.multiGet(page), strict=True)
            yield [(key, entry) for key, entry in entries if entry is not None]

    def occupant(self) -> str | None:
        with self._database.lock:
            keys = chain(self._database.entries, self._database.rows)
            return next((f"the entry {key!r}" for key in keys), None)

    def prefixes(self) -> list[str]:
        with _DATABASES_LOCK:
            databases = list(_DATABASES.items())
        return sorted(
            prefix
            for (id, _, prefix), database in databases
            if id == self._place[0] and database.control is not None
        )


@dataclass(frozen=True)
class MemoryStore(Store):
    """A memory state's place: an id in the calling process; `size` 0 keeps all keys."""

    id: str
    size: int = 0
    prefix: str | None = ""
    hosted = "driver"
    map_type = MemoryMap
    calls = RoundTrips((0, 0), (0, 0))

    def __post_init__(self) -> None:
        check_store(self, {f"size {self.size} is below 0; 0 keeps all keys": self.size < 0})

    @property
    def identity(self) -> tuple[str, str, str]:
        """What tells two states apart."""
        return "memory", self.id, self.prefix or ""

    @property
    def max_keys(self) -> int:  # type: ignore[override]
        """How many keys it keeps; 0 for all."""
        return self.size

    def open(self) -> MemoryMap:
        """Return the map, in the calling process."""
        return MemoryMap(self.id, self.size, self.prefix or "")


def from_url(url: StateURL) -> MapStateFactory:
    """Return the factory of ``memory:id``, or of ``memory:``, which has entries of its own.

    Its own option is ``size``: how many keys to keep, those that were used last.

    Examples
    --------
    >>> recent = from_url(StateURL.parse("memory:recent?size=1000"))
    >>> recent.named("clicks").identity
    ('memory', 'recent', 'clicks')
    """
    return url.read(size=int).factory(MemoryStore, id=url.local_path() or uuid4().hex)


class MemoryMapState(OpaqueMap):
    """A map, a single value and a collection of tuples, in memory of the driver's process.

    What it holds lives as long as the process. Made by its :class:`Factory`.

    Examples
    --------
    >>> counts = MemoryMapState.Factory().makeState()
    >>> counts.beginCommit(1)
    >>> counts.multiPut([("dog",), ("cat",)], [2, 1])
    >>> counts.commit(1)
    >>> sorted(counts.getTuples())
    [('cat', 1), ('dog', 2)]
    """

    @dataclass(frozen=True, init=False, repr=False)
    class Factory(MapStateFactory):
        """Makes the states of one id.

        Parameters
        ----------
        id : str or None
            Which entries; all factories of an id in a process share them. None: entries of its
            own.
        """

        def __init__(self, id: str | None = None) -> None:
            super().__init__(MemoryStore(id or uuid4().hex))


class LRUMemoryMapState(OpaqueMap):
    """The same, bounded: it *forgets* the keys used longest ago, and counts them from nothing.

    Right for answers about the present, wrong for totals.

    Examples
    --------
    >>> recent = LRUMemoryMapState.Factory(2).makeState()
    >>> recent.beginCommit(1)
    >>> recent.multiPut([("a",), ("b",), ("c",)], [1, 2, 3])
    >>> recent.commit(1)
    >>> recent.multiGet([("a",), ("b",), ("c",)])
    [None, 2, 3]
    """

    @dataclass(frozen=True, init=False, repr=False)
    class Factory(MapStateFactory):
        """Makes the states of one id.

        Parameters
        ----------
        maxSize : int
            How many keys to keep.
        id : str or None
            Which entries; None: entries of its own.
        """

        def __init__(self, maxSize: int, id: str | None = None) -> None:
            super().__init__(MemoryStore(id or uuid4().hex, maxSize))


MemoryMapState.Factory.makes = MemoryMapState
LRUMemoryMapState.Factory.makes = LRUMemoryMapState
