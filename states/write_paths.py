"""How a flush is kept from landing late: one way for each thing a store may be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from trident.states.backing_map import Ability, IBackingMap, abilities
from trident.states.columns import VersionedEntries
from trident.states.control import ControlRecord
from trident.states.errors import StaleBatchError, StateError, StateUnavailableError

Redo = Callable[[Sequence[bytes], Sequence[Any]], Sequence[Any]]
"""From keys and what is stored now to what is to be stored: the flush, computed again."""

_CONFLICTS = 16
_MAX_ATTEMPT = 2**12 - 1


def write_path(store: IBackingMap) -> WritePath:
    """Return the strongest way that `store` is able to take."""
    able = abilities(store)
    if Ability.FENCED in able:
        return FencedPath(store)
    if Ability.ENTRY in able:
        return EntryPath(store)
    if Ability.VERSIONED in able:
        return VersionedPath(store)
    return CheckedPath(store)


class WritePath(ABC):
    """Reads for updating and writes of one state, of one attempt after the other.

    Parameters
    ----------
    store : IBackingMap
        A map of encoded keys and value objects.
    """

    redoes = False
    """Whether :meth:`write` may need to compute values again."""

    def __init__(self, store: IBackingMap) -> None:
        self._store = store

    def begin(self, record: ControlRecord) -> None:
        """Use `record` for all that follows; its bytes are the fence."""
        self._record = record
        self._fence = record.encode()

    def read(self, keys: Sequence[bytes]) -> Sequence[Any]:
        """Return what is stored under `keys`, which are going to be written."""
        return self._store.multiGet(keys)

    @abstractmethod
    def write(self, keys: Sequence[bytes], values: Sequence[Any], redo: Redo) -> None:
        """Write `values`.

        Raises
        ------
        StaleBatchError
            When this attempt was overtaken.
        StateUnavailableError
            When the store lost what says that this attempt began.
        """

    def _refused(self) -> StaleBatchError | StateUnavailableError:
        """Return why the fence is another one: someone newer began, or the store forgot us."""
        data, own = self._store.getControl(), self._record
        found = None if data is None else ControlRecord.decode(data)
        if found is None or (found.lineage == own.lineage and found.token < own.token):
            return StateUnavailableError(
                self._store.where or "the store",
                f"it no longer knows that batch {own.token.txid} began, so it lost writes",
                "The batch is retried. Look at the store's log: did it start from old data, or did "
                "another server take over?",
            )
        return StaleBatchError(own.token, found.token)

    def _check_token(self) -> None:
        if self._store.getControl() != self._fence:
            raise self._refused()


class FencedPath(WritePath):
    """The store compares the control record and writes in one atomic step."""

    def write(self, keys: Sequence[bytes], values: Sequence[Any], redo: Redo) -> None:
        if not self._store.multiPutFenced(keys, values, self._fence):
            raise self._refused()

    def add(self, keys: Sequence[bytes], amounts: Sequence[int | float]) -> None:
        """Have the store add `amounts` by itself."""
        if not self._store.multiAddFenced(keys, amounts, self._record.token, self._record):
            raise self._refused()

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove entries for good."""
        if not self._store.multiRemoveFenced(keys, self._fence):
            raise self._refused()


class EntryPath(WritePath):
    """The store writes an entry only where it is as it was read; else it is computed again."""

    redoes = True

    def begin(self, record: ControlRecord) -> None:
        super().begin(record)
        self._versions: dict[bytes, Any] = {}

    def read(self, keys: Sequence[bytes]) -> Sequence[Any]:
        found = VersionedEntries.of(self._store.multiGetVersioned(keys))
        self._versions.update(zip(keys, found.versions, strict=True))
        return found.entries

    def write(self, keys: Sequence[bytes], values: Sequence[Any], redo: Redo) -> None:
        self._check_token()
        for _ in range(_CONFLICTS):
            versions = list(map(self._versions.__getitem__, keys))
            stored = self._store.multiPutVersioned(keys, values, versions)
            keys = [key for key, done in zip(keys, stored, strict=True) if not done]
            if not keys:
                return
            values = redo(keys, self.read(keys))
        raise StateUnavailableError(
            self._store.where or "a store of conditional writes",
            f"{len(keys)} entries were changed by somebody else {_CONFLICTS} times in a row",
            "Is another program writing the same keys?",
        )


class VersionedPath(WritePath):
    """Every write has a version made of its token, and the store shows the highest."""

    def write(self, keys: Sequence[bytes], values: Sequence[Any], redo: Redo) -> None:
        self._check_token()
        txid, attempt = self._record.token
        if attempt > _MAX_ATTEMPT:
            raise StateError(
                f"attempt {attempt} of batch {txid} has no version: a versioned store tells "
                f"{_MAX_ATTEMPT} attempts of a batch apart. Find out why it keeps failing."
            )
        self._store.multiPutAt(keys, values, 2**62 | txid << 12 | attempt)


class CheckedPath(WritePath):
    """The token is compared right before the write, which leaves a moment between the two."""

    def write(self, keys: Sequence[bytes], values: Sequence[Any], redo: Redo) -> None:
        self._check_token()
        self._store.multiPut(keys, values)
