"""Adapters, which make a table of a store: one for each way to keep late writes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from trident.states.asking import Wait
from trident.states.backing_map import Ability, IBackingMap, abilities, checked_answer, has_pages
from trident.states.control import ControlRecord
from trident.states.errors import (
    SerializationError,
    StaleBatchError,
    StateError,
    StateUnavailableError,
)
from trident.states.keys import decode_key, encode_key
from trident.states.kinds.kind import Kind
from trident.states.serializers import Serializer
from trident.states.table.table import Counts, Layer, Table

T = TypeVar("T")

_MAX_ATTEMPT = 2**12 - 1


class CheckedTable(Table):
    """Reads the control record right before a write, for a store that has the two methods only.

    A write that is delayed after that is not refused.
    """

    def __init__(self, store: IBackingMap, counts: Counts) -> None:
        able = abilities(store)
        self.where = store.where
        self.lists = Ability.LIST in able
        self.has_pages = has_pages(store)
        self._store = store
        self._counts = counts

    def begin(self, record: ControlRecord) -> None:
        self._record = record
        self._fence = record.encode()

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        self._counts.gets += 1
        self._counts.keys_read += len(keys)
        return self._ask(keys)

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._count_put(keys)
        return self._write(keys, entries)

    def entries(self) -> Sequence[tuple[Any, Any]]:
        if not self.lists:
            raise StateError(
                f"{self.where or 'the store of this state'} can't list its entries; look up keys, "
                "or keep the state in a store that lists: in memory, in SQLite, or in one Redis "
                "server under a prefix"
            )
        return self._encoded(self._store.entries())

    def pages(self, part: Any = None) -> Iterator[Sequence[tuple[Any, Any]]]:
        if not self.has_pages:
            raise StateError(
                f"{self.where or 'the store of this state'} can't list its entries, not even page "
                "by page; look up keys"
            )
        arguments = () if part is None else (part,)  # most maps have no parts
        return map(self._encoded, self._store.pages(*arguments))

    def _ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        wait = self._store.ask(self._store_keys(keys))
        return lambda: checked_answer(self._store, keys, wait())

    def _write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._check()
        self._store.multiPut(self._store_keys(keys), entries)
        return ()

    def _count_put(self, keys: Sequence[Any]) -> None:
        self._counts.puts += 1
        self._counts.keys_written += len(keys)

    def _store_keys(self, keys: Sequence[Any]) -> Sequence[Any]:
        """Return keys in the store's form: encoded, or as tuples of their fields."""
        return keys if self._store.codec else list(map(decode_key, keys))

    def _encoded(self, entries: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        if self._store.codec:
            return entries
        return [(encode_key(fields), entry) for fields, entry in entries]

    def _check(self) -> None:
        """Raise if the control record is not the one that this attempt began with."""
        if self._store.getControl() != self._fence:
            raise self._refused()

    def _refused(self) -> StaleBatchError | StateUnavailableError:
        """Return the error for a changed record: a later attempt began, or the store lost it."""
        stored, own = self._store.getControl(), self._record
        found = None if stored is None else ControlRecord.decode(stored)
        if found is None or (found.log_id == own.log_id and found.token < own.token):
            return StateUnavailableError(
                self.where or "the store",
                f"it no longer knows that batch {own.token.txid} began, so it lost writes",
                "The batch is retried. Look at the store's log: did it start from old data, or did "
                "another server take over?",
            )
        return StaleBatchError(own.token, found.token)


class FencedTable(CheckedTable):
    """For a store that compares the control record and writes in one atomic step."""

    def __init__(self, store: IBackingMap, counts: Counts) -> None:
        super().__init__(store, counts)
        self.removes = self.sweeps = Ability.REMOVE in abilities(store)

    def remove(self, keys: Sequence[Any]) -> None:
        self._count_put(keys)
        if not self._store.multiRemoveFenced(self._store_keys(keys), self._fence):
            raise self._refused()

    def _write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        if not self._store.multiPutFenced(self._store_keys(keys), entries, self._fence):
            raise self._refused()
        return ()


class AddingTable(FencedTable):
    """For a store that adds to the committed opaque value and writes, in one atomic step."""

    adds = True

    def add(self, keys: Sequence[Any], amounts: Sequence[int | float]) -> None:
        self._count_put(keys)
        token, retried = self._record.token, self._record.retried
        if not self._store.multiAddFenced(
            self._store_keys(keys), amounts, token, retried, self._fence
        ):
            raise self._refused()


class ConditionalTable(CheckedTable):
    """For a store that writes an entry only if nobody has changed it since it was read."""

    refuses = True

    def begin(self, record: ControlRecord) -> None:
        super().begin(record)
        self._versions: dict[Any, Any] = {}

    def _ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        return partial(self._read_versioned, keys)

    def _read_versioned(self, keys: Sequence[Any]) -> Sequence[Any]:
        found = self._store.multiGetVersioned(self._store_keys(keys))
        self._versions.update(zip(keys, [version for _, version in found], strict=True))
        return [entry for entry, _ in found]

    def _write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._check()
        versions = list(map(self._versions.__getitem__, keys))
        stored = self._store.multiPutVersioned(self._store_keys(keys), entries, versions)
        return [key for key, done in zip(keys, stored, strict=True) if not done]


class VersionedTable(CheckedTable):
    """For a store that shows the highest version of an entry; a version is made of a token.

    Once an entry is removed, a late write of it shows. So only expired entries are removed: what a
    late writer writes has expired too.
    """

    def __init__(self, store: IBackingMap, counts: Counts) -> None:
        super().__init__(store, counts)
        self.sweeps = Ability.EXPIRE in abilities(store)

    def remove(self, keys: Sequence[Any]) -> None:
        self._count_put(keys)
        self._check()
        self._store.multiRemoveUpTo(self._store_keys(keys), self._version() - 1)

    def _write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        self._check()
        self._store.multiPutAt(self._store_keys(keys), entries, self._version())
        return ()

    def _version(self) -> int:
        txid, attempt = self._record.token
        if attempt > _MAX_ATTEMPT:
            raise StateError(
                f"attempt {attempt} of batch {txid} has no version: a versioned store tells "
                f"{_MAX_ATTEMPT} attempts of a batch apart. Find out why it keeps failing."
            )
        return 2**62 | txid << 12 | attempt


class SerializedTable(Layer):
    """Makes bytes of the entries of one kind, and entries of bytes, over a store of bytes."""

    def __init__(self, below: Table, kind: Kind, serializer: Serializer) -> None:
        super().__init__(below)
        self._kind = kind
        self._serializer = serializer

    def ask(self, keys: Sequence[Any]) -> Wait[Sequence[Any]]:
        wait = self._below.ask(keys)
        return lambda: self._kind.loads(wait(), self._serializer)

    def write(self, keys: Sequence[Any], entries: Sequence[Any]) -> Sequence[Any]:
        try:
            data = self._dump(entries)
        except SerializationError as error:
            raise naming_key(error, self._dump, keys, entries) from None
        return self._below.write(keys, data)

    def _dump(self, entries: Sequence[Any]) -> Sequence[bytes]:
        return self._kind.dumps(entries, self._serializer)

    def _listed(self, found: Sequence[tuple[Any, Any]]) -> Sequence[tuple[Any, Any]]:
        entries = self._kind.loads([data for _, data in found], self._serializer)
        return [(key, entry) for (key, _), entry in zip(found, entries, strict=True)]


def naming_key(
    error: SerializationError,
    make: Callable[[Sequence[Any]], object],
    keys: Sequence[bytes],
    entries: Sequence[Any],
) -> SerializationError:
    """Return the error of entries that can't be stored, with the key of the first such entry."""
    for key, position in zip(keys, range(len(entries)), strict=True):
        try:
            make(entries[position : position + 1])
        except SerializationError as own:
            return SerializationError(f"value of key {decode_key(key)!r}", own.found, own.allowed)
    return error
