"""The library's classes with one rule of the protocol taken out of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.states.abilities import EntryMap, FencedMap, VersionedMap
from trident.states import (
    CachedMap,
    Control,
    ControlRecord,
    OpaqueMap,
    OpaqueValue,
    read_committed,
)
from trident.states.control import Check
from trident.states.cut import Cut
from trident.states.kinds.opaque import OpaqueEntries, OpaqueKind
from trident.states.table.cache import CachedTable
from trident.states.table.table import Table


class UnfencedMap(FencedMap):
    """Writes whatever the control record says."""

    def multiPutFenced(self, keys: Sequence[bytes], values: Sequence[bytes], fence: bytes) -> bool:
        self.multiPut(keys, values)
        return True


class UnconditionalEntryMap(EntryMap):
    """Writes whatever the entry has become."""

    def multiPutVersioned(
        self, keys: Sequence[bytes], values: Sequence[bytes], versions: Sequence[int]
    ) -> list[bool]:
        self.multiPut(keys, values)
        return [True] * len(keys)


class LastWriteMap(VersionedMap):
    """Shows the last write, not the highest version."""

    def multiPutAt(self, keys: Sequence[bytes], values: Sequence[bytes], version: int) -> None:
        self.multiPut(keys, values)


class KindWithoutAttempts(OpaqueKind):
    """What another txid wrote counts, whichever attempt it was."""

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        return super().read([_first_attempt(entry) for entry in entries], cut._replace(retried={}))


class MapWithoutAttempts(OpaqueMap):
    kept_as = KindWithoutAttempts()


class KindWithoutPrev(OpaqueKind):
    """Keeps as prev what an entry held, not what was committed."""

    def read(self, entries: Sequence[Any], cut: Cut) -> list[Any]:
        self.held = [entry and entry.curr for entry in entries]
        return super().read(entries, cut)

    def write(
        self, values: Sequence[Any], befores: Sequence[Any], record: ControlRecord
    ) -> OpaqueEntries:
        held = self.held if len(self.held) == len(values) else befores
        return super().write(values, held, record)


class MapWithoutPrev(OpaqueMap):
    kept_as = KindWithoutPrev()


class UncomparedControl(Control):
    """Begins over whatever is there."""

    def begin(self, record: ControlRecord, check: Check | None = None) -> None:
        self._incarnation = self._backing.incarnation()
        self._backing.putControl(record.encode(), self._backing.getControl())


class UnreadyControl(Control):
    """Is always ready."""

    def ready(self, record: ControlRecord) -> ControlRecord:
        self._backing.putControl(record.confirmed().encode(), self._backing.getControl())
        self._backing.flush()
        return record.confirmed()


class CarelessControl(Control):
    """Announces over whatever is there."""

    def announce(self, record: ControlRecord) -> bool:
        return self._backing.putControl(record.announced().encode(), self._backing.getControl())


class CacheFirstTable(CachedTable):
    """Caches, then writes, and keeps what could not be written."""

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._cache._keep(keys, entries)
        return self._below.write(keys, entries)


class CacheFirst(CachedMap):
    def over(self, below: Table) -> CacheFirstTable:
        return CacheFirstTable(below, self)


def each_by_itself(states: Sequence[tuple[str, Any]], query: Callable[[list[Any]], Any]) -> Any:
    """Read every state as of a batch of its own."""
    groups = [(f"{group} {number}", state) for number, (group, state) in enumerate(states)]
    return read_committed(groups, query)


def _first_attempt(entry: OpaqueValue | None) -> OpaqueValue | None:
    return entry and entry._replace(attempt=0)
