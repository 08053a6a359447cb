"""From a store to the table of a state: one adapter for each way to keep late writes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trident.states.backing_map import Ability, IBackingMap, abilities, checked_answer, has_pages
from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError, StateError, StateUnavailableError
from trident.states.keys import encode_key
from trident.states.steps import Steps, entries_of
from trident.states.table.table import Table

_MAX_ATTEMPT = 2**12 - 1


class CheckedTable(Table):
    """Looks at the control record right before a write, for a store that has the two methods only.

    A write that is held up between the look and the store is not refused.

    Parameters
    ----------
    store : IBackingMap
        The store.
    """

    def __init__(self, store: IBackingMap) -> None:
        self.where = store.where
        self._store = store

    def begin(self, record: ControlRecord) -> None:
        self._record = record
        self._fence = record.encode()

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        return checked_answer(self._store, keys, self._store.multiGet(keys))

    def read_steps(self, keys: Sequence[Any]) -> Steps[Sequence[Any]]:
        return checked_answer(self._store, keys, (yield from entries_of(self._store, keys)))

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._check()
        self._store.multiPut(keys, entries)
        return ()

    def entries(self) -> Sequence[tuple[Any, Any]]:
        if Ability.LIST not in abilities(self._store):
            raise StateError(
                f"{self.where or 'the store of this state'} can't list its entries; look up keys, "
                "or keep the state in a store that lists: in memory, in SQLite, or in one Redis "
                "server under a prefix"
            )
        return self._store.entries()

    def pages(self) -> Iterator[Sequence[tuple[Any, Any]]]:
        if not has_pages(self._store):
            raise StateError(
                f"{self.where or 'the store of this state'} can't list its entries, not even some "
                "at a time; look up keys"
            )
        return self._store.pages()

    def _check(self) -> None:
        """Raise where the control record is not the one that this attempt began with."""
        if self._store.getControl() != self._fence:
            raise self._refused()

    def _refused(self) -> StaleBatchError | StateUnavailableError:
        """Return what a changed record means: a later attempt began, or the store lost it."""
        data, own = self._store.getControl(), self._record
        found = None if data is None else ControlRecord.decode(data)
        if found is None or (found.log_id == own.log_id and found.token < own.token):
            return StateUnavailableError(
                self.where or "the store",
                f"it no longer knows that batch {own.token.txid} began, so it lost writes",
                "The batch is retried. Look at the store's log: did it start from old data, or did "
                "another server take over?",
            )
        return StaleBatchError(own.token, found.token)


class FencedTable(CheckedTable):
    """The store compares the control record and writes in one atomic step.

    Parameters
    ----------
    store : IBackingMap
        The store.
    removes : bool
        Whether it also removes so.
    """

    def __init__(self, store: IBackingMap, removes: bool) -> None:
        super().__init__(store)
        self.removes = removes

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        if not self._store.multiPutFenced(keys, entries, self._fence):
            raise self._refused()
        return ()

    def remove(self, keys: Sequence[Any]) -> None:
        if not self._store.multiRemoveFenced(keys, self._fence):
            raise self._refused()


def _encoded(key: Any) -> bytes:
    """A key as it tells itself from others, also where the store takes the fields, which may be
    lists."""
    return key if isinstance(key, bytes) else encode_key(key)


class ConditionalTable(CheckedTable):
    """The store writes an entry only if it still is as it was read."""

    refuses = True

    def begin(self, record: ControlRecord) -> None:
        super().begin(record)
        self._versions: dict[Any, Any] = {}

    def read(self, keys: Sequence[Any]) -> Sequence[Any]:
        found = self._store.multiGetVersioned(keys)
        versions = [version for _, version in found]
        self._versions.update(zip(map(_encoded, keys), versions, strict=True))
        return [entry for entry, _ in found]

    def read_steps(self, keys: Sequence[Any]) -> Steps[Sequence[Any]]:
        yield from ()
        return self.read(keys)  # not by the other table's way, which reads no versions

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._check()
        versions = [self._versions[_encoded(key)] for key in keys]
        stored = self._store.multiPutVersioned(keys, entries, versions)
        return [key for key, done in zip(keys, stored, strict=True) if not done]


class VersionedTable(CheckedTable):
    """Every write has a version, made of its token; the store shows the highest version."""

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._check()
        txid, attempt = self._record.token
        if attempt > _MAX_ATTEMPT:
            raise StateError(
                f"attempt {attempt} of batch {txid} has no version: a versioned store tells "
                f"{_MAX_ATTEMPT} attempts of a batch apart. Find out why it keeps failing."
            )
        self._store.multiPutAt(keys, entries, 2**62 | txid << 12 | attempt)
        return ()
